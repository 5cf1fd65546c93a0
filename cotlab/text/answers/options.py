"""Options of a multiple-choice question: an index from the moment at which they are read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from cotlab.text.answers.equality import same_value
from cotlab.text.answers.normal import plain_text, tidy, word_key

_MAX_QUESTION_CHARACTERS, _MAX_OPTIONS = 20_000, 26
# "(a) ", "[B] " anywhere; "a) ", "A. ", "B: " at the start of a line
_LABEL_RE = re.compile(
    r"(?<!\w)[(\[]([A-Za-z])[)\]]\s*|(?m:^)[ \t>*_-]{0,6}([A-Za-z])[.):][*_]{0,2}[ \t]+"
)
# "A. 0.3 B. 0.03" on one line
_INLINE_LABEL_RE = re.compile(r"(?<![^\s?:;,])([A-J])[.):]\s+(?=\S)")
_MAX_INLINE_CHARACTERS = 60
_LATEX_LABEL_RE = re.compile(
    r"\\(?:text(?:bf|rm|it)?|math(?:bf|rm))\s?\{\s?(\([A-Za-z]\)|[A-Z]\.)\s?\}"
)
_LATEX_SPACE_RE = re.compile(r"\\(?:qquad|quad|hspace\{[^{}]*\}|[ ,;:])|~")
# "B", "(B)", "Option B: stress", "B. stress"
_LETTER_RE = re.compile(
    r"(?:(?:option|choice|answer)\s)?[(\[]?([A-Za-z])(?P<close>[)\].:]?)(?=$|[\s,.:;)*-])"
    r"(?!\s(?:is|are|was|has)\b)",
    re.IGNORECASE,
)
# "A, C and D"
_LETTER_LIST_RE = re.compile(
    r"(?:(?:both|all of|options?|choices?)\s)?"
    r"(?:[(\[]?([A-J])[)\]]?(?:\s*(?:,|;|&|\band\b)\s*|$)){2,10}"
)
# "kitchen (B)"
_LAST_LETTER_RE = re.compile(r"\(([A-J])\)$")
_BETWEEN_RE = re.compile(" ?[,;] ?(?:and )?| and ")
_OTHER_LETTER_RE = re.compile(r"(?i)^(?:and|or|,|&|/)\s*[(\[]?[a-j]\b")
_DENIED_RE = re.compile(r"\b(?:not|neither|nor|except)\b")
# "It is B", "I think it is C", "leaving D", "not B, the answer is D"
_POINTS_RE = re.compile(
    r"(?i)^(?:(?:i (?:think|believe)\s)?it(?:'s| is)|this rules out [^.]{1,40}? leaving|leaving)\s"
)


@lru_cache(1024)
def listed_options(question: str) -> tuple[str, ...]:
    """Return the options that a question lists by letter, in order; empty where it lists none.

    Letters must run a, b, c … without a gap; the last such list counts.

    Examples
    --------
    >>> listed_options("Which one? (a) shirt (b) paper towel")
    ('shirt', 'paper towel')
    """
    if len(question) > _MAX_QUESTION_CHARACTERS:
        return ()
    if _LATEX_LABEL_RE.search(question):
        question = _LATEX_SPACE_RE.sub(" ", _LATEX_LABEL_RE.sub(r" \1 ", question))
    labels = [(m.start(), m.end(), (m[1] or m[2]).lower()) for m in _LABEL_RE.finditer(question)]
    if options := _labelled_texts(question, labels):
        return options
    labels = [(m.start(), m.end(), m[1].lower()) for m in _INLINE_LABEL_RE.finditer(question)]
    options = _labelled_texts(question, labels)
    return options if len(options) > 2 and max(map(len, options)) <= _MAX_INLINE_CHARACTERS else ()


def _labelled_texts(question: str, labels: Sequence[tuple[int, int, str]]) -> tuple[str, ...]:
    """Return the texts after the last run of labels (start, end, letter) from "a" on."""
    for first in reversed([i for i, label in enumerate(labels) if label[2] == "a"]):
        run = []
        for k, label in enumerate(labels[first : first + _MAX_OPTIONS]):
            if label[2] != chr(ord("a") + k):
                break
            run.append(label)
        ends = [start for start, _, _ in run[1:]] + [len(question)]
        texts = [
            tidy(question[end:next_start].split("\n\n")[0].strip(" ,;"))
            for (_, end, _), next_start in zip(run, ends, strict=True)
        ]
        texts = [t[:-1].rstrip() if t.endswith("$") and t.count("$") == 1 else t for t in texts]
        if len(run) > 1 and all(texts) and len(set(texts)) == len(texts):
            return tuple(texts)
    return ()


def option_text(indices: frozenset[int], options: Sequence[str]) -> str:
    """Return how chosen options are written: "(b) stress", "(a) ice, (c) snow"."""
    return ", ".join(f"({chr(ord('a') + i)}) {options[i]}" for i in sorted(indices))


def written_options(text: str, options: Sequence[str], first: int = 0) -> frozenset[int] | None:
    """Return the options, from the index ``first``, of a text that `option_text` wrote.

    None for any other text.
    """
    for i in range(first, len(options)):
        written = option_text(frozenset([i]), options)
        if text == written:
            return frozenset([i])
        if text.startswith(f"{written}, "):
            others = written_options(text[len(written) + 2 :], options, i + 1)
            if others is not None:
                return others | {i}
    return None


def chosen_options(answer: str, options: Sequence[str]) -> frozenset[int] | None:
    """Return the indices of the options that an answer names by letter, text or both.

    Parameters
    ----------
    answer : str
        An answer as a reply or a suite gives it.
    options : sequence of str
        Texts of the options, in order.

    Returns
    -------
    frozenset of int or None
        Several for "A and C". None where no option is named, or which one cannot be told.
    """
    if (written := written_options(answer, options)) is not None:
        return written
    answer = _POINTS_RE.sub("", plain_text(answer))
    key = word_key(answer)
    by_text = _option_of_words(key, options)
    if by_text is None:
        by_text = _only(i for i, option in enumerate(options) if tidy(option) == answer)
    by_letter = _lettered_option(answer, len(options))
    if by_text is None and by_letter is None and (last := _LAST_LETTER_RE.search(answer)):
        named = _option_of_words(word_key(answer[: last.start()]), options)
        return frozenset([named]) if named == ord(last[1]) - ord("A") else None
    if by_letter is not None and by_text is not None and by_letter != by_text:
        return frozenset([by_letter]) if re.match(r"[(\[]|(?i:option|choice)", answer) else None
    index = by_letter if by_letter is not None else by_text
    if index is not None:
        return frozenset([index])
    if _LETTER_LIST_RE.fullmatch(answer):
        letters = re.findall(r"\b[A-J]\b", answer)
        indices = frozenset(ord(letter) - ord("A") for letter in letters)
        return indices if max(indices) < len(options) else None
    return _listed_texts(answer, options) or _named_option(answer, key, options)


def _only(indices: Iterable[int]) -> int | None:
    """Return the one index; None where there are none or several."""
    found = list(indices)
    return found[0] if len(found) == 1 else None


def _option_of_words(key: str, options: Sequence[str]) -> int | None:
    """Return the one option of these words."""
    return _only(i for i, option in enumerate(options) if word_key(option) == key)


def _lettered_option(answer: str, n_options: int) -> int | None:
    """Return the option whose letter an answer starts with."""
    match = _LETTER_RE.match(answer)
    if match is None:
        return None
    letter, rest = match[1], answer[match.end() :].strip(" :.)-")
    is_marked = answer[:1] in "([" or match["close"] or match.start(1) > 0
    if not (letter.isupper() or is_marked or len(answer) == 1):
        return None
    if letter in "AI" and rest and not is_marked and rest[0].isalpha():
        return None  # "A large dog"
    others = {x.upper() for x in re.findall(r"\b([A-J])\b", rest)} - {letter.upper()}
    if _OTHER_LETTER_RE.match(rest) or (others and len(rest) < 12 and "not" not in rest):
        return None
    index = ord(letter.upper()) - ord("A")
    return index if index < n_options else None


def _listed_texts(answer: str, options: Sequence[str]) -> frozenset[int] | None:
    """Return the options of "stress, joy"."""
    keys = [word_key(option) for option in options]
    pieces = [word_key(piece) for piece in _BETWEEN_RE.split(answer) if piece.strip()]
    if not 2 <= len(pieces) <= len(options) or not all(keys.count(piece) == 1 for piece in pieces):
        return None
    return frozenset(keys.index(piece) for piece in pieces)


def _named_option(answer: str, key: str, options: Sequence[str]) -> frozenset[int] | None:
    """Return the one option that equals an answer, or whose text stands in it."""
    equal = _only(i for i, option in enumerate(options) if same_value(answer, option))
    if equal is not None:
        return frozenset([equal])
    if _DENIED_RE.search(key):
        return None
    keys, rest, named = [word_key(option) for option in options], f" {key} ", []
    for i in sorted(range(len(keys)), key=lambda i: -len(keys[i])):
        if keys[i] and f" {keys[i]} " in rest:  # "10" is not named by "100" alone
            rest = rest.replace(f" {keys[i]} ", " | ")
            named.append(i)
    return frozenset(named) if len(named) == 1 else None
