"""Several options that a last sentence names: "Both A and C are even", "Options 1 and 3"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cotlab.text.answers.question import last_question
from cotlab.text.answers.reading import tidy_answer
from cotlab.text.steps import sentence_spans

_MAX_CHARACTERS = 300
_SO = r"(?i:(?:so|thus|therefore|hence),?\s)?"
_LETTER = r"(?:(?i:options?|choices?|answers?)\s)?\(?[A-J]\)?"
# "Both A and C are even", "So options (A), (B) and (D) are right"
_LETTERS_ARE_RE = re.compile(
    rf"{_SO}(?i:only\s)?(?i:both\s)?((?:{_LETTER},\s){{0,8}}{_LETTER},?\s(?:and|&)\s{_LETTER})"
    r"\s(?:are|is)\s(?:both\s|all\s)?([a-z][a-z ]{1,60})"
)
# "Options 1 and 3 are the correct ones"
_NUMBERS_ARE_RE = re.compile(
    rf"{_SO}(?i:only\s)?(?i:both\s)?(?i:options|choices|answers|statements)\s"
    r"((?:\d{1,2},\s){0,8}\d{1,2},?\s(?:and|&)\s\d{1,2})"
    r"(?:\s(?:are|is)\s(?:both\s|all\s)?([a-z][a-z ]{1,60}))?"
)
# "The correct ones are options 2 and 3"
_ARE_NUMBERS_RE = re.compile(
    rf"{_SO}(?i:the\s)?(?i:correct|right)\s(?i:(?:ones?|answers?|options?|choices?|statements?)\s)"
    r"(?i:is|are)\s(?i:options|choices|answers|statements|numbers)\s"
    r"((?:\d{1,2},\s){0,8}\d{1,2},?\s(?:and|&)\s\d{1,2})()"
)
_ALL_THAT_APPLY_RE = re.compile(r"(?i)\b(?:select|choose|mark|tick|check) all\b|\ball that apply\b")
_RIGHT_RE = re.compile(
    r"(?:the\s)?(?:correct|right|true)(?:\s(?:ones?|answers?|options?|choices?|statements?))?"
)
_DENIED_RE = re.compile(
    r"(?i)\b(?:not|never|no|none|neither|nor|false|incorrect|wrong|except|least|untrue)\b|n['’]t\b"
)
_RIGHT_QUESTION_RE = re.compile(
    r"(?i)\b(?:which|select|choose|pick|mark|find|identify|tick|what|name)\b"
)


def listed_choices(text: str, choices: Sequence[str], question: str) -> frozenset[int] | None:
    """Return the positions of the options that the last sentence of a reply names as right.

    Parameters
    ----------
    text : str
        A whole reply.
    choices : sequence of str
        Texts of the options, in order.
    question : str
        The question: what a sentence says of the options must be what it asks for, in its words.

    Returns
    -------
    frozenset of int or None
        Positions from 0; None where the last sentence is no such list, or denies something.
    """
    spans = sentence_spans(text[-_MAX_CHARACTERS * 4 :])
    if not spans:
        return None
    sentence = text[-_MAX_CHARACTERS * 4 :][slice(*spans[-1])].replace("*", "").strip(" .!\n")
    last = last_question(question)
    if len(sentence) > _MAX_CHARACTERS or _DENIED_RE.search(f"{sentence} {last}"):
        return None
    if match := _LETTERS_ARE_RE.fullmatch(sentence):
        letters = re.findall(r"(?<![A-Za-z])[A-J](?![A-Za-z])", match[1])
        positions = [ord(letter) - ord("A") for letter in letters]
    elif match := _NUMBERS_ARE_RE.fullmatch(sentence) or _ARE_NUMBERS_RE.fullmatch(sentence):
        if any(re.search(r"\d", choice) for choice in choices):
            return None  # the numbers may be those of the options
        positions = [int(number) - 1 for number in re.findall(r"\d+", match[1])]
    else:
        return None
    if not _has_predicate(match[2], last) or len(set(positions)) < len(positions):
        return None
    return frozenset(positions) if all(0 <= i < len(choices) for i in positions) else None


def _has_predicate(predicate: str | None, last: str) -> bool:
    """Return whether "even" or "the correct ones" is what the last question asks for."""
    if not predicate or _RIGHT_RE.fullmatch(predicate.strip()):
        return bool(_RIGHT_QUESTION_RE.search(last))
    question_terms = re.findall(r"[a-z]+", last.lower())
    terms = predicate.split()
    return any(
        question_terms[i : i + len(terms)] == terms for i in range(len(question_terms))
    ) and bool(_RIGHT_QUESTION_RE.search(last))


def sorted_letters(text: str, question: str) -> str:
    """Return "DCA" as "ACD" where a question asks for all options that apply."""
    tidy = tidy_answer(text)
    is_several = re.fullmatch(r"[A-J]{2,10}", tidy) and len(set(tidy)) == len(tidy)
    return "".join(sorted(tidy)) if is_several and _ALL_THAT_APPLY_RE.search(question) else text
