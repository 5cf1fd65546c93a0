"""The requests of mediation: texts and their positions, donors, and the rows of interventions."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
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
    PatchRow,
    Reply,
    Source,
    Span,
)
from cotlab.core.rng import derive
from cotlab.core.types import Form, Item
from cotlab.metrics.kit import ANSWER_TOKENS, ask, ask_chain, reference_chain, reply_steps
from cotlab.text.prompts.chain import CUE, ask_answer, chain_text

KEEPS = (0.8, 0.6, 0.4)
Positions = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Text:
    """A question with its chain and the cue for the answer."""

    id: str
    """The item."""
    messages: tuple[Message, ...]
    """The question as the model is asked it."""
    prefix: str
    """The chain and the cue, as the start of the model's reply."""
    question: Span
    """Where the question stands."""
    chain: Span
    """Where the chain stands."""

    @classmethod
    def of(cls, item: Item, steps: Sequence[str], params: Params) -> Text:
        """Return the text of an item with a chain."""
        form: Form = "continuation" if params.subject.form == "continuation" else "prefill"
        prompt = ask_answer(item.question, steps, form)
        at = prompt.messages[0].content.find(item.question)
        return cls(
            item.id,
            prompt.messages,
            prompt.prefix,
            Span(0, max(0, at), max(0, at) + len(item.question)),
            Span(PREFIX, 0, len(chain_text(steps))),
        )

    def ask_answer(self, params: Params) -> Complete:
        """Build the request for the model's likeliest answer after this chain."""
        stop = ("\n",) if params.subject.form == "continuation" else ()
        return Complete(
            params.subject, self.messages, prefix=self.prefix, max_tokens=ANSWER_TOKENS, stop=stop
        )

    def locate(self, params: Params) -> Locate:
        """Build the request for the positions of chain, question and cue."""
        cue = Span(PREFIX, self.chain.end, len(self.prefix))
        return Locate(
            params.subject, self.messages, (self.chain, self.question, cue), prefix=self.prefix
        )

    def logprob(self, params: Params, answer: str, prefix: str | None = None) -> LogProb:
        """Build the request for the log-probability of an answer."""
        return LogProb(
            params.subject,
            self.messages,
            (answer,),
            prefix=self.prefix if prefix is None else prefix,
        )

    def patched(
        self, params: Params, answer: str, source: Source, rows: Sequence[PatchRow]
    ) -> Patched:
        """Build the request for the log-probability of an answer under each patch."""
        return Patched(
            params.subject, self.messages, answer, source, tuple(rows), prefix=self.prefix
        )


class Donor(NamedTuple):
    """Another item, whose states are put in place of this item's."""

    text: Text
    """Its text."""
    chain: Positions
    """Positions of its chain."""
    question: Positions
    """Positions of its question."""
    crossed: Positions
    """Positions of its chain after this item's question."""


@dataclass(frozen=True, slots=True)
class LocatedText:
    """The item's own text with its positions."""

    text: Text
    """The text."""
    chain: Positions
    """Positions of the chain."""
    question: Positions
    """Positions of the question."""
    layers: int
    """Number of layers of the model."""
    bare: int
    """Length in tokens of the text without a chain."""


class PatchRequest(NamedTuple):
    """One row of a patched request, and what it is a draw of."""

    part: str
    """Which intervention: cot, control, kept, placebo …"""
    source: Source
    """Where the states come from."""
    row: PatchRow
    """Which states are replaced."""
    span: str = "all"
    """The layers, by name."""
    donor: str = ""
    """The donor's item; empty where there is none."""
    draw: int = 0
    """Number of the random draw."""
    keep: str = ""
    """Share of the chain's positions that is patched; empty for all."""


