"""What mediation asks: texts and their places, donors on the ring, and the rows of every intervention."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from cotlab.core.program import Params, Round
from cotlab.core.requests import (
    PREFIX,
    Complete,
    Locate,
    LogProb,
    Message,
    Patched,
    Reply,
    Request,
    Response,
    Row,
    Source,
    Span,
)  # fmt: skip
from cotlab.core.rng import derive
from cotlab.core.types import Form, Item
from cotlab.metrics.ablation.scorer import own_chain
from cotlab.text.prompts.chain import CUE, ask_answer, ask_rest, chain_text

ANSWER_TOKENS, CHAIN_TOKENS = 64, 512
KEEPS = (0.8, 0.6, 0.4)
SOURCES = ("filler", "interchange", "right", "mean", "literal")
Positions = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Text:
    """A question with its chain and the cue for the answer."""

    id: str
    messages: tuple[Message, ...]
    prefix: str
    question: Span
    chain: Span

    @classmethod
    def of(cls, item: Item, steps: Sequence[str], params: Params) -> Text:
        form: Form = "continuation" if params.subject.form == "continuation" else "prefill"
        prompt = ask_answer(item.question, steps, form)
        at = prompt.messages[0].content.find(item.question)
        return cls(item.id, prompt.messages, prompt.prefix, Span(0, max(0, at), max(0, at) + len(item.question)),
                   Span(PREFIX, 0, len(chain_text(steps))))  # fmt: skip

    def ask_answer(self, params: Params) -> Complete:
        """The model's own answer after this chain; deterministic, whatever the run's temperature."""
        stop = ("\n",) if params.subject.form == "continuation" else ()
        return Complete(params.subject, self.messages, prefix=self.prefix, max_tokens=ANSWER_TOKENS, stop=stop)

    def locate(self, params: Params) -> Locate:
        cue = Span(PREFIX, self.chain.end, len(self.prefix))
        return Locate(params.subject, self.messages, (self.chain, self.question, cue), prefix=self.prefix)

    def logprob(self, params: Params, answer: str, prefix: str | None = None) -> LogProb:
        return LogProb(params.subject, self.messages, (answer,), prefix=self.prefix if prefix is None else prefix)

    def patched(self, params: Params, answer: str, source: Source, rows: Sequence[Row]) -> Patched:
        return Patched(params.subject, self.messages, answer, source, tuple(rows), prefix=self.prefix)


class Donor(NamedTuple):
    """Another item's text, where its chain and question lie, and where its chain lies after this item's question."""

    text: Text
    chain: Positions
    question: Positions
    crossed: Positions


@dataclass(frozen=True, slots=True)
class Place:
    """The item's own text, located: positions of chain and question, layers, length of the run without a chain."""

    text: Text
    chain: Positions
    question: Positions
    layers: int
    bare: int


class Asked(NamedTuple):
    """One row to be asked, and what it is a draw of."""

    part: str
    source: Source
    row: Row
    span: str = "all"
    donor: str = ""
    draw: int = 0
    keep: str = ""


def ask(requests: Iterable[Request]) -> Generator[Round, Sequence[Reply], dict[str, Reply]]:
    """One round; replies by key."""
    unique = list({request.key: request for request in requests}.values())
    replies = (yield unique) if unique else ()
    return {request.key: reply for request, reply in zip(unique, replies, strict=True)}


def chains_of(
    items: Sequence[Item], params: Params
) -> Generator[Round, Sequence[Reply], tuple[dict[str, tuple[str, ...]], dict[str, Reply]]]:
    """Each item's chain: the suite's, or the model's own with the reply that it stands in."""
    if params.options["chain"] != "own":
        return {item.id: tuple(step.text for step in item.steps) for item in items}, {}
    form = params.subject.form
    stop = ("\nQ:",) if form == "continuation" else ()
    asks = {}
    for item in items:
        prompt = ask_rest(item.question, (), form)
        asks[item.id] = Complete(params.subject, prompt.messages, prefix=prompt.prefix, max_tokens=CHAIN_TOKENS, stop=stop)
    said = yield from ask(asks.values())
    told = {name: said[request.key] for name, request in asks.items()}
    return {n: own_chain(r) if isinstance(r, Response) and not r.refused else () for n, r in told.items()}, told


def ends_of(span: str) -> tuple[int, int]:
    """First and last layer of a span as ``--layers`` writes it: "3", "0-7"."""
    first, _, last = span.partition("-")
    return int(first), int(last or first)


def spans_of(layers: int, wanted: Sequence[str]) -> dict[str, Positions]:
    """Named spans: every layer, thirds of the depth and all layers; or those of ``--layers`` ("3", "0-7"), all layers last."""
    names = list(wanted)
    if not names:
        names = [str(layer) for layer in range(layers)]
        cuts = [round(layers * k / 3) for k in range(4)]
        names += [f"{a}-{b - 1}" for a, b in zip(cuts, cuts[1:], strict=False) if b - a > 1]
    found = {}
    for name in names:
        if name != "all" and (ends := ends_of(name))[1] < layers:
            first, last = ends
            found[str(first) if first == last else f"{first}-{last}"] = tuple(range(first, last + 1))
    return {**found, "all": tuple(range(layers))}


Take = Callable[[Positions], Positions]


