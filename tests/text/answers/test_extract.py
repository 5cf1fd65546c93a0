"""What replies answer and which answers are the same: by hand, by law, and under hostile text.

Every expected value follows from the rule named in the comment of its group; arithmetic is beside
it.
"""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cotlab.text.answers.extract import final_answer, same_answer

ANSWERS = [
    # boxes: the last closed one, braces nested
    ("so \\boxed{\\frac{1}{2}}", "\\frac{1}{2}"),
    ("\\boxed{3}, no: \\boxed{5}. And \\boxed{6", "5"),
    ("\\boxed{\\text{blotter}}", "blotter"),
    ("**Final Answer**\n\\boxed{258.23}  \n**", "258.23"),
    # markers at line starts and within sentences; units stay
    ("2 * 540\n#### 1,080", "1,080"),
    ("#### 1. Compute the discount\nIt is 42.\n#### 42", "42"),
    ("She makes 18.\nA: 18", "18"),
    ("A: 10+John's age", "10+John's age"),
    ("The answer is 18 eggs.", "18 eggs"),
    ("So the answer is 9.", "9"),
    ("final answer: 7", "7"),
    ("Answer: (B)", "(B)"),
    ("**Answer**: blotter", "blotter"),
    ("The answer is **18**.", "18"),
    ('The answer is "Paris".', "Paris"),
    ("The answer is \\$18.50.", "$18.50"),
    ("### Answer\n\n18 apples", "18 apples"),
    ("The answer to the whole question is 3.5. Good.", "3.5"),
    ("The answer is 5 because 2 + 3 = 5.", "5"),
    ("The answer is 1,080 eggs, which is a lot.", "1,080 eggs"),
    ("The answer is (1, 2).", "(1, 2)"),
    ("The answer is yes.", "yes"),
    ("The answer is No. The end", "No"),
    ("So the answer is }", "}"),  # brackets are the answers of the Dyck-language task
    # … said backwards, or of an option
    ("Therefore, 18 is the answer.", "18"),
    ("Option B is correct.", "Option B"),
    ("So the correct option is (C) garage.", "(C) garage"),
    ("I would choose B because it fits.", "B"),
    ("Answer choices: (A) 5 (B) 6. The best choice is (B)", "(B)"),
    ("A: 5\nB: 6\nC: 7\nAnswer: B", "B"),
    # JSON, bare or fenced
    ('{"reasoning": "3 + 4", "answer": 7}', "7"),
    ('```json\n{"final_answer": "a \\"B\\""}\n```', 'a "B'),
    # the last marker decides; a denied answer is none
    ("The answer is 5. Then the answer is 6.", "6"),
    ("The answer is 5. Wait, the answer is not 5. So the answer is 7", "7"),
    ("The answer is not 5", None),
    ("So the answer is", None),  # of a model that adds nothing to the start of its turn
    ("Therefore, the final answer is …", None),
    ("The answer isn't 5.", None),
    ("The answer is not 5 but 7.", "7"),
    ("To answer the question: compute. It is 12.", "12"),
    ("If the answer is 5, we stop. It is 12.", "12"),
    # what a chain between delimiters says is no answer, nor is a reply that cannot be divided
    ("<think>the answer is 5</think>\n\n7", "7"),
    ("[THINK]the answer is 5[/THINK]7", "7"),
    ("analysisSo the answer is 5.assistantfinalSo the answer is 7.", "7"),
    ("<think>the answer is 5</think>", None),
    ("<think>the answer is 5\n\nSo the answer is 7.", None),
    ("<|ponder|>the answer is 5<|reply|>7", None),
    ("<my_think>the answer is 5</my_think>So the answer is 7.", None),
    # no marker: the whole reply, "= 18", an option, yes or no, the last number
    ("blotter", "blotter"),
    ("18 eggs", "18 eggs"),
    ("(B)", "(B)"),
    ("B. kitchen", "B. kitchen"),
    ("March 5, 2024", "March 5, 2024"),
    ("3 * 6 = 18", "18"),
    ("The total is 5 + 3 = 8 apples", "8 apples"),
    ("It must be the room with an oven. Therefore (B) kitchen.", "(B) kitchen"),
    ("Yes, it would be.", "Yes"),
    ("Stones sink and wood floats, and this is made of wood, so yes.", "yes"),
    ("He has 3 then 5 apples left over today, all told.", "5"),
    ("16-7", "16-7"),
    ("They met on March 5, 2024 at the old house by the sea.", "March 5, 2024"),
    ("They met at 3:30 PM in the square near the old house.", "3:30 PM"),
    ("Step 1: 3 + 4 gives 7.\nStep 2: done", "7"),  # labels count lines, they state nothing
    ("After all of that she has eighteen eggs left.", "eighteen eggs left"),
    # nothing to extract
    ("", None),
    (" \n", None),
    ("...", None),
    ("**", None),
    ("()", None),
    ("I don't know.", None),
    ("I’m not sure.", None),
    ("No idea.", None),
    ("I'm sorry, but I can't help with that.", None),
    ("As an AI, I cannot answer this.", None),
    ("The answer is: I don't know.", None),
    ('{"answer": null}', None),
    ("I'm not sure, but I think it is 18.", "18"),
    ("The train goes through the old town and the new town to the harbour.", None),
]


