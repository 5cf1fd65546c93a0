"""Replies and ground truths that were compared by hand, many of them ends of published chains."""

from __future__ import annotations

import csv
import json
import re
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import pytest

from cotlab.core.types import Item
from cotlab.text.answers.extract import final_answer, same_answer
from cotlab.text.answers.targets import answer_to, is_right_answer, same_answer_to

PAIRS = Path(__file__).with_name("pairs.tsv")
"""Columns: kind, reply, truth, expected (same or different), question. A question may end with a
JSON object, which is the item's meta. The ends of chains are from ProcessBench (Apache-2.0),
BIG-Bench-Mistake (Apache-2.0) and GSM8K (MIT); each expected value is by hand."""
PAIRS_SECOND = Path(__file__).with_name("pairs_second.tsv")
"""As `PAIRS`; replies, ground truths and expected values were written for this project by someone
who had not seen the code, which scored .885 on them at first, with 4 wrong Trues."""
PAIRS_THIRD = Path(__file__).with_name("pairs_third.tsv")
"""As `PAIRS_SECOND`, by someone else; .885 at first too, with 3 wrong Trues."""
PAIRS_FOURTH = Path(__file__).with_name("pairs_fourth.tsv")
"""As `PAIRS_SECOND`, by someone else; .95 at first, with no wrong True."""
PAIRS_FIFTH = Path(__file__).with_name("pairs_fifth.jsonl")
"""As `PAIRS_SECOND`, by three others, in the wordings of many models, as JSON lines; .853 at first
(.926 of 54 multiple-choice questions, .827 of the 150 others), with no wrong True. What is still
missed is written otherwise than these rules read: spellings (hyperkalaemia), unit vectors, a part
of a name, an option in a subordinate clause."""
PAIRS_SIXTH = Path(__file__).with_name("pairs_sixth.jsonl")
"""As `PAIRS_FIFTH`, by two others, 200 each; .905 and .925 at first, with no and 2 wrong Trues. The
rules were then mended with sight of the first 200; of the second they read .965."""
PAIRS_STATED = Path(__file__).with_name("pairs_stated.jsonl")
"""As `PAIRS_FIFTH`: what a last sentence states (sets, lists, expressions, equations, days, names),
sets of real numbers and solutions with an integer parameter, as many wrong as right. Written with
sight of the code, so every one of them holds."""
PAIRS_CLAUSES = Path(__file__).with_name("pairs_clauses.jsonl")
"""As `PAIRS_STATED`: a question that counts beside a sentence of several clauses ("had 12 apples
and ate 7"), counts in words ("so there is one solution"), options that state a number,
combinations, factorials, rounded and mixed numbers, functions by cases, matrices with a factor,
names and what is asked for of two. Of the first 378 the rules before read .638 with 31 wrong
Trues; of three more lots of 297, 188 and 63, each written after the rules were mended on those
before, .943, .883 and .873 with 7, 3 and 4. They were then mended on these too; the nine that are
still missed are left out."""
PAIRS_EIGHTH = Path(__file__).with_name("pairs_eighth.jsonl")
"""As `PAIRS_SEVENTH`, by someone else; .948 of these 327 at first, with 2 wrong Trues. The rules
were then mended with sight of the first 171, and read 1.00 of the other 156 afterwards; the kinds
of failure among those were known by then."""
PAIRS_NINTH = Path(__file__).with_name("pairs_ninth.jsonl")
"""As `PAIRS_EIGHTH`, by someone else, after the rules for those; .95 at first, with no wrong True.
The rules were then mended with sight of these. What is still missed: constants with other names in
a general solution, a part of a name, "60 stamps last 5 weeks", and options that are letters."""
PAIRS_ENDINGS = Path(__file__).with_name("pairs_endings.jsonl")
"""As `PAIRS_STATED`, of the kinds that were mended with sight of the ninth: solutions in two
equations, minutes of arc, named points, a date at the end, no real solutions, convergence. Of 92
such pairs the rules before read .663 with 6 wrong Trues, the mended ones .880 with 5. They were
then mended on these too; the one that is still missed is left out."""
PAIRS_TENTH = Path(__file__).with_name("pairs_tenth.jsonl")
"""As `PAIRS_NINTH`, by someone else, after the rules for those; .827 of 220 at first, with no wrong
True. Two are left out that need a language or a country to be known. The rules were then mended
with sight of these. What is still missed: a part of a name (Darwin, President Lincoln), and who won
where a sentence says who came second."""
PAIRS_FORMS = Path(__file__).with_name("pairs_forms.jsonl")
"""As `PAIRS_STATED`, of the kinds that were mended with sight of the tenth and what looks like
them, two in three wrong: unit vectors, constants of integration, bases, remainders, eigenvalues,
limits, remarks, money and dates of other regions, base units, true and possible, directions, names
in quotes, kinds of names, ordinals, several options. Of the first 362 the rules before read .718,
with 5 wrong Trues. Of 97 more in other wordings they read .402, and the rules that were mended on
the first .722, with no wrong True; they were then mended on these too, and the two that are still
missed are left out."""
PAIRS_STRICT = Path(__file__).with_name("pairs_strict.jsonl")
"""As `PAIRS_STATED`: what looks like an answer and is another (lists and labels, primes, indices,
denials, bounds, units, bases, ranges, ordinals, dates, options), 5 in 6 of them wrong. Invented to
find wrong Trues: of the first 448 pairs 100 were such at first; of 258 more (kind "second") 70, and
27 with the rules that were mended on the first. They were then mended on these too."""
PAIRS_SEVENTH = Path(__file__).with_name("pairs_seventh.jsonl")
"""As `PAIRS_FIFTH`, written before these rules were looked at; .895 at first, with 12 wrong Trues.
One of those was a fault of the pair (12:00 may be midnight), which says PM since."""
PAIRS_KINDS = Path(__file__).with_name("pairs_kinds.jsonl")
"""As `PAIRS_SEVENTH`, after the rules for them: labels, clocks, money, opposites, yes, no, words.
.696 with the rules before, with 14 wrong Trues, and .873 with 4 of them with those mended on the
seventh. They were then mended on these too."""
PAIRS_GRADERS = Path(__file__).with_name("pairs_graders.tsv")
"""Kinds of answers that published graders are tested with (math-verify, MARIO-EVAL, OlympiadBench,
lm-evaluation-harness and smaller ones, all read on GitHub) and more of the same kinds, with the
expected values of this project's rules: never rounded. At first .88, .73 and .89 in three parts of
219, 63 and 184, with 5, 7 and no wrong Trues."""


