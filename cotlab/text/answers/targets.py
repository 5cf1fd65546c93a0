"""The answer to an item: extracted with its options in mind, and compared with its targets.

An item may list options (``choices`` in its meta, or in its question) and several right answers
(``targets`` in its meta: any of them, or all where ``match`` is "all").
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from cotlab.core.reasoning import own_text, read_reasoning
from cotlab.core.types import Item
from cotlab.text.answers.arcs import same_arc
from cotlab.text.answers.asked_units import counts_the_same, read_in_question_unit
from cotlab.text.answers.choices import choice_in_reply
from cotlab.text.answers.cut_off import visible_text
from cotlab.text.answers.extract import final_answer, same_answer
from cotlab.text.answers.formulas import read_formula
from cotlab.text.answers.listed_choices import listed_choices, sorted_letters
from cotlab.text.answers.named_choices import choice_text, named_choices
from cotlab.text.answers.notation import matching_brackets, split_items
from cotlab.text.answers.other_kinds import is_of_other_kind
from cotlab.text.answers.points import without_point_name
from cotlab.text.answers.quantities import read_quantity
from cotlab.text.answers.question import expects_set
from cotlab.text.answers.question_choices import find_choices
from cotlab.text.answers.reading import answer_key, has_content, tidy_answer, to_plain_text
from cotlab.text.answers.restated import question_terms
from cotlab.text.answers.solutions import closing_solutions
from cotlab.text.answers.spelled_counts import counts_numbers, none_as_zero, single_as_number
from cotlab.text.answers.stated_words import convergence_as_yes_or_no
from cotlab.text.answers.word_forms import in_other_form

_BETWEEN_PARTS_RE = re.compile(
    r"(?:(?<!\s)\s+)?[,;]\s*(?:and\s+)?|(?<!\s)\s+and\s+|(?:(?<!\s)\s+)?&\s*"
)
"""Between the parts of an answer that lists several."""
# "x = 2" of "x = 2, y = 5"
_ASSIGNMENT_RE = re.compile(r"(?:^|,|\sand\s)\s*([A-Za-z])\s?=\s?([^=,]{1,40}?)(?=$|,|\sand\s)")
# "12.5%"
_PERCENT_RE = re.compile(r"(-?\d{1,15}(?:\.\d{1,15})?(?:\s?/\s?\d{1,15})?)\s?(?:%|percent)")
_FRACTION_QUESTION_RE = re.compile(r"(?i)\b(?:fraction|ratio|decimal)\b")
_PERCENT_QUESTION_RE = re.compile(r"(?i)percent|%")
_FIND_PATTERN = "valueof|find|compute|whatis|determine|evaluate|calculate"
"""What stands before the name of what a question wants, without spaces."""
# "x", not the "a" of "find a number"
_ONE_LETTER_RE = re.compile(r"(?<![A-Za-z\\'’])[A-Zb-z](?![A-Za-z'’])")
# "y and x", "(y, x)": another order than that of points
_REVERSED_RE = re.compile(r"\b(?:y|z)\$?\s?(?:,|and)\s?\$?x\b|\bz\$?\s?(?:,|and)\s?\$?y\b")
# "x_1 = 1" of "x_1 = 1, x_2 = 6"
_INDEXED_RE = re.compile(r"([A-Za-z])_?\{?([1-9])\}?\s?=\s?([^=]{1,60})")
# "5 out of 12", "1 in 6"
_OUT_OF_RE = re.compile(r"(\d{1,6}) (out of|in)(?: (?:a total of|every))? (\d{1,6})")
# "Solve for x.", "What is the value of $x$?"
_ASKED_LETTER_RE = re.compile(
    r"(?i)\b(?:solve for|find|compute|determine|what is|value of)\s(?:the value of\s)?"
    r"\$?([a-z])\$?(?=\s*(?:[.?,;]|$)|\s(?:if|when|where|such|given|in|from)\b)"
)
# "y = 5"
_NAMED_VALUE_RE = re.compile(r"([A-Za-z])\s?=\s?[^=,;]{1,60}")
# "It cannot be determined from the information given."
_UNDETERMINED_RE = re.compile(
    r"(?i)\b(?:(?:cannot|can not|can['’]t|could not) be (?:determined|known|told|found)"
    r"|not enough information|(?:information is )?insufficient|impossible to (?:tell|determine))\b"
)
# "There are no solutions."
_NO_SOLUTION_RE = re.compile(r"(?i)(?:there (?:is|are) )?no solutions?(?: exists?)?")
_SOLUTIONS_QUESTION_RE = re.compile(r"(?i)\b(?:solve|solutions?)\b")
# "(D) the shortest"
_LETTERED_RE = re.compile(r"(\([A-J]\))\s((?:the\s)?[a-z-]+)")
# "(x, y)"
_ORDER_RE = re.compile(r"\(([A-Za-z](?:\s?,\s?[A-Za-z]){1,5})\)")


def item_choices(item: Item) -> tuple[str, ...]:
    """Return the texts of an item's options in order; empty where its answer is open.

    Options that are read from a question count only where the ground truth is one of them.
    """
    listed = item.meta.get("choices")
    if isinstance(listed, Sequence) and not isinstance(listed, str):
        texts = tuple(text for text in listed if isinstance(text, str) and text.strip())
        return texts if len(texts) == len(listed) > 1 else ()
    choices = find_choices(item.question)
    if choices and item.answer is not None and named_choices(item.answer, choices) is None:
        return ()
    return choices


def item_targets(item: Item) -> tuple[str, ...]:
    """Return the right answers of an item: its ``targets`` where its meta lists some."""
    listed = item.meta.get("targets")
    if isinstance(listed, Sequence) and not isinstance(listed, str):
        texts = tuple(text for text in listed if isinstance(text, str) and text.strip())
        if texts:
            return texts
    return () if item.answer is None else (item.answer,)


def answer_to(item: Item, text: str) -> str | None:
    """Extract the answer to an item from a whole reply.

    Parameters
    ----------
    item : Item
        The item that the reply is to.
    text : str
        The reply, or what it says after an answer cue.

    Returns
    -------
    str or None
        The ground truth where the reply is exactly that; the option as "(b) stress" where the reply
        names it by letter, text or position; else as `final_answer`.
    """
    return _answer_among(item.question, item_targets(item), item_choices(item), text)


@lru_cache(512)  # the answer of a reply is read for several scores, one after the other
def _answer_among(
    question: str, targets: tuple[str, ...], choices: tuple[str, ...], text: str
) -> str | None:
    """Extract the answer to a question with these targets and options."""
    if read_reasoning(text).unread:
        return None
    text = own_text(text)
    body = tidy_answer(text)
    for target in targets:
        if body and answer_key(body) == answer_key(tidy_answer(target)) and body.isascii():
            text = target
        elif _names_other(body, target, question):
            return body
        elif is_of_other_kind(text, target, question):
            return text.strip()
        elif _repeats_refusal(body, target):
            return target
    is_target = any(text is target for target in targets)
    if not is_target and not (text := visible_text(text)):
        return None
    if not choices and (solutions := closing_solutions(targets, text)):
        return solutions
    if choices:
        positions = listed_choices(text, choices, question)
        positions = positions or choice_in_reply(text, choices, question)
        if positions:
            return choice_text(positions, choices)
    if is_target:
        return text
    answer = final_answer(text, question)
    return _lettered_choice(answer, choices, question) or answer


def _lettered_choice(answer: str | None, choices: tuple[str, ...], question: str) -> str | None:
    """Return the option of "(D) the shortest", whose words are those of the question."""
    match = _LETTERED_RE.fullmatch(answer or "")
    if match is None or not choices:
        return None
    positions = named_choices(match[1], choices)
    is_of_question = question_terms(match[2]) <= question_terms(question)
    return choice_text(positions, choices) if positions and is_of_question else None


def answer_as_written(item: Item, text: str) -> str | None:
    """Extract an answer in the words of the reply: "b" where `answer_to` says "(b) ice".

    None where what the reply has as its final answer is not the option that `answer_to` reads.
    """
    answer, written_answer = answer_to(item, text), final_answer(text, item.question)
    if written_answer == answer or not item_choices(item):
        return written_answer
    return written_answer if same_answer_to(item, answer, written_answer) else None


def is_right_answer(item: Item, answer: str | None) -> bool | None:
    """Return whether an answer is right; None where that cannot be told.

    That is where the answer or the item's ground truth is missing, and where the number is right
    and counts what may be something else than the question asks for.
    """
    targets = item_targets(item)
    if not targets:
        return None
    verdicts = [same_answer_to(item, answer, target) for target in targets]
    if item.meta.get("match") == "all" and len(targets) > 1:
        return None if answer is None else _names_all(item, answer, targets)
    if True in verdicts:
        return True
    return False if False in verdicts else None


def _names_all(item: Item, answer: str, targets: Sequence[str]) -> bool:
    """Return whether the pieces of an answer are the targets, in any order."""
    pieces = [part for part in _BETWEEN_PARTS_RE.split(tidy_answer(answer)) if part]
    matches = [
        {i for i, target in enumerate(targets) if same_answer_to(item, part, target)}
        for part in pieces
    ]
    return all(matches) and set().union(*matches) == set(range(len(targets)))


def _as_set(text: str, *, of_lists: bool = False) -> str:
    """Return "2, 5", or with ``of_lists`` "(1, 2), (2, 1)", as a set; other text as it is."""
    plain = to_plain_text(tidy_answer(text))
    if len(plain) > 200 or "=" in plain or read_quantity(plain):
        return text
    if plain[:1] in "([{" and matching_brackets(plain):
        return text
    items = split_items(plain)
    are_lists = [
        item[:1] in "([{" and matching_brackets(item) and len(split_items(item[1:-1])) > 1
        for item in items
    ]
    is_set = len(items) > 1 and (all(are_lists) if of_lists else not any(are_lists))
    return f"{{{plain}}}" if is_set else text


def _in_order(text: str, other: str, item: Item) -> str:
    """Return "x = 2, y = 5" as (2, 5) where the question or the ground truth orders x and y."""
    plain = to_plain_text(tidy_answer(text))
    values = dict(_ASSIGNMENT_RE.findall(plain))
    if len(values) < 2 or "(" not in other:
        return text
    for source in (item.answer or "", item.question):
        for order in _ORDER_RE.findall(to_plain_text(source)):
            names = re.findall(r"[A-Za-z]", order)
            if sorted(names) == sorted(values):
                return "(" + ", ".join(values[name].strip() for name in names) + ")"
    letters = sorted(values)
    mentioned = list(dict.fromkeys(_ONE_LETTER_RE.findall(to_plain_text(item.question))))
    names = [name for name in mentioned if name in values]
    is_run = ord(letters[-1]) - ord(letters[0]) == len(letters) - 1
    is_point = set(letters) <= set("xyz") and not _REVERSED_RE.search(item.question)
    if names == letters or (is_run and (is_point or not names)):  # "Solve for x and y"
        return "(" + ", ".join(values[name].strip() for name in letters) + ")"
    return text


def _without_indices(text: str, other: str) -> str:
    """Return "x_1 = 1, x_2 = 6" as "1, 6" beside an answer without names; other text as it is."""
    plain = to_plain_text(tidy_answer(text))
    if len(plain) > 200 or plain.count("=") < 2 or "=" in other:
        return text
    matches = [_INDEXED_RE.fullmatch(item) for item in split_items(plain)]
    by_index = {match[2]: match[3].strip() for match in matches if match}
    letters = {match[1] for match in matches if match}
    is_complete = sorted(by_index) == [str(i + 1) for i in range(len(matches))]
    if not is_complete or len(letters) > 1 or not all(matches):
        return text
    return ", ".join(by_index[index] for index in sorted(by_index))


def _as_fraction(text: str, other: str) -> str:
    """Return "5 out of 12" as 5/12 beside a fraction; other text as it is."""
    plain = to_plain_text(tidy_answer(text))
    match = _OUT_OF_RE.fullmatch(plain)
    formula = read_formula(to_plain_text(tidy_answer(other))) if match and len(other) < 60 else None
    if match is None or formula is None or not re.search(r"[/.%]|frac", other):
        return text
    return f"{match[1]}/{match[3]}" if 0 < int(match[1]) <= int(match[3]) else text


def _value_of_name(text: str, other: str, question: str) -> str:
    """Return "12" for "x^3 = 12" where the question asks for x^3 and the other answer is bare."""
    plain = to_plain_text(tidy_answer(text))
    name, equals, value = plain.partition("=")
    if not equals or "=" in value or "=" in other or len(plain) > 200:
        return text
    compact_name, compact_question = (
        re.sub(r"[\s$*\\()]", "", part) for part in (name, to_plain_text(question[-600:]))
    )
    pattern = rf"(?i)(?:{_FIND_PATTERN}){re.escape(compact_name)}(?![a-z0-9^_])"
    is_asked = re.search(pattern, compact_question)
    is_given = (  # "x^4 - 16 = (x - 2)(...)" where the question has x^4 - 16
        len(compact_name) > 3
        and re.search(r"[-+*/^]", compact_name)
        and compact_name in compact_question
    )
    if "\\begin{" in text:  # whose line ends are gone in plain text
        value = tidy_answer(text).partition("=")[2]
    return value.strip() if is_asked or is_given else text


def _as_share(text: str, other: str, question: str) -> str:
    """Return "50%" as 50/100 beside a number up to 1, where the question asks for no percentage.

    "0.5%" is not the probability 1/2.
    """
    match = _PERCENT_RE.fullmatch(to_plain_text(tidy_answer(text)))
    if match is None or not question or _PERCENT_QUESTION_RE.search(question):
        return text
    quantity = read_quantity(to_plain_text(tidy_answer(other)))
    is_share = (
        quantity is not None
        and not quantity.units
        and (abs(quantity.value) <= 1 or _FRACTION_QUESTION_RE.search(question))
    )
    return f"({match[1]})/100" if is_share else text


def _names_other(text: str, other: str, question: str) -> bool:
    """Return whether a text says what y is where the question asks for x and the other is bare."""
    named = _NAMED_VALUE_RE.fullmatch(to_plain_text(tidy_answer(text)))
    if named and "=" not in other and named[1] in "xyzt" and counts_numbers(question):
        return True  # "x = 2" is no number of solutions
    asked = _ASKED_LETTER_RE.findall(question[-600:]) if named and "=" not in other else []
    if named is None or not asked:
        return False
    return named[1].lower() not in {name.lower() for name in asked}


def _repeats_refusal(text: str, target: str) -> bool:
    """Return whether a reply says that nothing can be determined, as the ground truth does."""
    denials = [_UNDETERMINED_RE.search(side) for side in (text, target)]
    return all(denials) and len(text) <= 200 and not re.search(r"\d|\bbut\b", text)


def _as_empty_set(text: str, question: str) -> str:
    """Return "no solution" as the empty set where a question asks for solutions."""
    is_none = _NO_SOLUTION_RE.fullmatch(tidy_answer(to_plain_text(text)))
    return "∅" if is_none and _SOLUTIONS_QUESTION_RE.search(question[-600:]) else text


def same_answer_to(item: Item, first: str | None, second: str | None) -> bool | None:
    """Return whether two answers to an item are the same, by its options where it has some.

    A bare number is in the unit that the question asks for.
    """
    choices = item_choices(item)
    if choices and first is not None and second is not None:
        positions = [named_choices(answer, choices) for answer in (first, second)]
        if any(named is not None for named in positions):
            return positions[0] == positions[1]
    if first is not None and second is not None:
        keys = [answer_key(to_plain_text(tidy_answer(answer))) for answer in (first, second)]
        if keys[0] == keys[1] and has_content(first, pair=True):
            return True
        if (is_same := same_arc(first, second, item.question)) is not None:
            return is_same
        for rewrite in (without_point_name, convergence_as_yes_or_no, in_other_form):
            first, second = (
                rewrite(first, second, item.question),
                rewrite(second, first, item.question),
            )
        first, second = (sorted_letters(answer, item.question) for answer in (first, second))
        first, second = (
            _as_share(first, second, item.question),
            _as_share(second, first, item.question),
        )
        question = item.question
        if _names_other(first, second, question) or _names_other(second, first, question):
            return False
        if is_of_other_kind(first, second, question) or is_of_other_kind(second, first, question):
            return False
        first_in_unit = read_in_question_unit(item.question, second, first)
        second_in_unit = read_in_question_unit(item.question, first, second)
        if first_in_unit is None or second_in_unit is None:
            return False
        first, second = first_in_unit, second_in_unit
        first, second = none_as_zero(first, question), none_as_zero(second, question)
        first, second = single_as_number(first), single_as_number(second)
        first, second = _as_empty_set(first, question), _as_empty_set(second, question)
        first, second = _in_order(first, second, item), _in_order(second, first, item)
        first, second = _without_indices(first, second), _without_indices(second, first)
        first, second = _as_fraction(first, second), _as_fraction(second, first)
        first, second = (
            _value_of_name(first, second, item.question),
            _value_of_name(second, first, item.question),
        )
        if not choices and expects_set(item.question):
            first, second = _as_set(first), _as_set(second)
        elif not choices and (
            not item.question.strip() or expects_set(item.question, of_lists=True)
        ):
            first, second = _as_set(first, of_lists=True), _as_set(second, of_lists=True)
    verdict = same_answer(first, second)
    if verdict and first is not None and second is not None and item.question:
        return counts_the_same(item.question, first, second)
    return verdict