@pytest.mark.parametrize(("reply", "answer"), ANSWERS)
def test_final_answer_by_hand(reply: str, answer: str | None) -> None:
    assert final_answer(reply) == answer


SAME = [
    # numbers
    (
        "1,080 = 1080 = 1080.0 = 1.08e3 = 1 080 = 1\u2009080 = 1’080 = 1{,}080 = \\boxed{1080} ="
        " 1.08 × 10^3"
    ),
    "1,00,000 = 100000",
    "-5 = −5 = minus five = negative 5 = - 5",
    "1/2 = 0.5 = \\frac{1}{2} = \\dfrac12 = ½ = $\\frac{1}{2}$ = half = one half = .5",
    "-\\frac{3}{4} = -0.75",
    "1 1/2 = 1½ = 1.5 = 3/2 = 1\\frac{1}{2} = one and a half",
    (
        "18 = eighteen = 18. = **18** = $18$ = +18 = x=18 = The answer is 18. = 9*2=18 = about 18 ="
        " \\boxed{18}"
    ),
    "21 = twenty-one = Twenty One",
    "105 = one hundred and five = one hundred five",
    "2300000 = two million three hundred thousand = 2.3 million = 2.3M",
    "2/3 = two thirds = \\tfrac{2}{3}",
    "12 = a dozen = one dozen",
    "25/3 = 8.333333333333334",  # floating-point noise: 15 decimals
    "119.7 = 119.69999999999999",
    # units, money, percentages
    "50% = 50 percent = 50\\% = 50",
    "50% = 0.5",
    "5 km = 5000 m = 5 kilometers = 5,000 metres",
    "5 m^2 = 5 m² = 5 m2 = 5 square meters = 5 metres squared = 5 \\text{ m}^2",
    "60 km/h = 60 kilometers per hour = 60 kph = 60",
    "18 eggs = 18 = 18\\text{ eggs} = 18 eggs left = she makes 18 every day",
    "18 eggs per day = 18 eggs",
    "$18 = 18 dollars = USD 18 = $18.00 = \\$18 = 18 = 18 USD = $18 per day",
    "75 cents = $0.75",
    "2 hours 30 minutes = 150 minutes = 2.5 hours = 2h 30min = 150",
    "5 feet 3 inches = 63 inches = 5 ft 3 in",
    "20 °C = 20 degrees Celsius = 20 degrees = 20^\\circ",
    "5 pounds = £5",
    "5 pounds = 5 lbs",
    # dates and times
    (
        "2024-03-05 = March 5, 2024 = 5 March 2024 = Mar 5th, 2024 = Tuesday, March 5, 2024 = the"
        " 5th of March 2024"
    ),
    "March 5 = March 5, 2024",
    "03/05/2024 = 3/5/2024",
    "13/05/2024 = May 13, 2024 = 05/13/2024",
    "3:30 PM = 15:30 = 3:30 p.m. = 3.30 pm = 15:30:00",
    "3:30 = 3:30 PM",
    "noon = 12:00 PM = 12:00",
    "9 am = 9 = 9:00 AM",
    # options, yes and no
    "(B) = B = b) = B. = Option B = \\text{(B)}",
    "(B) kitchen = kitchen = B. kitchen = the Kitchen",
    "(B) kitchen = B",
    "(B) = kitchen (B)",
    "yes = Yes. = true = Yes, it is = YES!",
    # words
    "a blotter = Blotter = blotter. = 'blotter' = The blotter = \\text{blotter}",
    "café = Cafe = cafe\u0301",
    "paper towel = paper-towel = Paper  Towel",
    "U.S. = US = the U.S.",
    "] } = ]}",
    "\\sqrt{2} = √2 = \\sqrt2",
    # lists
    "3:4 = 6:8 = 3 : 4 = 3 to 4",
    "(1, 2) = (1,2) = ( 1 , 2 ) = (1.0, 2) = \\left(1, 2\\right)",
    "{1,2} = {2, 1} = \\{1, 2\\} = {2, 1, 1}",
    "1, 2 = (1, 2) = 1 and 2",
]

