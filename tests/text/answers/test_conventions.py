"""What replies answer and which answers are the same: the conventions, by hand.

Every value follows from the convention named in the comment of its group; arithmetic is beside it.
"""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cotlab.text.answers.equality import formula_pair
from cotlab.text.answers.extract import final_answer, same_answer
from cotlab.text.answers.markers import read_answer, stated_answer_text

READINGS = [
    ("so \\boxed{\\frac{1}{2}}", "\\frac{1}{2}"),
    ("\\boxed{3}, no: \\boxed{5}. And \\boxed{6", "5"),
    ("\\boxed{\\text{blotter}}", "blotter"),
    ("**Final Answer**\n\\boxed{258.23}  \n**", "258.23"),
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
    ("So the answer is }", "}"),
    ("Therefore, 18 is the answer.", "18"),
    ("Option B is correct.", "Option B"),
    ("So the correct option is (C) garage.", "(C) garage"),
    ("Answer choices: (A) 5 (B) 6. The best choice is (B)", "(B)"),
    ("A: 5\nB: 6\nC: 7\nAnswer: B", "B"),
    ('{"reasoning": "3 + 4", "answer": 7}', "7"),
    ("The answer is 5. Then the answer is 6.", "6"),
    ("The answer is 5. Wait, the answer is not 5. So the answer is 7", "7"),
    ("The answer is not 5", None),
    ("So the answer is", None),
    ("Therefore, the final answer is …", None),
    ("The answer isn't 5.", None),
    ("To answer the question: compute. It is 12.", "12"),
    ("If the answer is 5, we stop. It is 12.", "12"),
    ("<think>the answer is 5</think>\n\n7", "7"),
    ("[THINK]the answer is 5[/THINK]7", "7"),
    ("analysisSo the answer is 5.assistantfinalSo the answer is 7.", "7"),
    ("<think>the answer is 5</think>", None),
    ("<think>the answer is 5\n\nSo the answer is 7.", None),
    ("<|ponder|>the answer is 5<|reply|>7", None),
    ("<my_think>the answer is 5</my_think>So the answer is 7.", None),
    ("blotter", "blotter"),
    ("18 eggs", "18 eggs"),
    ("(B)", "(B)"),
    ("B. kitchen", "B. kitchen"),
    ("March 5, 2024", "March 5, 2024"),
    ("3 * 6 = 18", "18"),
    ("16-7", "16-7"),
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
    ("The train goes through the old town and the new town to the harbour.", None),
    # the only value at the end, digits of any script, tags, chains between delimiters
    ("The total is 5 + 3 = 8 apples", "8"),
    ("There are 3 plates left.", "3 plates left"),
    ("It takes 3 hours.", "3 hours"),
    ("So she has $29.00.", "$29.00"),
    ("The volume of $ABCD$ is 120.", "120"),
    ("Final Answer: The largest $n$ is 34.", "34"),
    ("答案是18。", "18"),
    ("The answer is １８.", "18"),
    ("الجواب هو ١٨", "18"),
    ("উত্তর হল ১৮।", "18"),
    ("<answer>42</answer>", "42"),
    ("<final_answer>\n42\n</final_answer>", "42"),
    ("<output>3</output>", "3"),
    ("<think>The answer is 8?</think>So the answer is 3.", "3"),
    ("<think>8</think>3 plates", "3 plates"),
    ("The answer is $y = -\\frac{3}{4}x + 2$.", "y = -\\frac{3}{4}x + 2"),
    ("\\boxed{2} \\quad \\text{and} \\quad \\boxed{3}", "2, 3"),
    ("The answer is 5.\nQ: another? The answer is 7.", "5"),
    ("I'm not sure, but I think it is 18.", None),
    ("The answer is not 5 but 7.", None),
    ("If the answer is 5, we stop. It goes on.", None),
    ("He has 3 then 5 apples left over today.", None),
    ("Check: is it 5? We get 5?", None),
    ("Answer: [your answer]", None),
    ("The answer is as follows: see the table of 3 rows and 4 columns", None),
    ("", None),
    ("​", None),
    ("<think>8", None),
    ("It is at most 5, they say, in the old town by the sea.", None),
]