PAIRS_ELEVENTH = Path(__file__).with_name("pairs_eleventh.jsonl")
"""As `PAIRS_NINTH`, by someone else, after the rules for the tenth and without mending since: .955,
with no wrong True. Missed: 6! beside 720 ways, a box with lines or a computation, a set by its
condition, "the correct options are C and A", "minus 6 °C", and three in other words."""
PAIRS_TWELFTH = Path(__file__).with_name("pairs_twelfth.jsonl")
"""As `PAIRS_ELEVENTH`, by three others, 200 each, with replies that end early, refuse or ask back;
the rules before read .935, .92 and .925 of them, with two wrong Trues; mended on the first they
read .93 of the second, and on both .95 of the third. They are narrower since, and miss a few."""
PAIRS_THIRTEENTH = Path(__file__).with_name("pairs_thirteenth.jsonl")
"""As `PAIRS_TWELFTH`, by someone else, after its rules: .93, with no wrong True."""
PAIRS_FOURTEENTH = Path(__file__).with_name("pairs_fourteenth.jsonl")
PAIRS_FIFTEENTH = Path(__file__).with_name("pairs_fifteenth.jsonl")
"""As `PAIRS_THIRTEENTH`, by two others: .87 and .84 (40 short facts each), two wrong Trues."""


class Pair(NamedTuple):
    kind: str
    reply: str
    truth: str
    expected: str
    question: str


def read_pairs(path: Path) -> list[Pair]:
    with path.open(encoding="utf-8", newline="") as stream:
        rows = csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)
        next(rows)
        return [Pair(*row) for row in rows]


def verdict(pair: Pair) -> bool | None:
    question = pair.question.replace("\\n", "\n")
    match = re.search(r'\{"(?:choices|targets).*\}\s*$', question, re.DOTALL)
    meta = json.loads(match[0]) if match else {}
    item = Item("1", question[: match.start()] if match else question, pair.truth, (), meta=meta)
    reply = re.sub(r"\\n(?![a-z])", "\n", pair.reply)
    return is_right_answer(item, answer_to(item, reply))


