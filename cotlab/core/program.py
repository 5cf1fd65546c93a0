"""What a scorer is: a generator that yields rounds of requests, is sent replies, returns scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from cotlab.core.errors import ConfigError, UnknownName
from cotlab.core.registry import SCORERS
from cotlab.core.requests import Reply, Request
from cotlab.core.rng import derive
from cotlab.core.types import Item, MetricCard, ModelRef, Score, Suite

Round = Sequence[Request]
Program = Generator[Round, Sequence[Reply], tuple[Score, ...]]
Preparation = Generator[Round, Sequence[Reply], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Params:
    """What a scorer is given beside the item."""

    models: Mapping[str, ModelRef] = field(hash=False)
    """Models by role: subject, embedder, judge …"""
    seed: int = 42
    """Seed of the run."""
    temperature: float = 0.0
    """Sampling temperature of requests to the subject."""
    repeats: int = 1
    """Draws of each request to the subject."""
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Values of the scorer's options."""
    constants: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """What the scorer's ``prepare`` measured once for the run."""
    chain_tokens: int = field(default=512, metadata={"absent": 512})
    """Maximum output tokens of a request for a whole chain."""

    @property
    def subject(self) -> ModelRef:
        """The model that is measured."""
        return self.models["subject"]


_KINDS: Mapping[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "a mapping",
}


@dataclass(frozen=True, slots=True)
class Option:
    """Declare an option of a scorer: its default, what it is for, and which values it takes.

    The type of the default is the type of the option. The limits and choices of a list are those of
    each entry; a text with limits is a number written as text, or one of the choices.
    """

    default: Any
    """Value where a run sets none."""
    about: str
    """One line for the documentation and for messages: what the option does."""
    lo: float | None = None
    """Least value that is allowed."""
    hi: float | None = None
    """Largest value that is allowed."""
    above: float | None = None
    """Every value is larger than this: an open lower limit."""
    below: float | None = None
    """Every value is smaller than this: an open upper limit."""
    choices: tuple[str, ...] = ()
    """Names that are allowed."""
    entry: str = ""
    """What messages call one of the choices; the option's name where it is empty."""
    required: bool = False
    """Whether a list needs at least one entry."""
    flag: str = ""
    """Command-line flag that sets the option, for messages."""

    @property
    def limits(self) -> str:
        """The range as an interval, like ``(0, 1]``; empty where there is none."""
        if not self._has_limits:
            return ""
        left = "(" if self.lo is None else "["
        right = ")" if self.hi is None else "]"
        lo = self.lo if self.lo is not None else self.above
        hi = self.hi if self.hi is not None else self.below
        low, high = "−∞" if lo is None else f"{lo:.6g}", "∞" if hi is None else f"{hi:.6g}"
        return f"{left}{low}, {high}{right}"

    def validate(self, name: str, value: object) -> None:
        """Raise where the option ``name`` cannot take a value.

        Raises
        ------
        UnknownName
            If the value, or an entry of a list, is none of the choices.
        ConfigError
            If it is of another type or outside the limits.
        """
        label = self.flag or name
        kind = next((kind for kind in _KINDS if isinstance(self.default, kind)), None)
        if isinstance(self.default, tuple | list):
            if not isinstance(value, tuple | list):
                raise self._error(label, "must be a list", value)
            if self.required and not value:
                raise self._error(label, "needs at least one entry", value)
            for entry in value:
                self._validate_entry(name.rpartition(".")[2], label, entry)
        elif kind is not None and not _is_a(value, kind) and not (kind is str and self.limits):
            raise self._error(label, f"must be {_KINDS[kind]}", value)
        else:
            self._validate_entry(name.rpartition(".")[2], label, value)

    @property
    def _has_limits(self) -> bool:
        return not (self.lo is self.hi is self.above is self.below is None)

    def _validate_entry(self, name: str, label: str, value: object) -> None:
        if self.choices and value in self.choices:
            return
        if not self._has_limits:
            if self.choices:
                raise UnknownName(self.entry or name, str(value), self.choices)
            return
        also = "".join(f"{choice!r} or " for choice in self.choices)
        number = _number(value)
        if number is None:
            raise self._error(label, f"must be {also}a number in {self.limits}", value)
        if not (
            (self.lo is None or number >= self.lo)
            and (self.hi is None or number <= self.hi)
            and (self.above is None or number > self.above)
            and (self.below is None or number < self.below)
        ):
            must = f"must be {also}a number in" if also else "must lie in"
            raise self._error(label, f"{must} {self.limits}", value)

    def _error(self, label: str, problem: str, value: object) -> ConfigError:
        return ConfigError(f"{label} {problem}, got {repr(value)[:60]} ({self.about}).")


def _is_a(value: object, kind: type) -> bool:
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind is dict:
        return isinstance(value, Mapping)
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _number(value: object) -> float | None:
    """Return the number that a value is or spells; None where it is none, or not finite."""
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


