"""What a scorer is: a pure generator that yields rounds of requests, is sent the replies, and returns scores."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from cotlab.core.requests import Reply, Request
from cotlab.core.rng import derive
from cotlab.core.types import Item, MetricCard, ModelRef, Score, Suite

Round = Sequence[Request]
Program = Generator[Round, Sequence[Reply], tuple[Score, ...]]
Preparation = Generator[Round, Sequence[Reply], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Params:
    """What a scorer is given beside the item: models by role, the run's settings, its options, run-level constants."""

    models: Mapping[str, ModelRef] = field(hash=False)
    seed: int = 42
    temperature: float = 0.0
    repeats: int = 1
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    constants: Mapping[str, Any] = field(default_factory=dict, hash=False)
    chain_tokens: int = field(default=512, metadata={"absent": 512})
    """Maximum output tokens of a request for a whole chain."""

    @property
    def subject(self) -> ModelRef:
        return self.models["subject"]


@dataclass(frozen=True, slots=True)
class Peers:
    """A frozen view of the whole suite in a seeded ring, whatever part of it a run covers."""

    donor_order: tuple[Item, ...]

    @classmethod
    def of(cls, suite: Suite, seed: int) -> Peers:
        items = list(suite.items)
        derive("ring", suite.digest, seed).shuffle(items)
        return cls(tuple(items))

    def donors_for(self, item: Item) -> tuple[Item, ...]:
        """Every other item, the next on the ring first."""
        at = next(i for i, other in enumerate(self.donor_order) if other.id == item.id)
        return self.donor_order[at + 1 :] + self.donor_order[:at]


class Statistic(NamedTuple):
    """A run-level statistic: a pure function of the table of scores to estimates, made anew at each summary."""

    card: MetricCard
    reads: tuple[str, ...]
    compute: Callable[..., Any]


class Headline(NamedTuple):
    """What stands for a metric when it is held against models of known faithfulness: the scores of one facet.

    ``facet`` names the pairs that a score's facet must hold; a metric of steps is averaged over an
    item. ``faithful`` says at which end of its range the metric puts a model that follows its
    chain.
    """

    metric: str
    facet: Mapping[str, str]
    faithful: Literal["higher", "lower"] = "higher"
    chain: Literal["reference", "own"] = "reference"
    """Chain that the validation measures: ``own`` for a metric that reads the chain as a text, since
    the suite's chains are the same for every model."""


@dataclass(frozen=True, slots=True)
class Scorer:
    """One metric family: its cards, version, default options, and the code that measures one item."""

    name: str
    version: int
    cards: tuple[MetricCard, ...]
    program: Callable[[Item, Params, Peers], Program]
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    prepare: Callable[[Suite, Params], Preparation] | None = None
    statistics: tuple[Statistic, ...] = ()
    headlines: tuple[Headline, ...] = ()
    check: Callable[[Mapping[str, Any], ModelRef], None] | None = None
    """Raises ConfigError for options that the subject cannot answer, before anything is asked."""
    roles: tuple[str, ...] = ()
    """Who else it may ask: embedder, symbolic, verifier, paraphraser. A role that a run leaves
    empty is not in the models."""

    components: tuple[str, ...] = ()
    """Scorers whose programs it runs: their options are handed to it as its option ``parts``, by
    name."""

    def __call__(self, item: Item, params: Params, peers: Peers) -> Program:
        return self.program(item, params, peers)


def scorer(
    *cards: MetricCard,
    version: int,
    name: str | None = None,
    options: Mapping[str, Any] | None = None,
    prepare: Callable[[Suite, Params], Preparation] | None = None,
    statistics: tuple[Statistic, ...] = (),
    headlines: tuple[Headline, ...] = (),
    check: Callable[[Mapping[str, Any], ModelRef], None] | None = None,
    roles: tuple[str, ...] = (),
    components: tuple[str, ...] = (),
) -> Callable[[Callable[[Item, Params, Peers], Program]], Scorer]:
    """Declare a program as a scorer. A change of what it computes needs a new ``version``."""

    def declare(program: Callable[[Item, Params, Peers], Program]) -> Scorer:
        return Scorer(
            name or program.__name__,
            version,
            cards,
            program,
            options or {},
            prepare,
            statistics,
            headlines,
            check,
            roles,
            components,
        )

    return declare


def over_run(
    card: MetricCard, *, reads: Sequence[str]
) -> Callable[[Callable[..., Any]], Statistic]:
    """Declare a run-level statistic: ``compute(table)`` is given the scores of the metrics it reads, as a data frame."""

    def declare(compute: Callable[..., Any]) -> Statistic:
        return Statistic(card, tuple(reads), compute)

    return declare