@pytest.mark.parametrize(("reply", "answer"), READINGS)
def test_the_answer_of_a_reply(reply: str, answer: str | None) -> None:
    assert final_answer(reply) == answer


@pytest.mark.parametrize(
    ("reply", "how"),
    [
        ("\\boxed{5}", "box"),
        ("<answer>5</answer>", "tag"),
        ('{"answer": 5}', "json"),
        ("#### 5", "hash"),
        ("The answer is 5.", "cue"),
        ("A: 5", "line"),
        ("5 is the answer.", "before"),
        ("3 + 2\n5", "value line"),
        ("So\n$x + 1$", "formula line"),
        ("blue whale", "whole reply"),
        ("So there are 5 of them today, as was said.", "only value"),
    ],
)
def test_a_reading_names_the_convention_that_decided(reply: str, how: str) -> None:
    assert read_answer(reply).how == how


# "a = b = c": the first is the same as each other
SAME = [
    "1,080 = 1080 = 1080.0 = 1.08e3 = 1 080 = 1\u2009080 = 1’080 = 1{,}080 = \\boxed{1080}",
    "1,080 = 1.08 × 10^3 = $1080$",
    "1,00,000 = 100000",
    "-5 = −5 = minus five = negative 5 = - 5",
    "1/2 = 0.5 = \\frac{1}{2} = ½ = $\\frac{1}{2}$ = .5",
    "-\\frac{3}{4} = -0.75",
    "1 1/2 = 1½ = 1.5 = 3/2 = 1\\frac{1}{2}",
    "18 = eighteen = 18. = **18** = $18$ = +18 = x=18 = The answer is 18. = about 18 = \\boxed{18}",
    "21 = twenty-one = Twenty One",
    "2300000 = 2.3 million",
    "2/3 = \\tfrac{2}{3}",
    "12 = one dozen",
    "25/3 = 8.333333333333334",
    "119.7 = 119.69999999999999",
    "50% = 50 percent = 50\\% = 50",
    "50% = 0.5",
    "5 km = 5000 m = 5 kilometers = 5,000 metres",
    "5 m^2 = 5 m² = 5 square meters = 5 metres squared = 5 \\text{ m}^2",
    "60 km/h = 60 kilometers per hour = 60 kph = 60",
    "18 eggs = 18 = 18\\text{ eggs} = 18 eggs left",
    "18 eggs per day = 18 eggs",
    "$18 = 18 dollars = $18.00 = \\$18 = 18 = 18 USD = $18 per day",
    "75 cents = $0.75",
    "5 pounds = £5",
    "5 pounds = 5 lbs",
    "9 am = 9",
    "(B) = B = b) = B. = Option B = \\text{(B)}",
    "(B) kitchen = kitchen = B. kitchen = the Kitchen",
    "(B) kitchen = B",
    "yes = Yes. = true = Yes, it is = YES!",
    "a blotter = Blotter = blotter. = 'blotter' = The blotter = \\text{blotter}",
    "café = Cafe = café",
    "paper towel = paper-towel = Paper  Towel",
    "U.S. = the U.S.",
    "] } = ]}",
    "3:4 = 3 : 4",
    "(1, 2) = (1,2) = ( 1 , 2 ) = \\left(1, 2\\right)",
]
DIFFERENT = [
    ("18", "19"),
    ("5", "-5"),
    ("1.5", "15"),
    ("1 1/2", "11/2"),
    ("3.14", "3.14159"),
    ("123456789012345", "123456789012346"),
    ("1e400", "1e399"),
    ("5 km", "5 miles"),
    ("75 cents", "$75"),
    ("0.5%", "50%"),
    ("3:30", "15:30"),
    ("B", "C"),
    ("(B) kitchen", "(C) kitchen"),
    ("yes", "no"),
    ("3:4", "4:3"),
    ("12:00", "2:00"),
    ("5 km", "5 miles"),
    ("5 eggs", "6 duck eggs"),
    ("-7", "7"),
    ("1 1/2", "11/2"),
    ("0.333", "1/3"),
]
# other words, other notations: not the same for certain, and not different for certain
UNDECIDED = [
    ("5th", "5"),
    ("two", "too"),
    ("5 m", "5 m^2"),
    ("18 eggs", "18 ducks"),
    ("$18", "€18"),
    ("$18", "18 eggs"),
    ("$18 per day", "$18 per week"),
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
    ("3:30 AM", "3:30 PM"),
    ("(B) kitchen", "garage"),
    ("B and C", "B"),
    ("B", "kitchen"),
    ("no one", "no"),
    ("kitchen", "18"),
    ("paper", "paper towel"),
    ("cat", "catalogue"),
    ("cat", "the catalogue"),
    ("3:4", "3/4"),
    ("(1, 2)", "(2, 1)"),
    ("{1,2}", "{1,3}"),
    ("[1,2]", "(1,2)"),
    ("(1, 2)", "(1, 2, 3)"),
    ("Paris", "the capital of France"),
    ("1,22", "1.22"),
    ("x + 1", "1 + x"),
    ("one half", "1/2"),
    ("two million three hundred", "2300000"),
    ("yes", "perhaps"),
    ("5 feet 3 inches", "63 inches"),
]