def wrong_verdicts(pairs: list[Pair]) -> dict[str, list[Pair]]:
    """Pairs by error: a wrong True counts for a different pair, anything but True for a same
    one."""
    wrong = defaultdict(list)
    for pair in pairs:
        if (verdict(pair) is True) != (pair.expected == "same"):
            wrong["missed" if pair.expected == "same" else "wrong True"].append(pair)
    return wrong


def test_pairs_by_hand() -> None:
    pairs = read_pairs(PAIRS)
    assert len(pairs) >= 400
    wrong = wrong_verdicts(pairs)
    assert wrong["wrong True"] == []
    assert len(wrong["missed"]) <= 0.01 * len(pairs), wrong["missed"]


@pytest.mark.parametrize(
    ("path", "n"),
    [(PAIRS_SECOND, 200), (PAIRS_THIRD, 200), (PAIRS_FOURTH, 200), (PAIRS_GRADERS, 442)],
    ids=lambda value: value.stem if isinstance(value, Path) else "",
)
def test_pairs_written_without_sight_of_the_code(path: Path, n: int) -> None:
    pairs = read_pairs(path)
    assert len(pairs) == n
    wrong = wrong_verdicts(pairs)
    assert wrong["wrong True"] == []
    assert len(wrong["missed"]) <= 0.02 * len(pairs), wrong["missed"]


@pytest.mark.parametrize(
    ("path", "n", "share"),
    [
        (PAIRS_FIFTH, 204, 0.06),
        (PAIRS_SIXTH, 400, 0.075),
        (PAIRS_ELEVENTH, 200, 0.045),
        (PAIRS_THIRTEENTH, 200, 0.07),
        (PAIRS_FOURTEENTH, 200, 0.1),
        (PAIRS_FIFTEENTH, 200, 0.13),
    ],
)
def test_pairs_in_the_wordings_of_many_models(path: Path, n: int, share: float) -> None:
    wrong_trues, n_missed = [], 0
    lines = path.read_text("utf-8").splitlines()
    for line in lines:
        pair = json.loads(line)
        meta = {"choices": pair["choices"]} if pair["choices"] else {}
        item = Item("1", pair["question"] or "", pair["reference"], (), meta=meta)
        is_right = is_right_answer(item, answer_to(item, pair["reply"])) is True
        n_missed += pair["correct"] and not is_right
        wrong_trues += [pair] * (is_right and not pair["correct"])
    assert len(lines) == n and wrong_trues == []
    assert n_missed <= share * n


@pytest.mark.parametrize(
    ("path", "n"),
    [
        (PAIRS_SEVENTH, 200),
        (PAIRS_EIGHTH, 327),
        (PAIRS_NINTH, 200),
        (PAIRS_TENTH, 218),
        (PAIRS_TWELFTH, 600),
        (PAIRS_KINDS, 79),
    ],
)
def test_numbers_of_another_kind_and_what_stands_beside_them(path: Path, n: int) -> None:
    pairs = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    wrong_trues, missed = [], []
    for pair in pairs:
        meta = {"choices": pair["choices"]} if pair["choices"] else {}
        item = Item("1", pair["question"], pair["reference"], (), meta=meta)
        is_right = is_right_answer(item, answer_to(item, pair["reply"])) is True
        wrong_trues += [pair] * (is_right and not pair["correct"])
        missed += [pair] * (pair["correct"] and not is_right)
    assert len(pairs) == n and wrong_trues == []
    assert len(missed) <= 0.02 * n, missed


@pytest.mark.parametrize(
    ("question", "kind", "counted"),
    [
        ("How many students are in the room?", "Room 12", "12 students"),
        ("How many eggs are left?", "12 o'clock", "12 eggs"),
        ("How many eggs are left?", "12:00", "12"),
        ("How many people lived there?", "12 AD", "12 people"),
        ("How many pounds does it weigh?", "£12", "12 lb"),
        ("What percent passed?", "12% failed", "12%"),
    ],
)
def test_a_number_of_another_kind_is_never_the_count(
    question: str, kind: str, counted: str
) -> None:
    item = Item("1", question, "12", ())
    assert is_right_answer(item, answer_to(item, counted)) is True
    for wording in (kind, f"It is {kind}.", f"The answer is {kind}.", f"\\boxed{{{kind}}}"):
        assert is_right_answer(item, answer_to(item, wording)) is not True, wording
        assert same_answer_to(item, "12", kind) is not True
    same = Item("1", question, kind, ())
    assert is_right_answer(same, answer_to(same, kind)) is True


