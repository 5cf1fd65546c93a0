"""What cotlab is about: items and suites, models, metrics and their scores, plans and estimates. All frozen."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from cotlab.core.keys import digest

Form = Literal["chat", "prefill", "continuation"]
"""How a model is given a chain: inside the user's turn, as the start of its own turn, or as raw
text that it continues."""
Status = Literal["ok", "undefined", "refused", "stopped", "error"]
Level = Literal["step", "chain", "item", "span", "draw", "run"]
"""What one value is of. A ``draw`` is raw material of other metrics (one patched forward): it has
no mean over items."""
Facet = tuple[tuple[str, str], ...]
"""Sorted (name, value) pairs that tell apart scores of one metric: mode, source, draw, perturbation
…"""


@dataclass(frozen=True, slots=True)
class Step:
    """One unit of a chain. ``index`` counts from 0."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class Item:
    """One question; ``answer`` is None where there is no ground truth, ``steps`` empty where the chain is the model's own."""

    id: str
    question: str
    answer: str | None
    steps: tuple[Step, ...]
    category: str = ""
    meta: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Suite:
    """Versioned inputs; ``digest`` is the SHA-256 of the canonical items."""

    name: str
    items: tuple[Item, ...]
    digest: str

    @classmethod
    def of(cls, name: str, items: Iterable[Item]) -> Suite:
        items = tuple(items)
        return cls(name, items, digest(items))


@dataclass(frozen=True, slots=True)
class ModelRef:
    """Which model is asked. ``revision`` of a local model is the digest of its weights and dtype."""

    provider: str
    name: str
    revision: str | None = None
    base_url: str | None = None
    form: Form = "chat"

    def __str__(self) -> str:
        return f"{self.provider}/{self.name}"


@dataclass(frozen=True, slots=True)
class MetricCard:
    """What a metric is. ``needs`` names the request kinds, ``not_shown`` what the metric does *not* show.

    A ``flag`` is yes or no: each value is 0 or 1, so that a mean of them is a rate and may have a
    Wilson interval.
    """

    name: str
    symbol: str
    lo: float
    hi: float
    better: Literal["higher", "lower", "neither"]
    unit: str
    level: Level
    needs: tuple[str, ...]
    formula: str
    undefined: str
    source: str
    not_shown: str
    flag: bool = False

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
        """A score of this metric on ``item``.

        None becomes ``undefined`` unless another status is given.

        Raises
        ------
        ValueError
            If the value is not finite, leaves [lo, hi], is neither 0 nor 1 where the card is a
            flag, comes with a status other than ok, or None without a reason.
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
    """One value with its evidence (request keys). ``value`` is None exactly when ``status`` is not ok."""

    metric: str
    item_id: str
    value: float | None
    step: int | None = None
    sample: int = 0
    facet: Facet = ()
    where: tuple[int, int] | None = None
    status: Status = "ok"
    reason: str | None = None
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ScorerSpec:
    """A scorer as a plan names it; ``params`` are JSON values."""

    name: str
    version: int
    params: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run does: which items of which suite, models by role, scorers with parameters, seed and tags."""

    suite: str
    suite_digest: str
    models: Mapping[str, ModelRef] = field(hash=False)
    scorers: tuple[ScorerSpec, ...]
    seed: int = 42
    limit: int | None = None
    temperature: float = 0.0
    repeats: int = 1
    tags: Mapping[str, str] = field(default_factory=dict, hash=False)
    chain_tokens: int = field(default=512, metadata={"absent": 512})
    """Maximum output tokens of a request for a whole chain."""

    @property
    def digest(self) -> str:
        return digest(self)

    @property
    def subject(self) -> ModelRef:
        return self.models["subject"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """An aggregate with its interval. ``over`` names the unit that ``n`` counts; ``reason`` says why a part is None."""

    metric: str
    group: Facet
    point: float | None
    lo: float | None
    hi: float | None
    confidence: float
    n: int
    n_undefined: int
    method: str
    over: str
    reason: str | None = None