# each was called the same, or different, for certain
UNDECIDED += [
    ("5 feet", "5 hours"),
    ("E. coli", "E. faecalis"),
    ("J. Smith", "J. Doe"),
    ("x > y", "x < y"),
    ("A ∪ B", "A ∩ B"),
    ("C#", "C"),
    ("True, False", "True, True"),
    ("Yes, 12", "Yes, 13"),
    ("7:00 pm", "19:00"),
    ("3/4/2021", "2021-03-04"),
    ("50 cents", "50"),
    ("1.5 million", "1.5"),
    ("90 minutes", "1.5"),
    ("1 year", "365 days"),
    ("J", "J. R. R. Tolkien"),
    ("n!", "n"),
    ("2M", "2000000"),
    ("1e999 m", "1e999 km"),
    ("5.0 × 10−3", "0.005"),
]
DIFFERENT += [
    ("1.054571817e-34", "6.626070150e-34"),
    ("0.0000000001", "0"),
    ("3 hours", "4"),
    ("50 cents", "49"),
]
SAME += [
    "20 N = 20",
    "300 K = 300",
    "12000 J = 12 kJ",
    "2 Million = 2000000",
    "no = No, it is not.",
]
READINGS_OF_REVIEW = [
    (r'{"answer": "\sqrt{2}"}', r"\sqrt{2}"),
    (r'{"answer": "50\%"}', r"50\%"),
    ('{"answer": ["B"]}', "B"),
    ("The answer is x = 5, y = 3.", "x = 5, y = 3"),
    ("Answer: 3; 4", "3; 4"),
    ("I don't think the answer is 5.", None),
    ("It is not true that the answer is 5.", None),
    ("The wrong answer is 5.", None),
    ("It is not 4, so the answer is 5.", "5"),
    ("He cannot have more than 24 apples in the basket of his.", None),
    ("The answer is St. Louis.", "St. Louis"),
    ("The answer is:\n- 5", "5"),
    ("The answer is:\n\n1. 5", "5"),
    ("#### 2. Second part\nThe total is 4.", "4"),
    ("The answer is 20. I hope my answer is helpful!", "20"),
    ("The answer is 'B'", "B"),
    ("The answer to question 3 is B", "B"),
    ("The closest option is (F)", "(F)"),
    ("```\n5\n```", "5"),
]


@pytest.mark.parametrize(("reply", "answer"), READINGS_OF_REVIEW)
def test_the_answer_of_a_marked_reply(reply: str, answer: str | None) -> None:
    assert final_answer(reply) == answer


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


@pytest.mark.parametrize(("a", "b"), UNDECIDED)
def test_undecided(a: str, b: str) -> None:
    assert same_answer(a, b) is None
    assert same_answer(b, a) is None


