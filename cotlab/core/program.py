"""What a scorer is: a generator that yields rounds of requests, is sent replies, returns scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal, NamedTuple

from cotlab.core.errors import ConfigError, UnknownName
from cotlab.core.keys import derive
from cotlab.core.registry import SCORERS
from cotlab.core.requests import Reply, Request
from cotlab.core.types import Estimate, Item, MetricCard, ModelRef, Score, Suite

RequestRound = Sequence[Request]
Program = Generator[RequestRound, Sequence[Reply], tuple[Score, ...]]
Preparation = Generator[RequestRound, Sequence[Reply], Mapping[str, Any]]


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
    answer_tokens: int = field(default=64, metadata={"absent": 64})
    """Maximum output tokens of a request for an answer alone."""
    ask_answer: bool = field(default=False, metadata={"absent": False})
    """Whether a subject whose reply has an unparsed answer is asked for the answer alone."""
    critic_votes: int = field(default=1, metadata={"absent": 1})
    """Number of times that a critic is asked about each chain."""
    critic_tokens: int = field(default=2_000, metadata={"absent": 2_000})
    """Maximum output tokens of a critic's reply."""

    @property
    def subject(self) -> ModelRef:
        """The model that is measured."""
        return self.models["subject"]


_TYPE_DESCRIPTIONS: Mapping[type, str] = {
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
    def limits_text(self) -> str:
        """The range as an interval, like ``(0, 1]``; empty where there is none."""
        if not self._has_limits:
            return ""
        left_bracket = "(" if self.lo is None else "["
        right_bracket = ")" if self.hi is None else "]"
        lower_limit = self.lo if self.lo is not None else self.above
        upper_limit = self.hi if self.hi is not None else self.below
        lower_text = "−∞" if lower_limit is None else f"{lower_limit:.6g}"
        upper_text = "∞" if upper_limit is None else f"{upper_limit:.6g}"
        return f"{left_bracket}{lower_text}, {upper_text}{right_bracket}"

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
        option_type = next(
            (
                option_type
                for option_type in _TYPE_DESCRIPTIONS
                if isinstance(self.default, option_type)
            ),
            None,
        )
        if isinstance(self.default, tuple | list):
            if not isinstance(value, tuple | list):
                raise self._error(label, "must be a list", value)
            if self.required and not value:
                raise self._error(label, "needs at least one entry", value)
            for entry in value:
                self._validate_entry(name.rpartition(".")[2], label, entry)
        elif (
            option_type is not None
            and not _has_type(value, option_type)
            and not (option_type is str and self.limits_text)
        ):
            raise self._error(label, f"must be {_TYPE_DESCRIPTIONS[option_type]}", value)
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
        choices_text = "".join(f"{choice!r} or " for choice in self.choices)
        number = _parse_number(value)
        if number is None:
            raise self._error(label, f"must be {choices_text}a number in {self.limits_text}", value)
        if not (
            (self.lo is None or number >= self.lo)
            and (self.hi is None or number <= self.hi)
            and (self.above is None or number > self.above)
            and (self.below is None or number < self.below)
        ):
            requirement = f"must be {choices_text}a number in" if choices_text else "must lie in"
            raise self._error(label, f"{requirement} {self.limits_text}", value)

    def _error(self, label: str, problem: str, value: object) -> ConfigError:
        return ConfigError(f"{label} {problem}, got {repr(value)[:60]} ({self.about}).")


def _has_type(value: object, expected_type: type) -> bool:
    if expected_type is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if expected_type is dict:
        return isinstance(value, Mapping)
    return isinstance(value, expected_type) and (
        expected_type is bool or not isinstance(value, bool)
    )


def _parse_number(value: object) -> float | None:
    """Return the number that a value is or spells; None where it is none, or not finite."""
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


@dataclass(frozen=True, slots=True)
class Peers:
    """A frozen view of the whole suite in a seeded ring, whatever part of it a run covers."""

    ring_items: tuple[Item, ...]
    """Every item of the suite in the order of the ring."""
    _positions: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        positions = {item.id: i for i, item in enumerate(self.ring_items)}
        object.__setattr__(self, "_positions", positions)

    @classmethod
    def from_suite(cls, suite: Suite, seed: int) -> Peers:
        """Return the items of a suite in an order that the seed decides."""
        items = list(suite.items)
        derive("ring", suite.digest, seed).shuffle(items)
        return cls(tuple(items))

    def donors_for(self, item: Item, n: int | None = None) -> tuple[Item, ...]:
        """Return every other item, the next on the ring first; with ``n`` only the first ``n``.

        Who needs a few says so: all of them take time in the size of the suite.
        """
        return tuple(islice(self.iter_donors(item), n))

    def iter_donors(self, item: Item) -> Iterator[Item]:
        """Yield what ``donors_for`` returns, one after the other."""
        position = self._positions[item.id]
        for i in range(position + 1, len(self.ring_items)):
            yield self.ring_items[i]
        for i in range(position):
            yield self.ring_items[i]


class Statistic(NamedTuple):
    """A run-level statistic: a pure function from the table of scores to estimates."""

    card: MetricCard
    """The metric that it estimates."""
    input_metrics: tuple[str, ...]
    """Names of the metrics whose scores it is given."""
    compute: Callable[..., Any]
    """The function, called again at each summary."""
    is_by_facet: bool = False
    """Whether what it gives of one metric and facet depends on their scores alone, so that it may
    be called with a few of them at a time."""


class Headline(NamedTuple):
    """The scores that stand for a metric when it is compared with models of known faithfulness."""

    metric: str
    """Name of the metric; one of steps is averaged over an item."""
    facet: Mapping[str, str]
    """Pairs that a score's facet must hold."""
    faithful_end: Literal["higher", "lower"] = "higher"
    """At which end of its range the metric puts a model that follows its chain."""
    measured_chain: Literal["reference", "own"] = "reference"
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
    declared_options: Mapping[str, Option] = field(default_factory=dict, hash=False)
    """The declaration of each option that has one."""

    def validate_options(self, options: Mapping[str, Any], subject: ModelRef) -> None:
        """Raise UnknownName or ConfigError for options that cannot be used, before a run starts."""
        for name, option in self.declared_options.items():
            option.validate(f"{self.name}.{name}", options[name])
        for name in self.components:
            component: Scorer = SCORERS[name]
            component_options = options.get("parts", {}).get(name, {})
            component.validate_options({**component.options, **component_options}, subject)
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
    option_values = options or {}
    declared_options = {
        key: value for key, value in option_values.items() if isinstance(value, Option)
    }
    defaults = {
        key: value.default if isinstance(value, Option) else value
        for key, value in option_values.items()
    }

    def decorate(program: Callable[[Item, Params, Peers], Program]) -> Scorer:
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
            declared_options,
        )

    return decorate


def run_statistic(
    card: MetricCard, *, input_metrics: Sequence[str], by_facet: bool = False
) -> Callable[[Callable[..., Any]], Statistic]:
    """Declare a run-level statistic.

    ``compute(table)`` is given the scores of the metrics that it reads, as a data frame; those of
    some of their facets at a time where it is ``by_facet``.
    """

    def decorate(compute: Callable[..., Iterable[Estimate]]) -> Statistic:
        return Statistic(
            card, tuple(input_metrics), lambda *inputs: list(compute(*inputs)), by_facet
        )

    return decorate