@pytest.mark.parametrize(
    ("path", "n", "n_same"),
    [
        (PAIRS_STATED, 96, 48),
        (PAIRS_CLAUSES, 917, 360),
        (PAIRS_ENDINGS, 91, 38),
        (PAIRS_FORMS, 533, 189),
    ],
)
def test_what_a_last_sentence_states_and_what_it_does_not(path: Path, n: int, n_same: int) -> None:
    pairs = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    wrong = []
    for pair in pairs:
        meta = {"choices": pair["choices"]} if pair["choices"] else {}
        item = Item("1", pair["question"], pair["reference"], (), meta=meta)
        is_right = is_right_answer(item, answer_to(item, pair["reply"])) is True
        wrong += [pair] * (is_right != pair["correct"])
    assert len(pairs) == n and sum(pair["correct"] for pair in pairs) == n_same
    assert wrong == []


def test_what_looks_like_an_answer_and_is_another() -> None:
    pairs = [json.loads(line) for line in PAIRS_STRICT.read_text("utf-8").splitlines()]
    wrong_trues, missed = [], []
    for pair in pairs:
        meta = {"choices": pair["choices"]} if pair["choices"] else {}
        item = Item("1", pair["question"], pair["reference"], (), meta=meta)
        is_right = is_right_answer(item, answer_to(item, pair["reply"])) is True
        wrong_trues += [pair] * (is_right and not pair["correct"])
        missed += [pair] * (pair["correct"] and not is_right)
    assert len(pairs) == 706 and sum(not pair["correct"] for pair in pairs) == 570
    assert wrong_trues == []
    assert len(missed) <= 0.02 * len(pairs), missed


RIVALS = [
    ("She baked 48 cookies for 12 children.", "How many cookies did she bake?", "48"),
    ("Each of the 12 children gets 4 cookies.", "How many cookies does each child get?", "4"),
    ("The price went up by 20% to $60.", "What is the new price in dollars?", "60"),
    ("The price went up by 20% to $60.", "By what percent did the price go up?", "20"),
    ("He can make 7 cakes and will have 2 eggs left.", "How many cakes can he make?", "7"),
    ("He can make 7 cakes and will have 2 eggs left.", "How many eggs are left?", "2"),
    ("The mean is 12 and the median is 10.", "What is the mean?", "12"),
    ("The bus takes 45 minutes, 15 minutes longer than the train.", "How many minutes?", "45"),
    ("So 40% of the 50 people came, which is 20.", "How many people came?", "20"),
    ("He has 8 apples, 3 of which are red.", "How many red apples does he have?", "3"),
    ("He has 8 apples, 3 of which are red.", "How many apples does he have?", "8"),
    ("The car needs 30 litres of fuel, 400 km later.", "What happened?", None),
]


@pytest.mark.parametrize(("reply", "question", "right"), RIVALS)
def test_the_question_tells_which_number_is_the_answer(
    reply: str, question: str, right: str | None
) -> None:
    for number in re.findall(r"\d+", reply):
        item = Item("1", question, number, ())
        assert (is_right_answer(item, answer_to(item, reply)) is True) == (number == right)


