"""True statements whose numbers are parts of a larger amount, a rate or a ratio: none may be called
false, neither by arithmetic nor by the symbolic provider. Written for this test, but for those that
name GSM8K."""

from __future__ import annotations

import pytest

from cotlab.metrics.verification import undecided_statements
from cotlab.providers.symbolic_worker import check_statements
from cotlab.text.arithmetic.readings import read_steps

TRUE_STATEMENTS = [
    # compound quantities
    *("1 hour 20 min = 80 min", "Total time: 1 hour 20 min = 80 min", "1 m 20 cm = 120 cm"),
    *("Convert: 5 feet 6 inches = 66 inches", "1 kg 500 g = 1.5 kg", "2 lb 3 oz = 35 oz"),
    *("1 day 2 hours = 26 hours", "1 year 6 months = 18 months", "1 mile 80 yards = 1840 yards"),
    *("5 feet 6 = 66 inches", "1 hour 20 = 80 min", "80 min = 1 hour 20 min", "90 min = 1 h 30"),
    *("5 feet 6 inches + 2 inches = 68 inches", "60 + 80 = 2 hours 20 min", "6 ft 2 + 2 = 6 ft 4"),
    *("2 hours, 15 minutes + 5 minutes = 140 minutes", "2 lb 3 oz * 2 = 70 oz"),
    r"\(45 + 45 = 1 hour and 30 minutes\)",
    "2 hours 45 mins / 3 = 55 mins",
    # a value that is stated in another unit
    *("500 + 600 = 1.1 kg", "6 * 10 = 1 minute", "4 * 25 = 1 dollar", "12 * 2 = 1 day"),
    *("2 nickels + 1 dime = 20 cents", "3 quarters + 2 dimes = 95 cents", "3 * 20 = 6 tens"),
    *("300 * 5 = 15 hundreds", "1/2 + 1/2 = 2 halves", "3 * 5 = 30 halved", "3 * 20 = 30 twice"),
    # percentages in short
    *("Price: 25% off $80 = $60", "The price is 25% off $80 = $60.", "10% off 50 = 45"),
    *("20% tip on $50 = $10", "15% on $80 = $12", "30% discount on $20 = $6", "half off $80 = $40"),
    *("25% off $80 + $5 = $65", "8% tax on $50 * 2 = $8", "20 percent off 50 + 5 = 45"),
    *("20% discount: $50 = $40", "20%: 50 + 5 = 15", "$100 at 5% for 2 + 1 years = $15"),
    # ratios and ranges
    *("The ratio is 10 : 2 = 5.", "10 : 2 = 5 : 1", "The ratio is 10 : 2 + 3 = 8.", "10:2 = 5"),
    *("10 : 5 * 2 = 4", "12 / 4 = 6 : 2", "3 through 10 = 8", "from 3 to 10 + 1 = 8"),
    # rates
    "90 crocus bulbs at $.50 = $45.00",  # GSM8K
    "shoe size 25 + shoe size 5 = 30",  # GSM8K
    "75 = 98 - least score",  # GSM8K
    *("3 bags at $2 + $1 = $7", "She buys 3 bags at $2 + 1 bag at $1 = $7", "8 hours at 60 = 480"),
    *("4 tickets for $5 + $2 = $22", "2 bags with 6 each + 1 = 13", "2 bags, 6 + 1 = 13"),
    *(
        "each of 2 gets 3 + 1 = 8",
        "twice as many as 3 + 4 = 14",
        "3 times as much as $4 + $1 = $15",
    ),
    *("40 hours at $15 per hour + $50 = $650", "five $10 + $3 = $53", "10, less 3 + 2 = 9"),
    *("3 * 20 = 15 for each of 4 days", "3 * 20 = 20 each day", "$100 less $20 = $80"),
    # labels before, and what goes on behind
    *("Row 2 + row 3 = 5", "Friend 1 + friend 2 = $30"),
    *("75 - 5 = 98 - least score", "100 = 5 * 25 - discount", "3 * 20 = 75 - fee"),
    *("3 * 20 = 20 (per day) + 40", "3 * 5 = 10 apples, 5 pears", "3 * 5 = 20 minus the 5"),
]
FALSE_STATEMENTS = [
    "She earns $18/hour * 10 hours = $190.",
    *("Day 1: 5 + 3 = 9.", "1. 3 + 4 = 8"),
    "Each child gets 12 / 3 = 5 apples.",
    *("Since there are 7 days in a week, he earns 7 * 10 = $75.", "10 kg + 5 kg = 16 kg"),
    *("He has 3 dogs, 2 cats: 3 + 2 = 6 animals.", "The second term is \\(3 \\cdot 4 = 13\\)."),
]


@pytest.mark.parametrize("form", ["{}", "So {}.", "Cost: {}", "{}, so it is done.", r"\({}\)"])
@pytest.mark.parametrize("statement", TRUE_STATEMENTS)
def test_a_part_of_a_phrase_is_not_compared_as_if_it_were_the_whole(
    statement: str, form: str
) -> None:
    (step,) = read_steps([form.format(statement)])
    assert step.mistake is None
    open_statements = undecided_statements(step)
    assert not open_statements or check_statements("", open_statements) is not False


@pytest.mark.parametrize("statement", TRUE_STATEMENTS)
def test_the_symbolic_provider_alone_does_not_call_them_false(statement: str) -> None:
    assert check_statements("", statement) is not False


@pytest.mark.parametrize("statement", ["3 1/2 = 7/2", "1.5e3 = 1500", "3/5/2020 + 5 = 8"])
def test_the_symbolic_provider_reads_no_product_into_a_number(statement: str) -> None:
    assert isinstance(check_statements("", statement), str)


@pytest.mark.parametrize("statement", FALSE_STATEMENTS)
def test_a_phrase_with_numbers_may_still_hold_a_false_equation(statement: str) -> None:
    (step,) = read_steps([statement])
    assert step.mistake is not None


@pytest.mark.parametrize("statement", ["5 km = 500 meters", "Step 2: 5 km = 500 meters"])
def test_a_false_conversion_is_still_sent_to_the_symbolic_provider(statement: str) -> None:
    (step,) = read_steps([statement])
    assert check_statements("", undecided_statements(step)) is False


def test_a_letter_has_no_value_of_a_side_that_goes_on_in_words() -> None:
    steps = read_steps(["x = 98 - least score", "x + 2 = 75"])
    assert [e.holds for step in steps for e in step.equations] == [None]