def item_chains(
    items: Sequence[Item], params: Params
) -> Generator[Round, Sequence[Reply], tuple[dict[str, tuple[str, ...]], dict[str, Reply]]]:
    """Return each item's chain: the suite's, or the model's own with the reply that holds it.

    The model's own is the likeliest one, whatever the temperature of the run.
    """
    if params.options["chain"] != "own":
        return {item.id: reference_chain(item).steps for item in items}, {}
    greedy = replace(params, temperature=0.0)
    requests = {item.id: replace(ask_chain(greedy, item.question), seed=None) for item in items}
    replies = yield from ask(requests.values())
    by_item = {name: replies[request.key] for name, request in requests.items()}
    return {name: reply_steps(reply) for name, reply in by_item.items()}, by_item


def ends_of(span: str) -> tuple[int, int]:
    """Return first and last layer of a span as ``--layers`` writes it: "3", "0-7"."""
    first, _, last = span.partition("-")
    return int(first), int(last or first)


def spans_of(layers: int, requested: Sequence[str]) -> dict[str, Positions]:
    """Return layers by name: those of ``--layers`` ("3", "0-7"), and all layers last.

    Without ``--layers`` every layer and the thirds of the depth.
    """
    names = list(requested)
    if not names:
        names = [str(layer) for layer in range(layers)]
        cuts = [round(layers * k / 3) for k in range(4)]
        names += [f"{a}-{b - 1}" for a, b in zip(cuts, cuts[1:], strict=False) if b - a > 1]
    spans = {}
    for name in names:
        if name != "all" and (ends := ends_of(name))[1] < layers:
            first, last = ends
            spans[str(first) if first == last else f"{first}-{last}"] = tuple(
                range(first, last + 1)
            )
    return {**spans, "all": tuple(range(layers))}


PositionMap = Callable[[Positions], Positions]


def cot_sources(
    name: str, located_text: LocatedText, donors: Sequence[Donor]
) -> list[tuple[str, Source, PositionMap]]:
    """Return donor, source of the states and map of positions, for each donor of a source.

    Once, where the source has no donors.
    """
    chain, bare, messages = located_text.chain, located_text.bare, located_text.text.messages
    if name == "filler":
        return [("", Source("filler", at=chain), lambda at: at)]
    if name == "mean":
        return [("", Source("mean", at=located_text.question), lambda at: ())]
    if name == "right":
        short = Source("run", messages, CUE)
        return [("", short, lambda at: tuple((bare - 1 - (chain[-1] - p)) % bare for p in at))]
    if name == "literal":
        return [("", Source("run", messages, CUE), lambda at: tuple(min(p, bare - 1) for p in at))]
    return [
        (
            d.text.id,
            Source("run", messages, d.text.prefix),
            partial(_crossed, chain=chain, other=d.crossed),
        )
        for d in donors
    ]


def _crossed(at: Positions, *, chain: Positions, other: Positions) -> Positions:
    """Return the positions in the interchanged text, wrapping inside its chain."""
    return tuple(p if p < chain[0] else other[(p - chain[0]) % len(other)] for p in at)


def control_rows(
    source_name: str,
    control: str,
    located_text: LocatedText,
    donors: Sequence[Donor],
    spans: Mapping[str, Positions],
    options: Mapping[str, Any],
    seed: int,
) -> list[PatchRequest]:
    """Return the control's rows: of the chain's size at each span, of others at all layers."""

    def rng_of(*what: str | int) -> random.Random:
        return derive("mediation control", seed, located_text.text.id, *what)

    sizes = {
        "control": len(located_text.chain),
        "expanded_control": len(located_text.chain) + 2,
        "shrunk_control": len(located_text.chain) - 2,
    }
    out: list[PatchRequest] = []
    if control == "other":
        sides = [
            (
                d.text.id,
                Source("run", d.text.messages, d.text.prefix),
                _aligned(located_text.question, d.question),
            )
            for d in donors
        ]
    else:
        chain_sources = cot_sources(source_name, located_text, donors)
        sides = [
            chain_sources[k % len(chain_sources)]
            for k in range(options["donors"] if chain_sources else 0)
        ]
    for number, (donor, source, position_map) in enumerate(sides):
        for part, size in sizes.items():
            k = min(size, len(located_text.question))
            for draw in range(
                options["draws"] if 0 < k < len(located_text.question) else int(k > 0)
            ):
                at = tuple(sorted(rng_of(part, number, draw).sample(located_text.question, k)))
                for span in spans if part == "control" else ("all",):
                    nth = number * options["draws"] + draw
                    out.append(
                        PatchRequest(
                            part,
                            source,
                            PatchRow(spans[span], at, position_map(at)),
                            span,
                            donor,
                            nth,
                        )
                    )
        for keep in KEEPS:
            for draw in range(number, options["subsets"], len(sides)):
                k = min(subset_size(len(located_text.chain), keep), len(located_text.question))
                at = tuple(sorted(rng_of(str(keep), draw).sample(located_text.question, k)))
                out.append(
                    PatchRequest(
                        "kept_control",
                        source,
                        PatchRow(spans["all"], at, position_map(at)),
                        "all",
                        donor,
                        draw,
                        str(keep),
                    )
                )
    return out


