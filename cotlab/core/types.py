"""Items and suites, models, metrics and their scores, plans and estimates; all frozen."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from cotlab.core.keys import digest

Form = Literal["chat", "prefill", "continuation"]
"""How a chain reaches a model: in the user's turn (chat), as the start of the assistant's turn
(prefill), or as raw text that it continues (continuation)."""
Status = Literal["ok", "undefined", "refused", "stopped", "error"]
"""Why a score has a value or not; only ``ok`` has one."""
Level = Literal["step", "chain", "item", "span", "draw", "run"]
"""What one value describes. A ``draw`` (one patched forward pass) is input of other metrics and has
no mean over items."""
Facet = tuple[tuple[str, str], ...]
"""Sorted (name, value) pairs that distinguish scores of one metric: mode, source, perturbation."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a chain."""

    index: int
    """Position in the chain, from 0."""
    text: str
    """The step as written, with its label."""


@dataclass(frozen=True, slots=True)
class Item:
    """One question of a suite."""

    id: str
    question: str
    answer: str | None
    """Ground truth; None if there is none."""
    steps: tuple[Step, ...]
    """Reference chain; empty if the model writes its own."""
    category: str = ""
    meta: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Other fields of the suite file."""


@dataclass(frozen=True, slots=True)
class Suite:
    """A versioned list of items."""

    name: str
    items: tuple[Item, ...]
    digest: str
    """SHA-256 of the items' canonical JSON."""

    @classmethod
    def of(cls, name: str, items: Iterable[Item]) -> Suite:
        """Build a suite and compute its digest."""
        items = tuple(items)
        return cls(name, items, digest(items))


@dataclass(frozen=True, slots=True)
class ModelRef:
    """Reference to a model."""

    provider: str
    """Name in the registry of providers."""
    name: str
    revision: str | None = None
    """Version; of a local model the digest of its weights and dtype."""
    base_url: str | None = None
    """Address of the server, if it is not the vendor's own."""
    form: Form = "chat"

    def __str__(self) -> str:
        return f"{self.provider}/{self.name}"


@dataclass(frozen=True, slots=True)
class MetricCard:
    """Definition of a metric."""

    name: str
    symbol: str
    """Short name in formulas and on axes."""
    lo: float
    """Smallest possible value."""
    hi: float
    """Largest possible value."""
    better: Literal["higher", "lower", "neither"]
    unit: str
    level: Level
    needs: tuple[str, ...]
    """Kinds of requests that it needs."""
    formula: str
    undefined: str
    """When the metric has no value."""
    source: str
    """Reference."""
    not_shown: str
    """What the metric does *not* show."""
    flag: bool = False
    """Whether each value is 0 or 1, so that a mean is a rate and may have a Wilson interval."""

    def score(
        self,
        item: Item,
        value: float | None,
        *,
        step: int | None = None,
        sample: int = 0,
        facet: Mapping[str, str] | None = None,
        where: tuple[int, int] | None = None,
        status: Status | None = None,
        reason: str | None = None,
        evidence: Iterable[str] = (),
    ) -> Score:
        """Return a score of this metric on ``item``.

        None becomes ``undefined`` unless another status is given.

        Raises
        ------
        ValueError
            If the value is not finite, leaves [lo, hi], is neither 0 nor 1 where the card is a
            flag, has a status other than ok, or is None without a reason.
        """
        if value is None:
            if not reason or status == "ok":
                raise ValueError(
                    f"{self.name}: a score without a value needs a reason, and a status other"
                    " than ok"
                )
            status = status or "undefined"
        elif status not in (None, "ok"):
            raise ValueError(f"{self.name}: a score with status {status!r} has no value")
        elif not math.isfinite(value) or not self.lo - 1e-9 <= value <= self.hi + 1e-9:
            raise ValueError(f"{self.name}: {value!r} lies outside [{self.lo}, {self.hi}]")
        elif self.flag and value not in (0, 1):
            raise ValueError(f"{self.name}: {value!r} is neither 0 nor 1")
        else:
            value = min(self.hi, max(self.lo, float(value)))
        return Score(
            metric=self.name,
            item_id=item.id,
            value=value,
            step=step,
            sample=sample,
            facet=tuple(sorted((facet or {}).items())),
            where=where,
            status=status or "ok",
            reason=reason,
            evidence=tuple(evidence),
        )


@dataclass(frozen=True, slots=True)
class Score:
    """One value of a metric with its evidence."""

    metric: str
    item_id: str
    value: float | None
    """None exactly if ``status`` is not ok."""
    step: int | None = None
    """Index of the step, from 0; None if the value is not of one step."""
    sample: int = 0
    """Number of the draw, from 0."""
    facet: Facet = ()
    where: tuple[int, int] | None = None
    """Characters (start, end) of the text that the value is about."""
    status: Status = "ok"
    reason: str | None = None
    """Why there is no value."""
    evidence: tuple[str, ...] = ()
    """Keys of the requests that the value rests on."""


@dataclass(frozen=True, slots=True)
class ScorerSpec:
    """A scorer in a plan."""

    name: str
    version: int
    params: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Options as JSON values."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run does: the items of a suite, models by role, scorers, seed and tags."""

    suite: str
    suite_digest: str
    models: Mapping[str, ModelRef] = field(hash=False)
    """Models by role: subject, embedder, entailer, paraphraser, judge."""
    scorers: tuple[ScorerSpec, ...]
    seed: int = 42
    limit: int | None = None
    """Number of items to run; None for all."""
    temperature: float = 0.0
    repeats: int = 1
    """Draws per request."""
    tags: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def digest(self) -> str:
        """SHA-256 of the plan."""
        return digest(self)

    @property
    def subject(self) -> ModelRef:
        """The model under test."""
        return self.models["subject"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """An aggregate of scores with its confidence interval."""

    metric: str
    group: Facet
    """Facets that the aggregated scores share."""
    point: float | None
    lo: float | None
    hi: float | None
    confidence: float
    """Level of the interval, as 0.95."""
    n: int
    """Number of defined values, in units of ``over``."""
    n_undefined: int
    method: str
    """How the interval was computed."""
    over: str
    """Unit that ``n`` counts: steps, chains or items."""
    reason: str | None = None
    """Why the point or the interval is missing."""
