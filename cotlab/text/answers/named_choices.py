"""Which options of a multiple-choice question a short answer names: by letter, text or position."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cotlab.text.answers.extract import marked_answer, same_answer
from cotlab.text.answers.question_choices import LETTER_RE, MAX_CHARACTERS
from cotlab.text.answers.reading import answer_key, tidy_answer, to_plain_text
from cotlab.text.written_numbers import word_list

POSITION_WORDS = word_list("first second third fourth fifth sixth seventh eighth ninth tenth")
# "the second option", "option 2", "#2"
_POSITION_RE = re.compile(
    rf"(?i)(?:the\s+)?({'|'.join(POSITION_WORDS)}|last)(?:\s+(?:one|option|choice|answer))"
    r"|(?:(?:option|choice|answer|number|no\.)\s*#?|#)(\d{1,2})"
)
# "A", "(b)", "option C", "d. blotter", "[B]: x"
LETTER_ANSWER_RE = re.compile(
    r"(?is)(?:(?:option|choice|answer)\s+)?(?:[(\[]([A-Z])[)\]]|([A-Z])(?=[.):,]|\s+[-–—]\s|\s*$))"
    r"[.):,]?\s*(?:[-–—:]\s*)?(.*)"
)
_NUMBER_LABEL_RE = re.compile(r"(?:option |choice )?\(?(\d{1,2})[).:]\s{1,3}(\S.{0,200})")
_FUNCTION_TERMS = frozenset(
    word_list(
        "a an the it they them he she we you this that these those is are was were be do does"
    )
)
"""Words in which a text beside a letter may differ from its option."""
# " (about 78% by volume; oxygen is around 21%)" after the text of an option
_ASIDE_RE = re.compile(r"\s\([^()\n]{1,200}\)$")
# "Many students would pick" before "the right coronary artery (B)"
_REJECTS_RE = re.compile(r"(?i)\b(?:not|never|anything but|many|would|might|could)\b|n['’]t\b")
# "Right coronary artery (option C)"
_TRAILING_LETTER_RE = re.compile(
    r"(?s)(.{1,400}?)[(\[](?:(?:[Oo]ption|[Cc]hoice) )?([A-Za-z])[)\]]"
)
# "A, C and D", "both (a) and (c)"
_LETTERS_RE = re.compile(
    r"(?i)(?:both|either|all of|options?|choices?|answers?)?\s*"
    r"(?:[(\[]?[A-Z][)\]]?(?:\s*(?:,|;|&|/|\band\b))+\s*)+[(\[]?([A-Z])[)\]]?"
)
# ", and " of "A, C, and D"
_BETWEEN_PIECES_RE = re.compile(r"(?:(?<!\s)\s+)?[,;]\s*(?:and\s+)?|(?<!\s)\s+and\s+")
_ALL_RE = re.compile(
    r"(?i)all (?:of )?(?:the |these |those )?(?:above|options|choices|these|them)?"
)
_NONE_RE = re.compile(
    r"(?i)none (?:of )?(?:the |these |those )?(?:above |given |listed )?"
    r"(?:above|options|choices|answers|numbers|values|statements|these|them)"
)
# " are both correct" after "A and C"
_ARE_RIGHT_RE = re.compile(
    r"(?i)(?<=[A-Z)\]])\s(?:are|is)\s(?:both\s|all\s)?"
    r"(?:correct|right|true|the (?:correct |right )?(?:answers?|options?|choices?))$"
)
_SIGN_RE = re.compile(r"[^\w\s]")
# "not", "isn't": the sentence may name an option that it rejects
NEGATION_RE = re.compile(
    r"(?i)\b(?:not|never|no|nor|neither|cannot|rather than|instead|unlike|except|without|less|wrong"
    r"|incorrect|or|eliminate|rule out)\b|n['’]t\b"
)


def named_choices(answer: str, choices: Sequence[str]) -> frozenset[int] | None:
    """Return the positions (from 0) of the options that an answer names.

    Parameters
    ----------
    answer : str
        An answer as `final_answer` gives it, or as a suite states it.
    choices : sequence of str
        Texts of the options, in order.

    Returns
    -------
    frozenset of int or None
        Several for "A and C", all others for the option "all of the above". None where no option
        is named, where letter and text disagree, and where letter and text are of two options.
    """
    answer = tidy_answer(to_plain_text(tidy_answer(answer)))[:MAX_CHARACTERS]
    answer = _ARE_RIGHT_RE.sub("", answer)
    by_text = _choice_of_text(answer, choices)
    by_letter = choice_of_letter(answer, choices)
    if by_text is not None and by_letter is not None and by_text != by_letter:
        return None
    single = by_text if by_text is not None else by_letter
    if single is not None:
        if _ALL_RE.fullmatch(choices[single]) and len(choices) > 2:
            return frozenset(range(len(choices))) - {single}
        return frozenset([single])
    return _several_choices(answer, choices)


def word_key(text: str) -> str:
    """Return the words of a text between spaces, for finding one text in another."""
    return f" {answer_key(_SIGN_RE.sub(' ', text))} "


def choice_text(positions: frozenset[int], choices: Sequence[str]) -> str:
    """Return how options are written: "(b) stress", "(a) ice, (c) snow"."""
    return ", ".join(f"({chr(ord('a') + i)}) {choices[i]}" for i in sorted(positions))


def _choice_of_text(answer: str, choices: Sequence[str]) -> int | None:
    """Return the one option whose text an answer is."""
    key = answer_key(answer)
    equal = [i for i, choice in enumerate(choices) if answer_key(choice) == key]
    if len(equal) == 1:
        return equal[0]
    if LETTER_ANSWER_RE.fullmatch(answer):
        return None
    if marked_answer(answer)[0] is not None:
        return None  # "Final answer: (B) ice" may be of two options
    same = [i for i, choice in enumerate(choices) if same_answer(choice, answer)]
    return same[0] if len(same) == 1 else None


def choice_of_letter(answer: str, choices: Sequence[str]) -> int | None:
    """Return the option of a letter or position, and of its text where it is given too."""
    if position_match := _POSITION_RE.fullmatch(answer):
        word, digits = position_match[1], position_match[2]
        position = (
            int(digits) - 1
            if digits
            else len(choices) - 1
            if word.lower() == "last"
            else POSITION_WORDS.index(word.lower())
        )
        return position if 0 <= position < len(choices) else None
    if (
        answer.isdecimal()
        and len(answer) <= 2
        and not any(any(c.isdigit() for c in choice) for choice in choices)
    ):
        return int(answer) - 1 if 1 <= int(answer) <= len(choices) else None
    if numbered := _NUMBER_LABEL_RE.fullmatch(answer):  # "3) Ottawa"
        position = int(numbered[1]) - 1
        is_there = 0 <= position < len(choices)
        return position if is_there and same_answer(numbered[2], choices[position]) else None
    match = LETTER_ANSWER_RE.fullmatch(answer)
    if match is None:
        trailing = _TRAILING_LETTER_RE.fullmatch(answer)
        if trailing is None or LETTER_RE.search(trailing[1]):
            return None
        letter, rest = trailing[2], trailing[1]
        position = ord(letter.lower()) - ord("a")
        is_own = position < len(choices) and _REJECTS_RE.search(choices[position])
        if _REJECTS_RE.search(rest) and not is_own:
            return None
    else:
        letter, rest = match[1] or match[2], match[3]
    position = ord(letter.lower()) - ord("a")
    if position >= len(choices):
        return None
    rest = tidy_answer(rest)
    aside = _ASIDE_RE.search(rest)
    is_denied = aside is not None and NEGATION_RE.search(aside[0]) is not None
    without_aside = "" if is_denied else tidy_answer(_ASIDE_RE.sub("", rest))
    if rest and not any(
        _is_text_of(each, position, choices) for each in {rest, without_aside or rest}
    ):
        return None
    return position


def _is_text_of(text: str, position: int, choices: Sequence[str]) -> bool:
    """Return whether a text beside a letter is its option's, in whole or with more words."""
    others = [i for i in range(len(choices)) if i != position]
    if same_answer(text, choices[position]):
        return True
    key = word_key(text)
    if _has_all_terms(text, choices[position]) and not any(
        _has_all_terms(text, choices[i]) for i in others
    ):
        return True
    return word_key(choices[position]) in key and not any(
        word_key(choices[i]) in key and word_key(choices[i]) not in word_key(choices[position])
        for i in others
    )


