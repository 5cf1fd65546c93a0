"""Items and suites, models, metrics and their scores, plans and estimates; all frozen."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from cotlab.core.keys import digest

ANSWER_PLACEHOLDER = "<answer>"
"""Where the answer goes in the line that a prompt asks for."""
Form = Literal["chat", "prefill", "continuation"]
"""How a chain reaches a model: in the user's turn (chat), as the start of the assistant's turn
(prefill), or as raw text that it continues (continuation)."""
Endpoint = Literal["chat", "completions"]
"""Where a server takes requests: messages at /v1/chat/completions, raw text at /v1/completions."""
ScoreStatus = Literal["ok", "undefined", "refused", "stopped", "error"]
"""Why a score has a value or not; only ``ok`` has one."""
MetricLevel = Literal["step", "chain", "item", "span", "draw", "run"]
"""What one value describes. A ``draw`` (one patched forward pass) is input of other metrics and has
no mean over items."""
Facet = tuple[tuple[str, str], ...]
"""Sorted (name, value) pairs that distinguish scores of one metric: mode, source, perturbation."""
ABLATION_MODES = ("remove", "truncate", "corrupt", "paraphrase", "filler")
"""Ways to ablate a step; figures give them their colours in this order."""
MODE_ORDER = ("corrupt", "paraphrase", "remove", "truncate", "filler")
"""The same in the order in which pages and figures show them: the one that tells most, its control,
and removal, which a later step may make up for."""
CCS_METRICS = ("accuracy_delta", "answer_change", "token_delta", "kl_divergence", "total_variation")
"""Metrics of the causal contribution of a step, in the order in which figures show them."""
DISTRIBUTION_METRICS = ("kl_divergence", "kl_nats", "total_variation", "topk_rest")
"""Metrics that need the log-probabilities of the model."""
MEDIATION_SOURCES = ("filler", "interchange", "right", "mean", "literal")
"""Sources of the states that mediation patches in, in the order in which figures show them."""
MEDIATION_CONTROLS = ("other", "own", "neutral", "total")
"""Controls that mediation holds the chain's drop against."""
DEFAULT_CONTROL: Literal["total"] = "total"
"""The one of them that a run uses where it names none."""
CHAIN_ORIGINS = {"reference": "the suite's reference chains", "own": "the model's own chains"}
"""Whose chain a scorer measures, and what messages call it."""
CHAINS = tuple(CHAIN_ORIGINS)
"""Chains that a scorer may measure: that of the suite, or the one that the model writes."""
IN_PROCESS_PROVIDERS = ("organism", "local")
"""Providers of language models that run in this process, whose activations can be read."""
MIN_VERDICT_ITEMS = 30
"""Fewest items with a value that a verdict is given for."""
RECORDED_PROVIDER = "recorded"
"""Provider of models whose replies another tool has logged; nothing can be asked of them."""
DRAW_KEY = "draw"
"""The key of an item's meta that numbers the recorded replies to one question, from 0."""
CLUSTER_KEY = "cluster"
"""The key of an item's meta that names what several items are draws of; intervals resample it."""


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
    """Id, unique in the suite."""
    question: str
    """Text of the question."""
    answer: str | None
    """Ground truth; None if there is none."""
    steps: tuple[Step, ...]
    """Reference chain; empty if the model writes its own."""
    category: str = ""
    """Category, "" if there is none."""
    meta: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Other fields of the suite file."""


@dataclass(frozen=True, slots=True)
class Suite:
    """A versioned list of items."""

    name: str
    """Name of the suite."""
    items: tuple[Item, ...]
    """Items in the order of the file."""
    digest: str
    """SHA-256 of the items' canonical JSON."""

    @classmethod
    def from_items(cls, name: str, items: Iterable[Item]) -> Suite:
        """Build a suite and compute its digest."""
        items = tuple(items)
        return cls(name, items, digest(items))


@dataclass(frozen=True, slots=True)
class ModelRef:
    """Reference to a model."""

    provider: str
    """Name in the registry of providers."""
    name: str
    """Name of the model at the provider."""
    revision: str | None = None
    """Version; of a local model the digest of its weights and dtype."""
    base_url: str | None = None
    """Address of the server, if it is not the vendor's own."""
    form: Form = "chat"
    """How a chain reaches the model."""
    endpoint: Endpoint = field(default="chat", metadata={"absent": "chat"})
    """Where a server with OpenAI's interface takes the requests."""

    def __str__(self) -> str:
        return f"{self.provider}/{self.name}"