def cot_sources(name: str, place: Place, donors: Sequence[Donor]) -> list[tuple[str, Source, Take]]:
    """For each donor of the source (or once, without one): where the states come from, and which one a position takes."""
    chain, bare, messages = place.chain, place.bare, place.text.messages
    if name == "filler":
        return [("", Source("filler", at=chain), lambda at: at)]
    if name == "mean":
        return [("", Source("mean", at=place.question), lambda at: ())]
    if name == "right":
        short = Source("run", messages, CUE)
        return [("", short, lambda at: tuple((bare - 1 - (chain[-1] - p)) % bare for p in at))]
    if name == "literal":
        return [("", Source("run", messages, CUE), lambda at: tuple(min(p, bare - 1) for p in at))]
    return [
        (d.text.id, Source("run", messages, d.text.prefix), partial(_crossed, chain=chain, other=d.crossed)) for d in donors
    ]


def _crossed(at: Positions, *, chain: Positions, other: Positions) -> Positions:
    """The counterparts of positions in the interchanged text: the same before the chain, wrapping inside it."""
    return tuple(p if p < chain[0] else other[(p - chain[0]) % len(other)] for p in at)


def control_rows(
    source_name: str, control: str, place: Place, donors: Sequence[Donor], spans: Mapping[str, Positions],
    options: Mapping[str, Any], seed: int,
) -> list[Asked]:  # fmt: skip
    """The control's rows: of the chain's size at every span, and at all layers of the size of each other window."""
    def rng_of(*what: str | int) -> random.Random:
        return derive("mediation control", seed, place.text.id, *what)

    sizes = {"control": len(place.chain), "expanded_control": len(place.chain) + 2, "shrunk_control": len(place.chain) - 2}
    out: list[Asked] = []
    if control == "other":
        sides = [
            (d.text.id, Source("run", d.text.messages, d.text.prefix), _aligned(place.question, d.question)) for d in donors
        ]
    else:
        own = cot_sources(source_name, place, donors)
        sides = [own[k % len(own)] for k in range(options["donors"] if own else 0)]
    for number, (donor, source, take) in enumerate(sides):
        for part, size in sizes.items():
            k = min(size, len(place.question))
            for draw in range(options["draws"] if 0 < k < len(place.question) else int(k > 0)):
                at = tuple(sorted(rng_of(part, number, draw).sample(place.question, k)))
                for span in spans if part == "control" else ("all",):
                    nth = number * options["draws"] + draw
                    out.append(Asked(part, source, Row(spans[span], at, take(at)), span, donor, nth))
        for keep in KEEPS:
            for draw in range(number, options["subsets"], len(sides)):
                k = min(kept_size(len(place.chain), keep), len(place.question))
                at = tuple(sorted(rng_of(str(keep), draw).sample(place.question, k)))
                out.append(Asked("kept_control", source, Row(spans["all"], at, take(at)), "all", donor, draw, str(keep)))
    return out


def _aligned(own: Positions, other: Positions) -> Take:
    """The same place within the other question, wrapping where it is shorter."""
    return lambda at: tuple(other[own.index(p) % len(other)] for p in at)


def kept_size(n: int, keep: float) -> int:
    return max(1, round(n * keep))


def chain_rows(
    source_name: str, place: Place, donors: Sequence[Donor], spans: Mapping[str, Positions], options: Mapping[str, Any],
    seed: int,
) -> list[Asked]:  # fmt: skip
    """What a source's states do in the chain's place: whole, in part, shuffled, and in a wider and a narrower window."""
    out: list[Asked] = []
    chain, every = place.chain, spans["all"]
    sources = cot_sources(source_name, place, donors)
    for donor, source, take in sources:
        out += [Asked("cot", source, Row(layers, chain, take(chain)), span, donor) for span, layers in spans.items()]
        wide = tuple(range(max(0, chain[0] - 1), chain[-1] + 2))
        out.append(Asked("expanded", source, Row(every, wide, take(wide)), "all", donor))
        if len(chain) > 2:
            out.append(Asked("shrunk", source, Row(every, chain[1:-1], take(chain[1:-1])), "all", donor))
    for draw in range(options["subsets"] if sources else 0):
        donor, source, take = sources[draw % len(sources)]
        for keep in KEEPS:
            rng = derive("mediation keep", seed, place.text.id, str(keep), draw)
            at = tuple(sorted(rng.sample(chain, kept_size(len(chain), keep))))
            out.append(Asked("kept", source, Row(every, at, take(at)), "all", donor, draw, str(keep)))
        mixed = derive("mediation shuffle", seed, place.text.id, draw).sample(chain, len(chain))
        out.append(Asked("shuffled", source, Row(every, chain, take(tuple(mixed))), "all", donor, draw))
    return out


def own_rows(place: Place, every: Positions, options: Mapping[str, Any], seed: int) -> list[Asked]:
    """What needs no source: noise in the chain's place, and the chain's own states in another order."""
    out = []
    for draw in range(options["subsets"]):
        noise = derive("mediation noise", seed, place.text.id, draw).randrange(1 << 31)  # a source a draw: equal rows are one
        out.append(Asked("placebo", Source("noise", at=place.chain, seed=noise), Row(every, place.chain), draw=draw))
        mixed = derive("mediation self", seed, place.text.id, draw).sample(place.chain, len(place.chain))
        out.append(Asked("self_shuffle", Source("run"), Row(every, place.chain, tuple(mixed)), draw=draw))
    return out