def _has_all_terms(text: str, choice: str) -> bool:
    """Return whether a text has the content of an option in other function words.

    It has each of its terms, the same numbers, and denies as much.
    """
    keys = [set(word_key(side).split()) - _FUNCTION_TERMS for side in (choice, text)]
    denials = [len(NEGATION_RE.findall(side)) for side in (choice, text)]
    numbers = [sorted(re.findall(r"\d+", side)) for side in (choice, text)]
    is_same = denials[0] == denials[1] and numbers[0] == numbers[1]
    return is_same and len(keys[0]) > 2 and keys[0] <= keys[1]


def _several_choices(answer: str, choices: Sequence[str]) -> frozenset[int] | None:
    """Return the options of "A and C", "stress, joy", "all of the above"."""
    if _ALL_RE.fullmatch(answer) and " " in answer:
        return frozenset(range(len(choices)))
    if _NONE_RE.fullmatch(answer):
        none_positions = [i for i, choice in enumerate(choices) if _NONE_RE.fullmatch(choice)]
        return frozenset(none_positions if len(none_positions) == 1 else ())
    if re.fullmatch(r"[A-J]{2,10}", answer) and list(answer) == sorted(set(answer)):
        positions = frozenset(ord(letter) - ord("A") for letter in answer)  # "ACD"
        return positions if max(positions) < len(choices) else None
    if _LETTERS_RE.fullmatch(answer):
        letters = re.findall(r"(?i)(?<![a-z])[a-z](?![a-z])", answer)
        positions = frozenset(ord(letter.lower()) - ord("a") for letter in letters)
        return positions if max(positions) < len(choices) else None
    pieces = [part for part in _BETWEEN_PIECES_RE.split(answer) if part]
    pieces = [re.sub(r"(?i)^both\s+", "", part) for part in pieces]
    if not 2 <= len(pieces) <= len(choices):
        return None
    named = [
        _choice_of_text(part, choices)
        if _choice_of_text(part, choices) is not None
        else choice_of_letter(part, choices)
        for part in pieces
    ]
    positions = frozenset(i for i in named if i is not None)
    return positions if None not in named and len(positions) == len(pieces) else None