@pytest.mark.parametrize("nothing", ["", "  ", "**", None])
def test_nothing_to_compare_is_none(nothing: str | None) -> None:
    assert same_answer(nothing, "18") is None
    assert same_answer("18", nothing) is None
    assert same_answer(nothing, nothing) is None


@pytest.mark.parametrize(
    ("a", "b", "is_open"),
    [
        ("2x + 2", "2(x + 1)", True),
        ("\\frac{1}{2}", "\\frac{\\sqrt{4}}{4}", True),
        ("(1, 2)", "(1.0, 2)", True),
        ("f(x) = 5", "\\sqrt{25}", True),
        ("(3, 1)", "\\{1, 3\\}", False),  # a tuple and a set
        ("1, 2, \\ldots, n", "1, 3, \\ldots, n", False),  # a list that goes on
        ("2x = 18", "18", False),  # an equation and a value
        ("ten apples", "x + 1", False),
        ("2^{100000}", "3^{100000}", False),
    ],
)
def test_which_formulas_a_computation_may_compare(a: str, b: str, is_open: bool) -> None:
    assert (formula_pair(a, b) is not None) is is_open


STATED = {
    "9 * 2 = 18. So the answer is 18. Let me": "18",
    "So the answer is 18 eggs.": "18 eggs",
    "So the answer is 18\nbecause 9 *": "18",
    "Thus \\boxed{18} which": "18",
    "#### 18\nmore": "18",
    '{"answer": 18}\nx': "18",
    "So the answer is (b) stress. Because": "(b) stress",
    "<think>9</think>So the answer is 7. Now": "7",
}
NOT_STATED = [
    "",
    "Step 2: 11 - 3 = 8, then",
    "Step 1 answer: 12. Next",
    "We see whether the answer is 7. Then 9 =",
    "The answer is not 7. It",
    "So the answer is 1",  # 18?
    "So the answer is 7.",  # 7.5?
    "#### 1",
    "Thus \\boxed{18",
    "<think>So the answer is 7. Now",
]


@pytest.mark.parametrize("text", STATED)
def test_a_reply_that_was_cut_off_states_an_answer_up_to_its_end(text: str) -> None:
    assert final_answer(stated_answer_text(text)) == STATED[text]


@pytest.mark.parametrize("text", NOT_STATED)
def test_a_reply_that_was_cut_off_before_its_answer_states_none(text: str) -> None:
    assert stated_answer_text(text) == ""


ANY = st.one_of(
    st.lists(
        st.sampled_from(
            [
                *("18", "1,080", "0.5", "%", "$", " km", " eggs", "½", "\\frac{1}{2}", "("),
                *(")", "{", "}"),
            ]
            + [
                *(", ", "B", "(B) ", "kitchen", " = ", "x", "-", "/", ":", " ", "yes", "no "),
                *("a ", "\n"),
            ]
            + ["\\boxed{", "The answer is ", "not ", "A: ", "#### ", ". ", "e\u0301", '"answer": "']
        ),
        max_size=8,
    ).map("".join),
    st.text(max_size=40),
)


@given(ANY, ANY)
@settings(max_examples=400, deadline=None)
def test_symmetric_and_reflexive_or_undecided(a: str, b: str) -> None:
    assert same_answer(a, b) is same_answer(b, a)
    assert same_answer(a, a) in (True, None)
    found = final_answer(a)
    assert found is None or (found.strip() and same_answer(found, found) in (True, None))


FORMS = (
    *("{}", "{:,}", "{}.0", "\\boxed{{{}}}", "The answer is {}.", "#### {:,}", "{} apples"),
    "x = {}",
)


@given(st.integers(-(10**12), 10**12), st.sampled_from(FORMS))
@settings(deadline=None)
def test_an_integer_is_found_and_equal_to_itself_only(n: int, form: str) -> None:
    found = final_answer("7 + 8 = 15 is a start.\n" + form.format(n))
    assert same_answer(found, str(n)) is True
    assert same_answer(found, str(n + 1)) is False


@given(st.fractions(min_value=-1000, max_value=1000, max_denominator=64))
@settings(deadline=None)
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
