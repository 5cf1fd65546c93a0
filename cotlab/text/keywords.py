"""Words of reasoning at work and words of a result, counted in a text: what tells a chain that works from one that concludes.

The lists are ours, in English. A count of another study rests on its own lists and is not to be
compared with one made here.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple


def _phrases(listed: str) -> tuple[str, ...]:
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
"""What a text says while it works something out."""
RESULT = _phrases(
    "answer, answers, answer is, the answer, the answer is, so the answer is, final answer, the"
    " final answer is, result, results, the result is, final result, solution, the solution is,"
    " conclusion, in conclusion, conclude, concluded, we conclude, therefore, thus, hence,"
    " consequently, accordingly, as a result, it follows that, so we have, we get, in summary, to"
    " sum up, in short, in total, overall, ultimately, finally, in the end, clearly, obviously, of"
    " course, evidently, certainly, without a doubt, it is clear that, it is obvious that, simply"
    " put, the correct answer, the correct option, correct answer"
)
"""What a text says when it gives what has been found, or has nothing to show for it."""
_BETWEEN = r"[\s\-\u2010\u2011]{1,3}"
_WORD = r"\w\u0300-\u036f\-\u2010\u2011"


class KeywordMatch(NamedTuple):
    """One keyword of a text: characters ``start`` to ``end`` of its NFKC form, and its list."""

    start: int
    end: int
    phrase: str
    kind: str


class Counts(NamedTuple):
    """How many process and result words a text holds."""

    process: int
    result: int

    @property
    def ratio(self) -> float | None:
        """Process words a result word, at least 0; None without a result word."""
        return self.process / self.result if self.result else None

    @property
    def share(self) -> float | None:
        """Result words over both, in [0, 1]; None without any."""
        return self.result / (self.process + self.result) if self.process + self.result else None


def find_keywords(
    text: str, process: Sequence[str] = PROCESS, result: Sequence[str] = RESULT
) -> tuple[KeywordMatch, ...]:
    """Every keyword of a text, from left to right.

    Parameters
    ----------
    text : str
        Any text; it is read in Unicode's compatibility form (NFKC), so that full-width letters are
        letters.
    process, result : sequence of str
        Words or phrases, whatever their case; one that is listed twice counts once.

    Returns
    -------
    tuple of Found
        Disjoint: at each place the longest phrase of both lists together is taken, and what it
        covers is not counted again, so that the counts of parts of a corpus add up to those of the
        whole.

    Raises
    ------
    ValueError
        If a phrase stands in both lists.

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
    """How many process and result words a text holds, as `find_keywords` finds them."""
    kinds = [match.kind for match in find_keywords(text, process, result)]
    return Counts(kinds.count("process"), kinds.count("result"))


@cache
def _compiled(
    process: tuple[str, ...], result: tuple[str, ...]
) -> tuple[dict[str, str], re.Pattern[str] | None]:
    """The list of each phrase, and one pattern for all, the longest first."""
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
    folded = unicodedata.normalize("NFKC", phrase).replace("’", "'").casefold()
    return " ".join(re.split(r"[\s\-\u2010\u2011]+", folded.strip()))
