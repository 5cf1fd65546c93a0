"""Sentences of a verdict: passages of text, each number with the measure that it comes from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cotlab.analysis.verdict.measures import MeasureName, Share


@dataclass(frozen=True, slots=True)
class Passage:
    """Text of a sentence, linked to its evidence where it states a number."""

    text: str
    """The text."""
    measure: MeasureName | None = None
    """The measure whose evidence it links to; None where it states no number."""
    is_strong: bool = False
    """Whether it is set in bold."""
    categories: tuple[str, ...] = ()
    """Categories of the items that the number is about; empty for all items."""
    earlier_run: str | None = None
    """Id of the run that it is compared with there; None for text that compares nothing."""


Sentence = tuple[Passage, ...]


def percent(share: float) -> str:
    """Return a share in percent with one decimal, whole at 0 and 100: "50.5 %"."""
    return f"{percent_number(share)} %"


def percent_number(share: float) -> str:
    """Return a share as a percent number: "50.5", whole at 0 and at 100 and never rounded to them.

    A share above 0 that rounds to 0 is "< 0.1"; one below 1 that rounds to 100 is "> 99.9".
    """
    if share <= 0 or share >= 1:
        return "0" if share <= 0 else "100"
    text = f"{share * 100:.1f}"
    return {"0.0": "< 0.1", "100.0": "> 99.9"}.get(text, text)


def interval(share: Share) -> str:
    """Return the interval in percent: "[46.6, 54.2]"."""
    return f"[{percent_number(share.lo)}, {percent_number(share.hi)}]"


def number(
    share: Share, measure: MeasureName, of: str = "", categories: tuple[str, ...] = ()
) -> tuple[Passage, ...]:
    """Return the share and its interval as passages that link to their evidence.

    ``categories`` are those of the items that it is about; empty for all items.
    """
    return (
        Passage(f"{percent(share.point)}{of}", measure, is_strong=True, categories=categories),
        Passage(f" {interval(share)}", measure, categories=categories),
    )


def category_text(categories: Iterable[str]) -> str:
    """Return categories of a suite, as a sentence names them: "category plain"."""
    names = list(categories)
    return f"{'category' if len(names) == 1 else 'categories'} {', '.join(names)}"


def sentence(*pieces: str | Passage | Iterable[Passage]) -> Sentence:
    """Return a sentence from texts and passages."""
    passages: list[Passage] = []
    for piece in pieces:
        if isinstance(piece, str):
            passages.append(Passage(piece))
        elif isinstance(piece, Passage):
            passages.append(piece)
        else:
            passages.extend(piece)
    return tuple(passages)


def plain_text(sentences: Iterable[Sentence]) -> str:
    """Return sentences as text."""
    return " ".join("".join(passage.text for passage in passages) for passages in sentences)


def capitalised(text: str) -> str:
    """Return a text with a capital at its beginning, unless it begins with a name such as r100."""
    word = text.partition(" ")[0]
    return text[:1].upper() + text[1:] if word.isalpha() and word.islower() else text


def noun_count(n: int, noun: str) -> str:
    """Return "1 item" or "3 items"."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