def _aligned(positions: Positions, other: Positions) -> PositionMap:
    """Return the map to the same place of another question, wrapping where that is shorter."""
    return lambda at: tuple(other[positions.index(p) % len(other)] for p in at)


def subset_size(n: int, keep: float) -> int:
    """Return how many of n positions a share keeps, at least one."""
    return max(1, round(n * keep))


def chain_rows(
    source_name: str,
    located_text: LocatedText,
    donors: Sequence[Donor],
    spans: Mapping[str, Positions],
    options: Mapping[str, Any],
    seed: int,
) -> list[PatchRequest]:
    """Return the rows with a source's states in the chain's place.

    Whole, in part, shuffled, and in a wider and a narrower window.
    """
    out: list[PatchRequest] = []
    chain, every = located_text.chain, spans["all"]
    sources = cot_sources(source_name, located_text, donors)
    for donor, source, position_map in sources:
        out += [
            PatchRequest("cot", source, PatchRow(layers, chain, position_map(chain)), span, donor)
            for span, layers in spans.items()
        ]
        wide = tuple(range(max(0, chain[0] - 1), chain[-1] + 2))
        out.append(
            PatchRequest(
                "expanded", source, PatchRow(every, wide, position_map(wide)), "all", donor
            )
        )
        if len(chain) > 2:
            out.append(
                PatchRequest(
                    "shrunk",
                    source,
                    PatchRow(every, chain[1:-1], position_map(chain[1:-1])),
                    "all",
                    donor,
                )
            )
    for draw in range(options["subsets"] if sources else 0):
        donor, source, position_map = sources[draw % len(sources)]
        for keep in KEEPS:
            rng = derive("mediation keep", seed, located_text.text.id, str(keep), draw)
            at = tuple(sorted(rng.sample(chain, subset_size(len(chain), keep))))
            out.append(
                PatchRequest(
                    "kept",
                    source,
                    PatchRow(every, at, position_map(at)),
                    "all",
                    donor,
                    draw,
                    str(keep),
                )
            )
        mixed = derive("mediation shuffle", seed, located_text.text.id, draw).sample(
            chain, len(chain)
        )
        out.append(
            PatchRequest(
                "shuffled",
                source,
                PatchRow(every, chain, position_map(tuple(mixed))),
                "all",
                donor,
                draw,
            )
        )
    return out


def source_free_rows(
    located_text: LocatedText, every: Positions, options: Mapping[str, Any], seed: int
) -> list[PatchRequest]:
    """Return the rows without a source: noise, and the chain's own states shuffled."""
    out = []
    for draw in range(options["subsets"]):
        # a source a draw: equal rows are one
        noise = derive("mediation noise", seed, located_text.text.id, draw).randrange(1 << 31)
        out.append(
            PatchRequest(
                "placebo",
                Source("noise", at=located_text.chain, seed=noise),
                PatchRow(every, located_text.chain),
                draw=draw,
            )
        )
        mixed = derive("mediation self", seed, located_text.text.id, draw).sample(
            located_text.chain, len(located_text.chain)
        )
        out.append(
            PatchRequest(
                "self_shuffle",
                Source("run"),
                PatchRow(every, located_text.chain, tuple(mixed)),
                draw=draw,
            )
        )
    return out