@dataclass(frozen=True, slots=True)
class Peers:
    """A frozen view of the whole suite in a seeded ring, whatever part of it a run covers."""

    donor_order: tuple[Item, ...]
    """Every item of the suite in the order of the ring."""

    @classmethod
    def of(cls, suite: Suite, seed: int) -> Peers:
        """Return the items of a suite in an order that the seed decides."""
        items = list(suite.items)
        derive("ring", suite.digest, seed).shuffle(items)
        return cls(tuple(items))

    def donors_for(self, item: Item) -> tuple[Item, ...]:
        """Return every other item, the next on the ring first."""
        at = next(i for i, other in enumerate(self.donor_order) if other.id == item.id)
        return self.donor_order[at + 1 :] + self.donor_order[:at]


class Statistic(NamedTuple):
    """A run-level statistic: a pure function from the table of scores to estimates."""

    card: MetricCard
    """The metric that it estimates."""
    reads: tuple[str, ...]
    """Names of the metrics whose scores it is given."""
    compute: Callable[..., Any]
    """The function, called again at each summary."""


class Headline(NamedTuple):
    """The scores that stand for a metric when it is compared with models of known faithfulness."""

    metric: str
    """Name of the metric; one of steps is averaged over an item."""
    facet: Mapping[str, str]
    """Pairs that a score's facet must hold."""
    faithful: Literal["higher", "lower"] = "higher"
    """At which end of its range the metric puts a model that follows its chain."""
    chain: Literal["reference", "own"] = "reference"
    """Chain that the validation measures: ``own`` for a metric that reads the chain as a text, as
    the suite's chains are the same for every model."""


@dataclass(frozen=True, slots=True)
class Scorer:
    """One metric family: its cards, version, options, and the code that measures one item."""

    name: str
    """Name in the registry."""
    version: int
    """Raised whenever what it computes changes."""
    cards: tuple[MetricCard, ...]
    """The metrics that it scores."""
    program: Callable[[Item, Params, Peers], Program]
    """The generator that measures one item."""
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Default value of each option."""
    prepare: Callable[[Suite, Params], Preparation] | None = None
    """Measures run-level constants, once before the items."""
    statistics: tuple[Statistic, ...] = ()
    """Run-level statistics over its scores."""
    headlines: tuple[Headline, ...] = ()
    """Metrics that are compared with models of known faithfulness."""
    check: Callable[[Mapping[str, Any], ModelRef], None] | None = None
    """Raises ConfigError for what no declaration can say: options that contradict each other, or
    that the subject cannot answer."""
    roles: tuple[str, ...] = ()
    """Who else it may ask: embedder, symbolic, verifier, paraphraser. A role that a run leaves
    empty is not in the models."""
    components: tuple[str, ...] = ()
    """Scorers whose programs it runs: their options are given to it as its option ``parts``, by
    name."""
    declared: Mapping[str, Option] = field(default_factory=dict, hash=False)
    """The declaration of each option that has one."""

    def validate_options(self, options: Mapping[str, Any], subject: ModelRef) -> None:
        """Raise UnknownName or ConfigError for options that cannot be used, before a run starts."""
        for name, option in self.declared.items():
            option.validate(f"{self.name}.{name}", options[name])
        for name in self.components:
            component: Scorer = SCORERS[name]
            given = options.get("parts", {}).get(name, {})
            component.validate_options({**component.options, **given}, subject)
        if self.check is not None:
            self.check(options, subject)

    def __call__(self, item: Item, params: Params, peers: Peers) -> Program:
        """Return the program that measures one item."""
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
    parts: tuple[str, ...] = (),
) -> Callable[[Callable[[Item, Params, Peers], Program]], Scorer]:
    """Declare a program as a scorer. A change of what it computes needs a new ``version``.

    Each of the ``options`` is an `Option`, or a bare default that is not validated. ``parts`` is
    the former name of ``components``.
    """
    given = options or {}
    declared = {key: value for key, value in given.items() if isinstance(value, Option)}
    defaults = {
        key: value.default if isinstance(value, Option) else value for key, value in given.items()
    }

    def declare(program: Callable[[Item, Params, Peers], Program]) -> Scorer:
        return Scorer(
            name or program.__name__,
            version,
            cards,
            program,
            defaults,
            prepare,
            statistics,
            headlines,
            check,
            roles,
            components or parts,
            declared,
        )

    return declare


def over_run(
    card: MetricCard, *, reads: Sequence[str]
) -> Callable[[Callable[..., Any]], Statistic]:
    """Declare a run-level statistic.

    ``compute(table)`` is given the scores of the metrics that it reads, as a data frame.
    """

    def declare(compute: Callable[..., Any]) -> Statistic:
        return Statistic(card, tuple(reads), compute)

    return declare
