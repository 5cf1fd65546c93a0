"""The options that a multiple-choice question lists: "(a) shirt (b) printer", or one a line."""

from __future__ import annotations

import re
from functools import lru_cache

from cotlab.text.answers.reading import answer_key, tidy_answer

MAX_CHARACTERS, _MAX_OPTIONS = 20_000, 26
"""Characters of a question that are read, and options of a question."""
_MAX_INLINE_TEXT = 60
"""Characters of an option in a list on one line without brackets."""
# "(a) ", "[B] " anywhere; "a) ", "A. ", "B: " at the start of a line
LETTER_RE = re.compile(
    r"(?<!\w)[(\[]([A-Za-z])[)\]]\s*|(?m:^)[ \t>*_-]{0,6}([A-Za-z])[.):][*_]{0,2}[ \t]+"
)
# "A. 0.3 B. 0.03", "A) 3/2 B) 2/3" on one line, where no other list is
_INLINE_LETTER_RE = re.compile(r"(?<![^\s?:;,])([A-J])[.):]\s+(?=\S)")
# "\\textbf{(A)}\\ 30 \\qquad"
_LATEX_LETTER_RE = re.compile(
    r"\\(?:text(?:bf|rm|it)?|math(?:bf|rm))\s?\{\s?(\([A-Za-z]\)|[A-Z]\.)\s?\}"
)
_LATEX_SPACE_RE = re.compile(r"\\(?:qquad|quad|hspace\{[^{}]*\}|[ ,;:])|~")


@lru_cache(1024)
def find_choices(question: str) -> tuple[str, ...]:
    """Return the options that a question lists, in order; nothing where it lists none.

    Letters must run a, b, c … without a gap; the last such list counts.

    Examples
    --------
    >>> find_choices("Which one? (a) shirt (b) paper towel")
    ('shirt', 'paper towel')
    """
    if len(question) > MAX_CHARACTERS:
        return ()
    if _LATEX_LETTER_RE.search(question):
        question = _LATEX_SPACE_RE.sub(" ", _LATEX_LETTER_RE.sub(r" \1 ", question))
    labels = [(m.start(), m.end(), (m[1] or m[2]).lower()) for m in LETTER_RE.finditer(question)]
    if choices := _labelled_texts(question, labels):
        return choices
    labels = [(m.start(), m.end(), m[1].lower()) for m in _INLINE_LETTER_RE.finditer(question)]
    choices = _labelled_texts(question, labels)
    return choices if len(choices) > 2 and max(map(len, choices)) <= _MAX_INLINE_TEXT else ()


def _labelled_texts(question: str, labels: list[tuple[int, int, str]]) -> tuple[str, ...]:
    """Return the texts after the last run of labels (start, end, letter) from "a" on."""
    starts = [i for i, (_, _, letter) in enumerate(labels) if letter == "a"]
    for first in reversed(starts):
        run = []
        for k, label in enumerate(labels[first : first + _MAX_OPTIONS]):
            if label[2] != chr(ord("a") + k):
                break
            run.append(label)
        ends = [start for start, _, _ in run[1:]] + [len(question)]
        texts = tuple(
            _without_dollar(tidy_answer(question[end:next_start].split("\n\n")[0].strip(" ,;")))
            for (_, end, _), next_start in zip(run, ends, strict=True)
        )
        if len(run) > 1 and all(texts) and len(set(map(answer_key, texts))) == len(texts):
            return texts
    return ()


def _without_dollar(text: str) -> str:
    """Return a text without the one dollar sign at its end: "42$" of "$(A) 30 (B) 42$"."""
    return text[:-1].rstrip() if text.endswith("$") and text.count("$") == 1 else text