DIFFERENT = [
    ("18", "19"),
    ("5", "-5"),
    ("1.5", "15"),
    ("1 1/2", "11/2"),
    ("5th", "5"),
    ("3.14", "3.14159"),
    ("123456789012345", "123456789012346"),
    ("1e400", "1e399"),
    ("two", "too"),
    ("5 km", "5 miles"),
    ("5 m", "5 m^2"),
    ("18 eggs", "18 ducks"),
    ("$18", "€18"),
    ("$18", "18 eggs"),
    ("$18 per day", "$18 per week"),
    ("75 cents", "$75"),
    ("0.5%", "50%"),
    ("5 km", "5 km/h"),
    ("10+John's age", "10"),
    ("not 5", "5"),
    ("at least 5", "5"),
    ("more than 5", "5"),
    ("Apollo 11", "Apollo 13"),
    ("Apollo 11", "11"),
    ("x = 5", "y = 5"),
    ("x+1", "x-1"),
    ("(a+b)c", "a+bc"),
    ("C++", "C"),
    ("A-", "A"),
    ("03/05/2024", "2024-03-05"),
    ("03/05/2024", "05/03/2024"),
    ("2024", "March 5, 2024"),
    ("3:30", "15:30"),
    ("3:30 AM", "3:30 PM"),
    ("B", "C"),
    ("(B) kitchen", "(C) kitchen"),
    ("(B) kitchen", "garage"),
    ("B and C", "B"),
    ("B", "kitchen"),
    ("yes", "no"),
    ("no one", "no"),
    ("kitchen", "18"),
    ("paper", "paper towel"),
    ("cat", "catalogue"),
    ("cat", "the catalogue"),
    ("3:4", "4:3"),
    ("3:4", "3/4"),
    ("(1, 2)", "(2, 1)"),
    ("{1,2}", "{1,3}"),
    ("[1,2]", "(1,2)"),
    ("(1, 2)", "(1, 2, 3)"),
]


@pytest.mark.parametrize("line", SAME)
def test_the_first_is_the_same_as_each_other(line: str) -> None:
    first, *others = line.split(" = ")
    for other in others:
        assert same_answer(first, other) is True, other
        assert same_answer(other, first) is True, other


@pytest.mark.parametrize(("a", "b"), DIFFERENT)
def test_different(a: str, b: str) -> None:
    assert same_answer(a, b) is False
    assert same_answer(b, a) is False


@pytest.mark.parametrize(
    "nothing", ["", "  ", "...", "**", None, "I don't know", "I can't answer that."]
)
def test_nothing_to_compare_is_none(nothing: str | None) -> None:
    assert same_answer(nothing, "18") is None
    assert same_answer("18", nothing) is None
    assert same_answer(nothing, nothing) is None


def test_equations_give_their_right_side() -> None:
    assert same_answer("9 * 2 = 18", "18") is True
    assert same_answer("x = 5", "5") is True
    assert same_answer("x = 5, y = 6", "(5, 6)") is False  # names are not positions


FRAGMENTS = st.lists(
    st.sampled_from(
        [
            "18",
            "1,080",
            "0.5",
            "50",
            "%",
            "$",
            "€",
            " km",
            " m^2",
            " eggs",
            "½",
            "\\frac{1}{2}",
            "(",
            ")",
            "{",
            "}",
            ", ",
            "B",
            "(B) ",
            "kitchen",
            " = ",
            "x",
            "-",
            "+",
            "/",
            ":",
            " ",
            "yes",
            "no ",
            "March 5, 2024",
            "3:30 PM",
            "03/05/2024",
            "one hundred ",
            "two thirds",
            "a ",
            "the ",
            "\\text{",
            "\\boxed{",
            "The answer is ",
            "not ",
            "A: ",
            "#### ",
            "\n",
            ". ",
            "é",
            "e\u0301",
            "I don't know",
            '"answer": ',
            '"',
        ]
    ),
    max_size=8,
).map("".join)
ANY = st.one_of(FRAGMENTS, st.text(max_size=40))