@pytest.mark.parametrize(
    ("reply", "truth", "question", "expected"),
    [
        ("It takes 2 hours.", "2", "How many minutes does it take?", False),
        ("It takes 2 hours.", "120", "How many minutes does it take?", True),
        ("The angle is 45 radians.", "45°", "", False),
        ("The chance is 0.25%.", "1/4", "What is the chance?", False),
        ("The chance is 25%.", "1/4", "What is the chance?", True),
        ("It fell by 0.25%.", "0.25", "By what percent did it fall?", True),
        ("It is $90, and with the tax it comes to **$96.30**.", "90", "How much in all?", False),
        ("It is $90, and with the tax it comes to **$96.30**.", "96.30", "How much in all?", True),
        ("It starts at 9 o'clock in the evening.", "9 AM", "", False),
        ("It was 5 degrees Celsius below zero.", "5 °C", "", False),
        ("It leaves at a quarter to eight.", "7:45", "", True),
        ("The equation of the line is y = -x + 4.", "x + y = 4", "", True),
        ("The equation of the line is y = -x + 4.", "x - y = 4", "", False),
        ("Iron is denser, so it does not float.", "no", "Does iron float?", True),
        ("A whale is a mammal and not a fish.", "yes", "Is a whale a fish?", False),
        ("The sentence is not plausible.", "implausible", "Is it plausible or implausible?", True),
        ("Either A or B is correct.", "B", "", False),
        (r"\[ A = \pi r^2 = 25\pi \text{ square units} \]", r"25\pi", "What is the area?", True),
        ("2x = 8\nx = 4\n\nLet me verify: 2(4) = 8 ✓", "4", "What is x?", True),
        ("2x = 8\nx = 5\n\nLet me check: 2(5) = 10, so x = 4.", "5", "What is x?", False),
        (
            "He leaves at 2:15 and drives 90 minutes, arriving at 3:45 p.m.",
            "3:45 PM",
            "At what time does he arrive?",
            True,
        ),
        (
            "He leaves at 2:15 and drives 90 minutes, arriving at 3:45 p.m.",
            "2:15",
            "At what time does he arrive?",
            False,
        ),
        ("2^{10} = 1024, approximately 10^3.", "1024", "Compute 2^10.", True),
        ("Infinity", r"\infty", "", True),
        ("-Infinity", r"\infty", "", False),
        ("no solution", r"\emptyset", "Find the solution set.", True),
        ("no solution", r"\emptyset", "What is it?", False),
        ("3 remainder 2", "3 R 2", "", True),
        ("3 remainder 2", "3 R 1", "", False),
        ("3 remainder 2", "3.2", "", False),
        ("Tue", "Tuesday", "", True),
        ("Thu", "Tuesday", "", False),
        ("Mar.", "March", "", True),
        ("Mar", "May", "", False),
        ("5 feet 6 inches", "5'6\"", "", True),
        ("5 feet 8 inches", "5'6\"", "", False),
        ("The roots are 5 and 2.", "2, 5", "Find all roots.", True),
        ("\\boxed{(5, 2)}", "(2, 5)", "Find all ordered pairs.", False),
    ],
)
def test_kinds_of_answers(reply: str, truth: str, question: str, expected: bool) -> None:
    item = Item("1", question, truth, ())
    assert (is_right_answer(item, answer_to(item, reply)) is True) == expected


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("15 - y", "15"),  # an operation is no unit
        (r"15 - \frac{y}{x}", "15"),
        ("15 (y)", "15"),
        ("|15 - y|", "15 - y"),  # equal wherever y is small
        ("|x - 10^6|", "10^6 - x"),
        ("11 7/6", "73/6"),  # no mixed number
        ("11.0 4/9", "103/9"),
        ("1, 2, 3, ...", "1, 2, 3"),
        ("P(A) = 1/3", "P(B) = 1/3"),
        ("d(6) = 1/9", "d(72) = 1/9"),
        (r"\cos(x) = 3/5", r"\sin(x) = 3/5"),
        ("x = 5", "x + y = 5"),
        ("7 = 11a + c", "11a + c"),
        (r"\sqrt{x} = 4", "4"),
        (r"\log_2 x = 3", "3"),
        ("4210_7", "4210"),
        ("-1:16", "1:16"),
    ],
)
def test_what_looks_alike_is_not_the_same(first: str, second: str) -> None:
    assert same_answer(first, second) is False
    assert same_answer(second, first) is False


@pytest.mark.parametrize(
    ("reply", "question", "answer"),
    [
        ("It holds for all points in the domain of \\(f\\).", "", None),
        ("So \\(2x^2 + 1\\) takes that form for such x.", "", None),
        ("There are $2$ solutions.", "", "$2$ solutions"),
        ("So $AB = 10$ units.", "", "$AB = 10$ units"),
        ("He can skip 4 classes because 10 - 4 = 6.", "How many can he miss?", None),
        ("He has 6 classes left because 10 - 4 = 6.", "How many are left?", "6"),
        ("Ann is 10 - 4 = 6 years old.\nSo, Eve is 6 + 2 = 8 years old.", "", "8 years old"),
        ("A month brings 24 answers * 2 points/answer = 48 points.\nSo 48 + 16 = 64.", "", "64"),
        ("So it is 7. <|im_end|>\n<|im_start|>user\nAnd 3 + 4?", "", "7"),
        ("The largest $n$ is 34. I hope it is correct.", "", "34"),
        ("We land on **Thursday** in 10 days.", "What day is it in 10 days?", "Thursday"),
    ],
)
def test_no_number_of_a_formula_or_a_reason_is_the_answer(
    reply: str, question: str, answer: str | None
) -> None:
    assert final_answer(reply, question) == answer
