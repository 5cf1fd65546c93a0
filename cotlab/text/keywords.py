"""Count process words (step, because, calculate) and result words (answer, therefore) in a text.

The English lists are our own; counts of other studies use other lists and are not comparable.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple


def _phrases(listed: str) -> tuple[str, ...]:
    """Split a string of phrases at its commas."""
    return tuple(phrase.strip() for phrase in listed.split(","))


PROCESS = _phrases(
    "step, steps, step by step, first, firstly, first of all, to begin with, start by, start with,"
    " next, then, after that, now, let me, let us, let's, let, suppose, assume, assuming, consider,"
    " considering, recall, remember, given that, because, since, if we, we know, we need, we have"
    " to, i need, i have to, need to find, to find, to get, in order to, calculate, calculating,"
    " calculation, compute, computing, work out, working out, figure out, break down, break it"
    " down, add, adding, subtract, subtracting, multiply, multiplying, divide, dividing,"
    " substitute, substituting, plug in, simplify, simplifying, rewrite, rearrange, factor out,"
    " expand, solve for, convert, converting, compare, comparing, count, counting, check, checking,"
    " double check, verify, verifying, make sure, look at, looking at, think, think about, try,"
    " trying, wait, hmm, actually, alternatively, on the other hand, maybe, perhaps, which means,"
    " this means, meaning that, which gives, note that, notice that, observe that, the reason"
)
"""Words of a text that works something out."""
RESULT = _phrases(
    "answer, answers, answer is, the answer, the answer is, so the answer is, final answer, the"
    " final answer is, result, results, the result is, final result, solution, the solution is,"
    " conclusion, in conclusion, conclude, concluded, we conclude, therefore, thus, hence,"
    " consequently, accordingly, as a result, it follows that, so we have, we get, in summary, to"
    " sum up, in short, in total, overall, ultimately, finally, in the end, clearly, obviously, of"
    " course, evidently, certainly, without a doubt, it is clear that, it is obvious that, simply"
    " put, the correct answer, the correct option, correct answer"
)
"""Words of a text that states a result or asserts one."""
_BETWEEN = r"[\s\-\u2010\u2011]{1,3}"
_WORD = r"\w\u0300-\u036f\-\u2010\u2011"


class KeywordMatch(NamedTuple):
    """One keyword of a text."""

    start: int
    """First character of the text's NFKC form."""
    end: int
    phrase: str
    kind: str
    """Its list: "process" or "result"."""


class Counts(NamedTuple):
    """Numbers of process and result words of a text."""

    process: int
    result: int

    @property
    def ratio(self) -> float | None:
        """Process words per result word, at least 0; None without a result word."""
        return self.process / self.result if self.result else None

    @property
    def share(self) -> float | None:
        """Share of result words, in [0, 1]; None without any keyword."""
        return self.result / (self.process + self.result) if self.process + self.result else None


def find_keywords(
    text: str, process: Sequence[str] = PROCESS, result: Sequence[str] = RESULT
) -> tuple[KeywordMatch, ...]:
    """Return the keywords of a text from left to right.

    Parameters
    ----------
    text : str
        Read in Unicode's compatibility form (NFKC), so that full-width letters are letters.
    process, result : sequence of str
        Words or phrases in any case.

    Returns
    -------
    tuple of KeywordMatch
        Disjoint: at each position the longest phrase of both lists matches, and what it covers is
        not counted again.

    Raises
    ------
    ValueError
        If a phrase is in both lists.

    Notes
    -----
    A keyword is a whole word: "thus" is not in "enthusiasm", "step" not in "steps" or "footstep",
    "first" not in "first-class", "answer" not in "answer's". The words of a phrase may be joined by
    white space or hyphens.
    """
    kinds, pattern = _compiled(tuple(process), tuple(result))
    if pattern is None:
        return ()
    plain = unicodedata.normalize("NFKC", text).replace("’", "'")
    return tuple(
        KeywordMatch(m.start(), m.end(), _plain(m[0]), kinds[_plain(m[0])])
        for m in pattern.finditer(plain)
    )


def count_keywords(
    text: str, process: Sequence[str] = PROCESS, result: Sequence[str] = RESULT
) -> Counts:
    """Count the process and result words of a text as `find_keywords` finds them."""
    kinds = [match.kind for match in find_keywords(text, process, result)]
    return Counts(kinds.count("process"), kinds.count("result"))


@cache
def _compiled(
    process: tuple[str, ...], result: tuple[str, ...]
) -> tuple[dict[str, str], re.Pattern[str] | None]:
    """Return the list of each phrase, and one pattern for all phrases, the longest first."""
    lists = {
        "process": {_plain(entry) for entry in process} - {""},
        "result": {_plain(entry) for entry in result} - {""},
    }
    if both := lists["process"] & lists["result"]:
        raise ValueError(
            f"a keyword is of the process or of the result, not of both: {', '.join(sorted(both))}"
        )
    kinds = {phrase: kind for kind, phrases in lists.items() for phrase in phrases}
    if not kinds:
        return {}, None
    ordered = sorted(kinds, key=lambda phrase: (-len(phrase), phrase))
    any_of = "|".join(_BETWEEN.join(map(re.escape, phrase.split())) for phrase in ordered)
    return kinds, re.compile(
        rf"(?<![{_WORD}])(?<!\w')(?:{any_of})(?![{_WORD}])(?!'\w)", re.IGNORECASE
    )


def _plain(phrase: str) -> str:
    """Return a phrase in lower case with single blanks between its words."""
    folded = unicodedata.normalize("NFKC", phrase).replace("’", "'").casefold()
    return " ".join(re.split(r"[\s\-\u2010\u2011]+", folded.strip()))
