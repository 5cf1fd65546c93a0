"""What the tables of figures are declared with, and what they share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import pandas as pd

from cotlab.analysis.view import RunView
from cotlab.core.errors import ConfigError

_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?")
"""A number within a reason: ``1.5e-07``, say."""
Scope = Literal["run", "item", "suite", "store"]


class Choice(NamedTuple):
    """Which of several tables a figure is drawn from; None takes the first, as its page does.

    ``setting`` is mediation's: chain, given, view and control, joined by "~".
    """

    item: str | None = None
    metric: str | None = None
    mode: str | None = None
    setting: str | None = None
    perturbation: str | None = None
    span: str | None = None
    classifier: str | None = None

    def chosen(self) -> dict[str, str]:
        """Return what was chosen, by name."""
        return {name: value for name, value in self._asdict().items() if value is not None}

    def select(self, name: str, known: list[str]) -> str:
        """Return the chosen one of ``known``, else its first; ConfigError where it is not among them."""
        value = getattr(self, name)
        if value is not None and value not in known:
            raise ConfigError(
                f"{name} {value!r} is not in this run; there are: {', '.join(known[:20])}"
            )
        return str(value) if value is not None else known[0]


DEFAULT_CHOICE = Choice()


class FigureData(NamedTuple):
    """The table that a figure is drawn from."""

    table: pd.DataFrame
    note: str = ""
    choice: Choice = DEFAULT_CHOICE


class NoFigure(NamedTuple):
    """Why a run does not have a figure."""

    reason: str


@dataclass(frozen=True, slots=True)
class FigureTable:
    """A figure's way from the store.

    ``figure`` is the name of its builder, ``of`` what one table is of, ``make`` a function of a
    run. Of ``metrics`` a run has at least one where it can have the figure; without any named it
    always can. ``runs`` is how many it takes: this one, and others with tags on its suite.
    """

    figure: str
    of: Scope
    make: Callable[[RunView, Choice], FigureData | NoFigure]
    metrics: tuple[str, ...] = ()
    runs: int = 1

    def can_be_in(self, view: RunView) -> bool:
        """Return whether a run may have the figure, without making its table."""
        if self.metrics and view.metrics.isdisjoint(self.metrics):
            return False
        return self.runs < 2 or len(view.tagged_runs) >= self.runs

    def __call__(self, view: RunView, choice: Choice = DEFAULT_CHOICE) -> FigureData | NoFigure:
        return self.make(view, choice)


def count_reasons(reasons: Iterable[Any]) -> dict[str, int]:
    """Count reasons, the commonest first.

    Reasons that differ in their numbers only are one, with "…" where they differ.
    """
    groups: dict[str, list[str]] = {}
    for reason in map(str, reasons):
        groups.setdefault(_NUMBER.sub("#", reason), []).append(reason)
    counts: dict[str, int] = {}
    for variants in groups.values():
        columns = zip(*map(_NUMBER.findall, variants), strict=True)
        values = [column[0] if len(set(column)) == 1 else "…" for column in columns]
        between = _NUMBER.split(variants[0])
        counts[
            "".join(text + value for text, value in zip(between, [*values, ""], strict=True))
        ] = len(variants)
    return dict(sorted(counts.items(), key=lambda pair: -pair[1]))