@given(ANY, ANY)
@settings(max_examples=600, deadline=None)
def test_symmetric(a: str, b: str) -> None:
    assert same_answer(a, b) is same_answer(b, a)


@given(ANY)
@settings(max_examples=600, deadline=None)
def test_reflexive_or_none(a: str) -> None:
    assert same_answer(a, a) in (True, None)
    found = final_answer(a)
    assert found is None or (found.strip() and same_answer(found, found) in (True, None))


FORMS = (
    "{}",
    "{:,}",
    "{}.0",
    "\\boxed{{{}}}",
    "The answer is {}.",
    "#### {:,}",
    "{} apples",
    "so = {}",
)


@given(st.integers(-(10**12), 10**12), st.sampled_from(FORMS))
def test_an_integer_is_found_and_equal_to_itself_only(n: int, form: str) -> None:
    found = final_answer("7 + 8 = 15 is a start.\n" + form.format(n))
    assert same_answer(found, str(n)) is True
    assert same_answer(found, str(n + 1)) is False


@given(st.fractions(min_value=-1000, max_value=1000, max_denominator=64))
def test_a_fraction_in_three_notations(value: Fraction) -> None:
    over = f"{value.numerator}/{value.denominator}"
    latex = f"{'-' if value < 0 else ''}\\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"
    assert same_answer(over, latex) is True
    if value.denominator in (1, 2, 4, 8, 16, 32, 64):
        assert same_answer(over, repr(float(value))) is True


HOSTILE = """
from cotlab.core.types import Item
from cotlab.text.answers.extract import final_answer, same_answer
from cotlab.text.answers.targets import answer_to, is_right_answer
for piece in ("9", "9,", "123,", "123 ", "(", ")", "{", "\\\\boxed{", "\\\\boxed{}", "\\\\frac{",
              "\\\\frac{1}{2}", "\\\\text{", "$", ".", " ", "\\n", "-", "+", "1/", "1 1/", "1=",
              "10**", "2^", "1e9", "answer ", "answer is ", "The answer is not 5. ",
              "answer isn't 5 but ", "is the answer ", "choose ", '"answer": "',
              '{"answer": "\\\\', "#### ", "one hundred and ", "yes ", "1 and ", "a.", "A. ",
              "e\\u0301\\u0327", "\\ufdfa",
              "\\sqrt{", "\\sqrt[3]{2}", "x^", "9!", "9^9^", "!", "±", "x ≤ ", "≈", "∪", "$x$ and ",
              "\\begin{pmatrix}1&2\\\\", "\\overline{3}", "\\boxed{1}, ", "\\binom{9}{9}",
              "(a) x ", "A) x\\n", "A, ", "x = 1 or ", "log ", "\\(x\\), ", "sin 9", "|", "total ",
              "over 5 weeks ", "I can't ", "may 5 ",
              "2024-03-05", "'", "*", "\\u2009", "\\0", "1:", "(1, "):
    for size in (1_990, 20_000):
        text = piece * (size // len(piece))
        final_answer(text + "x")
        final_answer("x" + text)
        same_answer(text, text + ")")
        same_answer(text, "18")
        item = Item("1", text[:19_000], "x", ())
        is_right_answer(item, answer_to(item, text))
long = ("9" * 200_000, "0." + "3" * 200_000)
for number in ("9e999999999", "10^1000000000", "10**10**10**10", "1e-999999999", "9!!!!!!", *long):
    same_answer(number, "18")
    same_answer(number, number + "0")
    assert same_answer(number, number) is True
rows = ",".join("{" + ",".join(str(100 * i + j) for j in range(18)) + "}" for i in range(18))
same_answer("{" + rows + "}", "{" + rows[::-1].translate({123: 125, 125: 123}) + "}")
same_answer("(" * 900 + "1, 2" + ")" * 900, "[" * 900 + "1, 2" + "]" * 900)
"""


@pytest.mark.soak
def test_hostile_answers_end() -> None:
    """Long digits, powers, nested brackets, half-open markers: nothing is evaluated, no search goes
    back over the text."""
    subprocess.run([sys.executable, "-c", HOSTILE], check=True, timeout=600)
