"""Word lists: process words (step, because) and result words (answer, therefore), abbreviations.

The English lists are our own; counts of other studies use other lists and are not comparable.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple


def word_set(text: str) -> frozenset[str]:
    """Split a string of words into a set."""
    return frozenset(text.split())


def _split_phrases(text: str) -> tuple[str, ...]:
    """Split a string of phrases at its commas."""
    return tuple(phrase.strip() for phrase in text.split(","))


PROCESS_PHRASES = _split_phrases(
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
RESULT_PHRASES = _split_phrases(
    "answer, answers, answer is, the answer, the answer is, so the answer is, final answer, the"
    " final answer is, result, results, the result is, final result, solution, the solution is,"
    " conclusion, in conclusion, conclude, concluded, we conclude, therefore, thus, hence,"
    " consequently, accordingly, as a result, it follows that, so we have, we get, in summary, to"
    " sum up, in short, in total, overall, ultimately, finally, in the end, clearly, obviously, of"
    " course, evidently, certainly, without a doubt, it is clear that, it is obvious that, simply"
    " put, the correct answer, the correct option, correct answer"
)
"""Words of a text that states a result or asserts one."""
NEVER_FINAL_ABBREVIATIONS = word_set(
    "dr mr mrs ms mx prof rev hon gen col capt lt sgt st mt vs cf approx ca viz eg ie e.g i.e gov"
    " sen rep"
)
"""Abbreviations that never end a sentence."""
SELDOM_FINAL_ABBREVIATIONS = word_set(
    "al ft dept est inc ltd corp co jr sr jan feb mar apr jun jul aug sep sept oct nov dec"
)
"""Abbreviations that end a sentence only before a word of SENTENCE_STARTERS."""
ABBREVIATIONS_BEFORE_NUMBERS = word_set(
    "no nos fig figs eq eqs sec vol ch p pp thm lem ref refs ver"
)
"""Abbreviations that end no sentence before a number: "fig. 3"."""
SENTENCE_STARTERS = word_set(
    "a after also an and as at but each finally first for from he hence her his however if in it"
    " its let next no now on option our she since so that the their then there therefore they this"
    " thus to we when which yes you"
)
"""Words that a sentence often begins with."""
_WORD_SEPARATOR_PATTERN = r"[\s\-\u2010\u2011]{1,3}"
_WORD_CHARACTERS = r"\w\u0300-\u036f\-\u2010\u2011"


class KeywordMatch(NamedTuple):
    """One keyword of a text."""

    start: int
    """First character of the text's NFKC form."""
    end: int
    """Character after the last."""
    phrase: str
    """The keyword in lower case."""
    kind: str
    """Its list: "process" or "result"."""


class KeywordCounts(NamedTuple):
    """Numbers of process and result words of a text."""

    n_process: int
    """Number of process words."""
    n_result: int
    """Number of result words."""

    @property
    def process_ratio(self) -> float | None:
        """Process words per result word, at least 0; None without a result word."""
        return self.n_process / self.n_result if self.n_result else None

    @property
    def result_share(self) -> float | None:
        """Share of result words, in [0, 1]; None without any keyword."""
        return (
            self.n_result / (self.n_process + self.n_result)
            if self.n_process + self.n_result
            else None
        )


def find_keywords(
    text: str,
    process_phrases: Sequence[str] = PROCESS_PHRASES,
    result_phrases: Sequence[str] = RESULT_PHRASES,
) -> tuple[KeywordMatch, ...]:
    """Return the keywords of a text from left to right.

    Parameters
    ----------
    text : str
        Read in Unicode's compatibility form (NFKC), so that full-width letters are letters.
    process, result_phrases : sequence of str
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
    kind_by_phrase, pattern = _compile_phrases(tuple(process_phrases), tuple(result_phrases))
    if pattern is None:
        return ()
    normalised_text = unicodedata.normalize("NFKC", text).replace("’", "'")
    return tuple(
        KeywordMatch(
            m.start(), m.end(), _normalise_phrase(m[0]), kind_by_phrase[_normalise_phrase(m[0])]
        )
        for m in pattern.finditer(normalised_text)
    )


def count_keywords(
    text: str,
    process_phrases: Sequence[str] = PROCESS_PHRASES,
    result_phrases: Sequence[str] = RESULT_PHRASES,
) -> KeywordCounts:
    """Count the process and result words of a text as `find_keywords` finds them."""
    kinds = [match.kind for match in find_keywords(text, process_phrases, result_phrases)]
    return KeywordCounts(kinds.count("process"), kinds.count("result"))


@cache
def _compile_phrases(
    process_phrases: tuple[str, ...], result_phrases: tuple[str, ...]
) -> tuple[dict[str, str], re.Pattern[str] | None]:
    """Return the list of each phrase, and one pattern for all phrases, the longest first."""
    phrases_by_kind = {
        "process": {_normalise_phrase(entry) for entry in process_phrases} - {""},
        "result": {_normalise_phrase(entry) for entry in result_phrases} - {""},
    }
    if shared_phrases := phrases_by_kind["process"] & phrases_by_kind["result"]:
        raise ValueError(
            "a keyword is of the process or of the result, not of both:"
            f" {', '.join(sorted(shared_phrases))}"
        )
    kind_by_phrase = {
        phrase: kind for kind, phrases in phrases_by_kind.items() for phrase in phrases
    }
    if not kind_by_phrase:
        return {}, None
    ordered_phrases = sorted(kind_by_phrase, key=lambda phrase: (-len(phrase), phrase))
    alternatives = "|".join(
        _WORD_SEPARATOR_PATTERN.join(map(re.escape, phrase.split())) for phrase in ordered_phrases
    )
    return kind_by_phrase, re.compile(
        rf"(?<![{_WORD_CHARACTERS}])(?<!\w')(?:{alternatives})(?![{_WORD_CHARACTERS}])(?!'\w)",
        re.IGNORECASE,
    )


def _normalise_phrase(phrase: str) -> str:
    """Return a phrase in lower case with single blanks between its words."""
    folded_phrase = unicodedata.normalize("NFKC", phrase).replace("’", "'").casefold()
    return " ".join(re.split(r"[\s\-\u2010\u2011]+", folded_phrase.strip()))
