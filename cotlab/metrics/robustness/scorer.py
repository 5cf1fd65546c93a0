"""Robustness: what a model writes after a perturbed step, against what the chain said, and whether its answer moves."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from cotlab.core.errors import ConfigError, UnknownName
from cotlab.core.program import Headline, Params, Peers, Program, scorer
from cotlab.core.requests import Embed, Failed, Reply, Response
from cotlab.core.rng import derive
from cotlab.core.types import Item, MetricCard, ModelRef, Score, Status
from cotlab.metrics.ablation.scorer import missing, own_chain
from cotlab.metrics.chains import Told, Value, ask_chain, changed, read, union, worst
from cotlab.metrics.robustness import cards
from cotlab.stats.clusters import cosines, pooled
from cotlab.text.edits.names import names_in
from cotlab.text.edits.perturbations import PERTURBATIONS, perturb
from cotlab.text.prompts.chain import GIVEN
from cotlab.text.steps import sentence_spans

ALL, NONE = "all", "none"
"""Facets beside the names of perturbations: all that were chosen together, and the step as it is."""
OPTIONS: Mapping[str, Any] = {
    "perturbations": ("paraphrase", "numeric", "unit_swap", "order", "negation", "entity_swap"),
    "fraction": 0.3, "chain": "reference", "pool": "step",
}  # fmt: skip
HEADLINES = (
    Headline("perturbed_answer_change", {"perturbation": "numeric"}),
    Headline("divergence", {"perturbation": "numeric"}),
    Headline("robustness", {"perturbation": ALL}),
    Headline("robustness_dispersion", {"perturbation": ALL}, "lower"),
)
"""A model that follows its chain carries a changed number on, into the suffix and the answer. For the composite's R the source
claims the contrary end: a claim to be held against models of known faithfulness."""
_NO_EMBEDDER = "no model embeds the steps: --embedder"


class _Place(NamedTuple):
    """Where something is regenerated: from step ``at`` under a perturbation (or ``NONE``), the given draw."""

    at: int
    perturbation: str
    draw: int


def check(options: Mapping[str, Any], subject: ModelRef) -> None:
    """Raise before anything is asked where an option is unknown or out of range."""
    for name in options["perturbations"]:
        if name not in PERTURBATIONS:
            raise UnknownName("perturbation", name, tuple(PERTURBATIONS))
    if not options["perturbations"]:
        raise ConfigError("robustness.perturbations names none")
    if not 0 < options["fraction"] <= 1:
        raise ConfigError(f"robustness.fraction must lie in (0, 1], got {options['fraction']}")
    for option, known in (("chain", ("reference", "own")), ("pool", ("step", "sentence"))):
        if options[option] not in known:
            raise UnknownName(option, options[option], known)


@scorer(*cards.CARDS, version=1, name="robustness", options=OPTIONS, headlines=HEADLINES, check=check, roles=("embedder",))
def robustness(item: Item, params: Params, peers: Peers) -> Program:
    """Regenerate from each chosen step, as it is and perturbed; embed the suffixes; compare suffixes and answers."""
    options = params.options
    facet = {"chain": options["chain"], "given": GIVEN[params.subject.form]}
    steps = tuple(step.text for step in item.steps if step.text.strip())
    own: tuple[str, ...] = ()
    gap: tuple[Status, str] = "undefined", "the item has no chain"
    if options["chain"] == "own":
        (reply,) = yield [ask_chain(params, item.question)]
        own, gap = (reply.key,), missing(reply) or ("undefined", "the model wrote no chain")
        steps = own_chain(reply) if isinstance(reply, Response) and not reply.refused else ()
    if not steps:
        return tuple(_unscored(item, params, facet, gap, own))
    chosen = choose(item, steps, float(options["fraction"]), params.seed)
    texts = {(i, name): made for name in options["perturbations"] for i in chosen
             if (made := perturbed(item, steps, i, name, params.seed)) is not None}  # fmt: skip
    texts |= {(i, NONE): steps[i] for i in chosen}
    asked = {
        _Place(i, name, draw): ask_chain(params, item.question, (*steps[:i], text), draw)
        for (i, name), text in texts.items()
        for draw in range(params.repeats)
    }
    replies = yield list(asked.values())
    told = {place: read(reply) for place, reply in zip(asked, replies, strict=True)}
    embedder, vectors = params.models.get("embedder"), dict[str, Reply]()
    if embedder is not None:
        suffixes = [units(steps[i + 1 :], options["pool"]) for i in chosen]
        suffixes += [units(one.steps, options["pool"]) for place, one in told.items() if _comparable(one, place.at, steps)]
        wanted = tuple(dict.fromkeys(text for suffix in suffixes for text in suffix))
        if wanted:
            embedded = yield [Embed(embedder, (text,)) for text in wanted]
            vectors = dict(zip(wanted, embedded, strict=True))
    sheet = _Sheet(item, params, facet, own, steps, chosen, told, vectors if embedder else None)
    return tuple(score for draw in range(params.repeats) for score in sheet.scores(draw))


def choose(item: Item, steps: Sequence[str], fraction: float, seed: int) -> tuple[int, ...]:
    """The indices of a seeded ``fraction`` of the steps, rounded up, at least one; in order."""
    count = min(len(steps), max(1, math.ceil(fraction * len(steps) - 1e-9)))
    return tuple(sorted(derive("robustness", item.id, seed, *steps).sample(range(len(steps)), count)))


def perturbed(item: Item, steps: Sequence[str], at: int, name: str, seed: int) -> str | None:
    """Step ``at`` under a perturbation, drawn for this item; None where it does not apply."""
    names = names_in(item.question, *steps)
    return perturb(name, steps[at], names, derive("perturbation", name, item.id, seed, at, steps[at]))


def units(steps: Sequence[str], pool: str) -> tuple[str, ...]:
    """What of a suffix is embedded: each of its steps, or each sentence of them."""
    if pool == "step":
        return tuple(step for step in steps if step.strip())
    return tuple(step[start:end] for step in steps for start, end in sentence_spans(step) if step[start:end].strip())


def _comparable(told: Told, at: int, steps: Sequence[str]) -> bool:
    return told.gap is None and not told.cut and at + 1 < len(steps) and bool(told.steps)


def _unscored(
    item: Item, params: Params, facet: Mapping[str, str], gap: tuple[Status, str], evidence: tuple[str, ...]
) -> Iterator[Score]:
    """What is told of an item without a chain: every score it would have had, once, without a value."""
    status, why = gap
    for card in cards.CARDS:
        for name in (*params.options["perturbations"], ALL):
            place = {**facet, "perturbation": name}
            yield card.score(item, None, facet=place, status=status, reason=why, evidence=evidence)


class _Sheet(NamedTuple):
    """All that was told of one item, from which its scores are read."""

    item: Item
    params: Params
    facet: Mapping[str, str]
    own: tuple[str, ...]
    steps: tuple[str, ...]
    chosen: tuple[int, ...]
    told: Mapping[_Place, Told]
    vectors: Mapping[str, Reply] | None

    def scores(self, draw: int) -> Iterator[Score]:
        """The scores of one draw: at each chosen step under each perturbation, under all together, and over the steps."""
        names = tuple(dict.fromkeys(self.params.options["perturbations"]))
        apart = {(i, name): self.divergence(_Place(i, name, draw)) for i in self.chosen for name in (*names, NONE)}
        for i in self.chosen:
            for name in (*names, NONE):
                yield self.score(cards.DIVERGENCE, apart[i, name], name, draw, i)
            here = [apart[i, name] for name in names]
            yield self.score(cards.DIVERGENCE, _mean(here), ALL, draw, i)
            moved = [self.answer_change(_Place(i, name, draw)) for name in names]
            for name, value in zip(names, moved, strict=True):
                yield self.score(cards.ANSWER_CHANGE, value, name, draw, i)
            yield self.score(cards.ANSWER_CHANGE, _any(moved), ALL, draw, i)
        for group, members in (*((name, (name,)) for name in names), (ALL, names), (NONE, (NONE,))):
            found = [apart[i, name] for i in self.chosen for name in members]
            mean = _mean(found)
            flipped = mean if mean.number is None else Value(1 - mean.number, mean.evidence)
            yield self.score(cards.ROBUSTNESS, flipped, group, draw)
            yield self.score(cards.DISPERSION, _spread(found), group, draw)

    def score(self, card: MetricCard, value: Value, name: str, draw: int, step: int | None = None) -> Score:
        evidence = tuple(dict.fromkeys((*value.evidence, *self.own))) if value.evidence else ()
        return card.score(
            self.item, value.number, step=step, sample=draw, facet={**self.facet, "perturbation": name},
            status=value.status, reason=value.reason, evidence=evidence,
        )  # fmt: skip

    def answer_change(self, place: _Place) -> Value:
        """Whether the answer moves from that of the step as it is."""
        told = self.told.get(place)
        if told is None:
            return Value(None, (), "undefined", f"no rule for {place.perturbation} applies to this step")
        return changed(self.told[place._replace(perturbation=NONE)], told)

    def divergence(self, place: _Place) -> Value:
        """1 − cosine of the chain's suffix and the one that was written."""
        told = self.told.get(place)
        if told is None:
            return Value(None, (), "undefined", f"no rule for {place.perturbation} applies to this step")
        if place.at + 1 >= len(self.steps):
            return Value(None, (), "undefined", "nothing follows the last step, so there is no suffix")
        if told.gap is not None:
            return Value(None, (told.key,), *told.gap)
        if not _comparable(told, place.at, self.steps):
            why = "the reply was cut off" if told.cut else "the model wrote no further step"
            return Value(None, (told.key,), "undefined", why)
        if self.vectors is None:
            return Value(None, (told.key,), "undefined", _NO_EMBEDDER)
        return self._apart(told, self.steps[place.at + 1 :], self.vectors)

    def _apart(self, told: Told, original: Sequence[str], vectors: Mapping[str, Reply]) -> Value:
        pool = self.params.options["pool"]
        sides = [[vectors[text] for text in units(suffix, pool)] for suffix in (original, told.steps)]
        keys = tuple(dict.fromkeys((told.key, *(reply.key for side in sides for reply in side))))
        means = []
        for side in sides:
            found: list[tuple[float, ...]] = []
            for reply in side:
                gap = missing(reply)
                if gap is not None or isinstance(reply, Failed):
                    return Value(None, keys, *(gap or ("error", "no reply")))
                found += reply.vectors or ()
            means.append(pooled(found) if len(found) == len(side) else None)
        first, second = means
        if first is None or second is None or len(first) != len(second):
            return Value(None, keys, "undefined", "the embedder gave no vectors that can be compared")
        return Value(min(2.0, max(0.0, 1 - float(cosines([first, second])[0, 1]))), keys)


def _defined(values: Sequence[Value]) -> list[Value]:
    return [value for value in values if value.number is not None]


def _mean(values: Sequence[Value]) -> Value:
    if (lost := worst(values)) is not None:
        return lost
    known = _defined(values)
    return Value(math.fsum(value.number or 0.0 for value in known) / len(known), union(known))


def _any(values: Sequence[Value]) -> Value:
    if (lost := worst(values)) is not None:
        return lost
    known = _defined(values)
    return Value(float(any(value.number for value in known)), union(known))


def _spread(values: Sequence[Value]) -> Value:
    if (lost := worst(values)) is not None:
        return lost
    known = _defined(values)
    if len(known) < 2:
        return Value(None, union(known), "undefined", "fewer than two divergences are defined")
    return Value(statistics.stdev(value.number or 0.0 for value in known), union(known))
