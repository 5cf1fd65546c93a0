"""What the tables of figures are declared with, and what they share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import pandas as pd

from cotlab.analysis.view import RunView
from cotlab.core.errors import ConfigError, CotlabError

_NUMBER_PATTERN = re.compile(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?")
"""A number within a reason: ``1.5e-07``, say."""
TableScope = Literal["run", "item", "suite", "store"]


class UnknownChoice(ConfigError):
    """A figure cannot show what was chosen of one of the things that it can show."""

    def __init__(self, name: str, value: str, options: list[str]) -> None:
        super().__init__(
            f"{name} {value!r} is not in this run; there are: {', '.join(options[:20])}"
        )
        self.name = name
        """Field of `FigureChoice`."""


class FigureChoice(NamedTuple):
    """Which of several tables a figure is drawn from; None takes the first, as its page does."""

    item: str | None = None
    """Id of an item."""
    metric: str | None = None
    """The metric that is drawn."""
    mode: str | None = None
    """A mode of ablation."""
    setting: str | None = None
    """A setting of mediation: chain, given, source and control, joined by "~"."""
    perturbation: str | None = None
    """A perturbation of robustness."""
    span: str | None = None
    """A span of layers."""
    classifier: str | None = None
    """A classifier of unfaithfulness."""
    domain: str | None = None
    """A domain of answers; "default" for all."""
    thresholds: str | None = None
    """The thresholds low and high of r_cal, joined by a comma; None takes those in force."""
    runs: str | None = None
    """Ids of the runs, joined by commas; None takes the run, and those with tags on its suite."""

    def as_dict(self) -> dict[str, str]:
        """Return what was chosen, by name."""
        return {name: value for name, value in self._asdict().items() if value is not None}

    def select(self, name: str, options: list[str]) -> str:
        """Return the chosen one of ``options``, else its first; UnknownChoice if it has none."""
        value = getattr(self, name)
        if value is not None and value not in options:
            raise UnknownChoice(name, value, options)
        return str(value) if value is not None else options[0]


class RecordedChoice(FigureChoice):
    """A choice that notes the options that it was made among."""

    def __init__(self, *_: str | None) -> None:
        super().__init__()
        self.options: dict[str, tuple[str, ...]] = {}

    def select(self, name: str, options: list[str]) -> str:
        """Return the chosen one of ``options``, else its first; UnknownChoice if it has none."""
        self.options[name] = tuple(options)
        return super().select(name, options)


DEFAULT_CHOICE = FigureChoice()


class FigureData(NamedTuple):
    """The table that a figure is drawn from."""

    table: pd.DataFrame
    """The numbers, in the columns that the figure needs."""
    note: str = ""
    """Text added to the figure's subtitle."""
    choice: FigureChoice = DEFAULT_CHOICE
    """What was chosen."""
    options: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    """What could be chosen, by name, in the order of the choices."""


class MissingFigure(NamedTuple):
    """Reason for which a run does not have a figure."""

    reason: str
    """In a few words, without a full stop."""


class NoTable(CotlabError):
    """The run does not have what a table shows: the message is the reason of a MissingFigure."""


def no_scores(scorer: str) -> NoTable:
    """Return that a run has no scores of a scorer."""
    return NoTable(f"the run has no scores of the scorer {scorer}")


TableMaker = Callable[[RunView, FigureChoice], FigureData]


@dataclass(frozen=True, slots=True)
class FigureTable:
    """How a figure's table is made from a run."""

    figure: str
    """Name of the figure's builder."""
    scope: TableScope
    """What one table covers: a run, an item, a suite or the store."""
    make_table: TableMaker
    """Makes the table; NoTable where the run does not have it."""
    metrics: tuple[str, ...] = ()
    """A run with the figure has scores of one of these metrics; empty for any."""
    min_runs: int = 1
    """Fewest runs: this one, and others with tags on its suite."""
    scorer: str = ""
    """Whose scores a run without the metrics lacks; empty where the table says so itself."""

    def is_possible_for(self, view: RunView) -> bool:
        """Return whether a run may have the figure, without making its table."""
        if self.metrics and view.metrics.isdisjoint(self.metrics):
            return False
        return self.min_runs < 2 or len(view.tagged_runs) >= self.min_runs

    def __call__(
        self, view: RunView, choice: FigureChoice = DEFAULT_CHOICE
    ) -> FigureData | MissingFigure:
        """Return the table of a run, or why the run does not have it."""
        try:
            if self.scorer and view.metrics.isdisjoint(self.metrics):
                raise no_scores(self.scorer)
            return self.make_table(view, choice)
        except NoTable as missing:
            return MissingFigure(str(missing))


def figure_table(
    metrics: tuple[str, ...] = (),
    *,
    figure: str = "",
    scorer: str = "",
    scope: TableScope = "run",
    min_runs: int = 1,
) -> Callable[[TableMaker], FigureTable]:
    """Declare a function as the maker of a table, by default of the figure of its name."""
    return lambda make: FigureTable(figure or make.__name__, scope, make, metrics, min_runs, scorer)


def with_common_reasons(
    estimates: pd.DataFrame, scores: pd.DataFrame, group_columns: list[str]
) -> pd.DataFrame:
    """Give estimates without a point the commonest reason of their undefined scores.

    ``group_columns`` are the columns in which an estimate and its scores agree.
    """
    undefined_reasons = scores[scores["value"].isna()].groupby(group_columns)["reason"]
    common_reasons = {
        group: next(iter(count_reasons(reasons))) for group, reasons in undefined_reasons
    }
    groups = zip(*(estimates[key] for key in group_columns), strict=True)
    rows = zip(groups, estimates["reason"], estimates["point"], strict=True)
    return estimates.assign(
        reason=[
            common_reasons.get(group_key) or reason if pd.isna(point) else reason
            for group_key, reason, point in rows
        ]
    )


def count_reasons(reasons: Iterable[Any]) -> dict[str, int]:
    """Count reasons, the commonest first.

    Reasons that differ in their numbers only are one, with "…" where they differ.
    """
    n_by_reason = Counter(map(str, reasons))
    variants_by_pattern: dict[str, list[str]] = {}
    for reason in n_by_reason:
        variants_by_pattern.setdefault(_NUMBER_PATTERN.sub("#", reason), []).append(reason)
    counts: dict[str, int] = {}
    for variants in variants_by_pattern.values():
        columns = zip(*map(_NUMBER_PATTERN.findall, variants), strict=True)
        shared_numbers = [column[0] if len(set(column)) == 1 else "…" for column in columns]
        fixed_texts = _NUMBER_PATTERN.split(variants[0])
        counts[
            "".join(
                text + value for text, value in zip(fixed_texts, [*shared_numbers, ""], strict=True)
            )
        ] = sum(n_by_reason[reason] for reason in variants)
    return dict(sorted(counts.items(), key=lambda pair: -pair[1]))