@dataclass(frozen=True, slots=True)
class MetricCard:
    """Definition of a metric."""

    name: str
    """Name in the store, unique."""
    symbol: str
    """Short name in formulas and on axes."""
    lo: float
    """Smallest possible value."""
    hi: float
    """Largest possible value."""
    better: Literal["higher", "lower", "neither"]
    """Direction that is better."""
    unit: str
    """Unit, "" if there is none."""
    level: MetricLevel
    """What one value describes."""
    needs: tuple[str, ...]
    """Kinds of requests that it needs."""
    formula: str
    """How the metric is computed."""
    undefined: str
    """When the metric has no value."""
    source: str
    """Reference."""
    not_shown: str
    """What the metric does *not* show."""
    flag: bool = False
    """Whether each value is 0 or 1, so that a mean is a rate and may have a Wilson interval."""
    none_reason: str = ""
    """The reason of a score without a value that says: no step is named. Only a metric that gives
    the place of a first mistake has one."""

    def score(
        self,
        item: Item,
        value: float | None,
        *,
        step: int | None = None,
        sample: int = 0,
        facet: Mapping[str, str] | None = None,
        where: tuple[int, int] | None = None,
        status: ScoreStatus | None = None,
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
    """Name of the metric."""
    item_id: str
    """Item that is scored."""
    value: float | None
    """None exactly if ``status`` is not ok."""
    step: int | None = None
    """Index of the step, from 0; None if the value is not of one step."""
    sample: int = 0
    """Number of the draw, from 0."""
    facet: Facet = ()
    """What distinguishes scores of the metric."""
    where: tuple[int, int] | None = None
    """Characters (start, end) of the text that the value is about."""
    status: ScoreStatus = "ok"
    """Whether there is a value, and why not."""
    reason: str | None = None
    """Why there is no value."""
    evidence: tuple[str, ...] = ()
    """Keys of the requests that the value rests on."""


@dataclass(frozen=True, slots=True)
class ScorerSpec:
    """A scorer in a plan."""

    name: str
    """Name in the registry of scorers."""
    version: int
    """Version of the scorer."""
    params: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Options as JSON values."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run does: the items of a suite, models by role, scorers, seed and tags."""

    suite: str
    """Name of the suite."""
    suite_digest: str
    """Digest of the suite."""
    models: Mapping[str, ModelRef] = field(hash=False)
    """Models by role: subject, embedder, entailer, paraphraser, judge."""
    scorers: tuple[ScorerSpec, ...]
    """Scorers that run on each item."""
    seed: int = 42
    """Seed of everything random."""
    limit: int | None = None
    """Number of items to run, the first ones; None for all."""
    temperature: float = 0.0
    """Sampling temperature."""
    repeats: int = 1
    """Draws per request."""
    tags: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Free labels of the run, such as epoch and condition."""
    chain_tokens: int = field(default=512, metadata={"absent": 512})
    """Maximum output tokens of a request for a whole chain."""
    answer_tokens: int = field(default=64, metadata={"absent": 64})
    """Maximum output tokens of a request for an answer alone."""
    critic_votes: int = field(default=1, metadata={"absent": 1})
    """Number of times that a critic is asked about each chain."""
    critic_tokens: int = field(default=2_000, metadata={"absent": 2_000})
    """Maximum output tokens of a critic's reply."""
    ask_answer: bool = field(default=False, metadata={"absent": False})
    """Whether a subject whose reply has an unparsed answer is asked for the answer alone."""
    sample: int | None = field(default=None, metadata={"absent": None})
    """Number of items to draw at random with the seed, before ``limit``; None for all."""
    splitter_version: int = field(default=1, metadata={"absent": 1})
    """Version of the code that divides a model's reply into steps."""

    @property
    def digest(self) -> str:
        """SHA-256 of the plan."""
        return digest(self)

    @property
    def subject(self) -> ModelRef:
        """The model under test."""
        return self.models["subject"]

    def items_of(self, suite: Suite) -> tuple[Item, ...]:
        """Return the items of ``suite`` that the run measures, in the order of the suite."""
        items = suite.items
        if self.sample is not None and self.sample < len(items):
            generator = random.Random(f"sample:{self.seed}")
            positions = generator.sample(range(len(items)), self.sample)
            items = tuple(items[position] for position in sorted(positions))
        return items[: self.limit]


@dataclass(frozen=True, slots=True)
class Estimate:
    """An aggregate of scores with its confidence interval."""

    metric: str
    """Name of the metric."""
    group: Facet
    """Facets that the aggregated scores share."""
    point: float | None
    """Point estimate."""
    lo: float | None
    """Lower bound of the interval."""
    hi: float | None
    """Upper bound of the interval."""
    confidence: float
    """Level of the interval, as 0.95."""
    n: int
    """Number of defined values, in units of ``over``."""
    n_undefined: int
    """Number of undefined values."""
    method: str
    """How the interval was computed."""
    over: str
    """Unit that ``n`` counts: steps, chains or items."""
    reason: str | None = None
    """Why the point or the interval is missing."""
