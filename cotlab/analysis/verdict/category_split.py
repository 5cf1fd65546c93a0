"""Where a run's mean hides two kinds of items: the change of the answer in each of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cotlab.analysis.verdict.measures import RunEvidence, Share
from cotlab.analysis.verdict.wording import category_text, noun_count, percent


class CategoryShare(NamedTuple):
    """The change of the answer among the items of some categories."""

    categories: tuple[str, ...]
    """Names of the categories."""
    share: Share
    """The share over their items."""

    @property
    def items_text(self) -> str:
        """The items in words: "45 items of category plain"."""
        return f"{noun_count(self.share.n, 'item')} of {category_text(self.categories)}"


def category_shares(evidence: RunEvidence) -> tuple[CategoryShare, ...]:
    """Return the change in both kinds of items, the higher first.

    Empty where none differ so, and where the change of what a step states is not the run's measure.
    """
    split = evidence.split
    if split is None or split.high_share is None or split.low_share is None:
        return ()
    if evidence.change_name != "change" or evidence.share("change") is None:
        return ()
    return CategoryShare(split.high, split.high_share), CategoryShare(split.low, split.low_share)


def category_shares_text(evidence: RunEvidence) -> str:
    """Return "100 % in 45 items of category plain, …"; "" where no categories differ so."""
    return ", ".join(
        f"{percent(kind.share.point)} in {kind.items_text}" for kind in category_shares(evidence)
    )


def covers_all_items(kinds: Sequence[CategoryShare], evidence: RunEvidence) -> bool:
    """Return whether the kinds have all items of the mean: some may be of no category."""
    change = evidence.share("change")
    return bool(kinds) and change is not None and sum(kind.share.n for kind in kinds) == change.n
