"""The requests of mediation: texts and their positions, donors, and the rows of interventions."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from cotlab.core.keys import derive
from cotlab.core.program import Params, RequestRound
from cotlab.core.requests import (
    PREFIX_INDEX,
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
from cotlab.core.types import Form, Item
from cotlab.metrics.kit import MAX_ANSWER_TOKENS, ask, ask_chain, chain_from_reply, reference_chain
from cotlab.text.prompts.chain import FINAL_ANSWER_CUE, answer_prompt, chain_text

KEEP_SHARES = (0.8, 0.6, 0.4)
Positions = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ChainText:
    """A question with its chain and the cue for the answer."""

    id: str
    """The item."""
    messages: tuple[Message, ...]
    """The question as the model is asked it."""
    prefix: str
    """The chain and the cue, as the start of the model's reply."""
    question_span: Span
    """Where the question stands."""
    chain_span: Span
    """Where the chain stands."""

    @classmethod
    def from_item(cls, item: Item, steps: Sequence[str], params: Params) -> ChainText:
        """Return the text of an item with a chain."""
        form: Form = "continuation" if params.subject.form == "continuation" else "prefill"
        prompt = answer_prompt(item.question, steps, form)
        question_start = prompt.messages[0].content.find(item.question)
        return cls(
            item.id,
            prompt.messages,
            prompt.prefix,
            Span(0, max(0, question_start), max(0, question_start) + len(item.question)),
            Span(PREFIX_INDEX, 0, len(chain_text(steps))),
        )

    def answer_request(self, params: Params) -> Complete:
        """Build the request for the model's likeliest answer after this chain."""
        stop = ("\n",) if params.subject.form == "continuation" else ()
        return Complete(
            params.subject,
            self.messages,
            prefix=self.prefix,
            max_tokens=MAX_ANSWER_TOKENS,
            stop=stop,
        )

    def locate_request(self, params: Params) -> Locate:
        """Build the request for the positions of chain, question and cue."""
        cue = Span(PREFIX_INDEX, self.chain_span.end, len(self.prefix))
        spans = (self.chain_span, self.question_span, cue)
        return Locate(params.subject, self.messages, spans, prefix=self.prefix)

    def logprob_request(self, params: Params, answer: str, prefix: str | None = None) -> LogProb:
        """Build the request for the log-probability of an answer."""
        prefix = self.prefix if prefix is None else prefix
        return LogProb(params.subject, self.messages, (answer,), prefix=prefix)

    def patched_request(
        self,
        params: Params,
        answer: str,
        source: Source,
        rows: Sequence[PatchRow],
        prefix: str | None = None,
    ) -> Patched:
        """Build the request for the log-probability of an answer under each patch."""
        prefix = self.prefix if prefix is None else prefix
        return Patched(params.subject, self.messages, answer, source, tuple(rows), prefix=prefix)


class Donor(NamedTuple):
    """Another item, whose states are put in place of this item's."""

    text: ChainText
    """Its text."""
    chain_positions: Positions
    """Positions of its chain."""
    question_positions: Positions
    """Positions of its question."""
    crossed_positions: Positions
    """Positions of its chain after this item's question."""


@dataclass(frozen=True, slots=True)
class LocatedText:
    """The item's own text with its positions."""

    text: ChainText
    """The text."""
    chain_positions: Positions
    """Positions of the chain."""
    question_positions: Positions
    """Positions of the question."""
    n_layers: int
    """Number of layers of the model."""
    n_bare_tokens: int
    """Length in tokens of the text without a chain."""


class PatchKey(NamedTuple):
    """What the rows of one patched request have in common."""

    prefix: str
    """Prefix of the text that is patched; empty for the item's own."""
    source: Source
    """Where the states come from."""


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
    prefix: str = ""
    """Prefix of the text that is patched; empty for the item's own."""

    @property
    def request_key(self) -> PatchKey:
        """Return what decides the request that holds this row."""
        return PatchKey(self.prefix, self.source)


class StateSource(NamedTuple):
    """States that replace the item's own."""

    donor: str
    """The donor's item; empty where there is none."""
    source: Source
    """Where the states come from."""
    map_positions: Callable[[Positions], Positions]
    """From the positions that are patched to those of the source."""

    def patch_request(
        self,
        part: str,
        layers: Positions,
        positions: Positions,
        *,
        span: str = "all",
        draw: int = 0,
        keep_share: float | None = None,
    ) -> PatchRequest:
        """Return the row that puts these states at some layers and positions."""
        row = PatchRow(layers, positions, self.map_positions(positions))
        keep_text = "" if keep_share is None else str(keep_share)
        return PatchRequest(part, self.source, row, span, self.donor, draw, keep_text)


def collect_chains(
    items: Sequence[Item], params: Params
) -> Generator[RequestRound, Sequence[Reply], tuple[dict[str, tuple[str, ...]], dict[str, Reply]]]:
    """Return each item's chain: the suite's, or the model's own with the reply that holds it.

    The model's own is the likeliest one, whatever the temperature of the run.
    """
    if params.options["chain"] != "own":
        return {item.id: reference_chain(item).steps for item in items}, {}
    greedy_params = replace(params, temperature=0.0)
    requests = {
        item.id: replace(ask_chain(greedy_params, item.question), seed=None) for item in items
    }
    replies = yield from ask(requests.values())
    reply_by_item = {item_id: replies[request.key] for item_id, request in requests.items()}
    steps = {k: chain_from_reply(reply).whole().steps for k, reply in reply_by_item.items()}
    return steps, reply_by_item


def first_and_last_layer(span: str) -> tuple[int, int]:
    """Return first and last layer of a span as ``--layers`` writes it: "3", "0-7"."""
    first, _, last = span.partition("-")
    return int(first), int(last or first)


def layers_by_span(n_layers: int, span_names: Sequence[str]) -> dict[str, Positions]:
    """Return layers by name: those of ``--layers`` ("3", "0-7"), and all layers last.

    Without ``--layers`` every layer and the thirds of the depth.
    """
    names = list(span_names)
    if not names:
        names = [str(layer) for layer in range(n_layers)]
        cuts = [round(n_layers * k / 3) for k in range(4)]
        names += [f"{a}-{b - 1}" for a, b in zip(cuts, cuts[1:], strict=False) if b - a > 1]
    spans = {}
    for first, last in (first_and_last_layer(name) for name in names if name != "all"):
        if last < n_layers:
            span = str(first) if first == last else f"{first}-{last}"
            spans[span] = tuple(range(first, last + 1))
    return {**spans, "all": tuple(range(n_layers))}


def state_sources(
    source_name: str, located_text: LocatedText, donors: Sequence[Donor]
) -> list[StateSource]:
    """Return the states of a source, once for each donor; once where the source has no donors."""
    chain_positions, messages = located_text.chain_positions, located_text.text.messages
    bare_source, last = Source("run", messages, FINAL_ANSWER_CUE), located_text.n_bare_tokens - 1
    if source_name == "filler":
        return [StateSource("", Source("filler", at=chain_positions), lambda positions: positions)]
    if source_name == "mean":
        mean_source = Source("mean", at=located_text.question_positions)
        return [StateSource("", mean_source, lambda positions: ())]
    if source_name == "right":
        shift = last - chain_positions[-1]

        def align_right(positions: Positions) -> Positions:
            return tuple((position + shift) % (last + 1) for position in positions)

        return [StateSource("", bare_source, align_right)]
    if source_name == "literal":
        return [
            StateSource("", bare_source, lambda positions: tuple(min(p, last) for p in positions))
        ]
    return [
        StateSource(
            donor.text.id,
            Source("run", messages, donor.text.prefix),
            partial(
                _map_to_crossed,
                chain_positions=chain_positions,
                crossed_positions=donor.crossed_positions,
            ),
        )
        for donor in donors
    ]


def _map_to_crossed(
    positions: Positions, *, chain_positions: Positions, crossed_positions: Positions
) -> Positions:
    """Return the positions in the interchanged text, wrapping inside its chain."""
    return tuple(
        position
        if position < chain_positions[0]
        else crossed_positions[(position - chain_positions[0]) % len(crossed_positions)]
        for position in positions
    )


def subset_size(n_positions: int, keep_share: float) -> int:
    """Return how many of n positions a share keeps, at least one."""
    return max(1, round(n_positions * keep_share))


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
    patch_requests: list[PatchRequest] = []
    chain, all_layers = located_text.chain_positions, spans["all"]
    wide_positions = tuple(range(max(0, chain[0] - 1), chain[-1] + 2))
    sources = state_sources(source_name, located_text, donors)
    for source in sources:
        patch_requests += [
            source.patch_request("cot", layers, chain, span=span) for span, layers in spans.items()
        ]
        patch_requests.append(source.patch_request("expanded", all_layers, wide_positions))
        if len(chain) > 2:
            patch_requests.append(source.patch_request("shrunk", all_layers, chain[1:-1]))
    for draw in range(options["subsets"] if sources else 0):
        source = sources[draw % len(sources)]
        for keep_share in KEEP_SHARES:
            rng = derive("mediation keep", seed, located_text.text.id, str(keep_share), draw)
            positions = tuple(sorted(rng.sample(chain, subset_size(len(chain), keep_share))))
            patch = source.patch_request(
                "kept", all_layers, positions, draw=draw, keep_share=keep_share
            )
            patch_requests.append(patch)
        rng = derive("mediation shuffle", seed, located_text.text.id, draw)
        shuffled_positions = source.map_positions(tuple(rng.sample(chain, len(chain))))
        row = PatchRow(all_layers, chain, shuffled_positions)
        patch_requests.append(
            PatchRequest("shuffled", source.source, row, donor=source.donor, draw=draw)
        )
    return patch_requests


def source_free_rows(
    located_text: LocatedText, all_layers: Positions, options: Mapping[str, Any], seed: int
) -> list[PatchRequest]:
    """Return the rows without a source: noise, and the chain's own states shuffled."""
    patch_requests: list[PatchRequest] = []
    chain, item_id = located_text.chain_positions, located_text.text.id
    for draw in range(options["subsets"]):
        # a source a draw: equal rows are one
        noise_seed = derive("mediation noise", seed, item_id, draw).randrange(1 << 31)
        noise_source = Source("noise", at=chain, seed=noise_seed)
        shuffled_positions = tuple(
            derive("mediation self", seed, item_id, draw).sample(chain, len(chain))
        )
        patch_requests += [
            PatchRequest("placebo", noise_source, PatchRow(all_layers, chain), draw=draw),
            PatchRequest(
                "self_shuffle",
                Source("run"),
                PatchRow(all_layers, chain, shuffled_positions),
                draw=draw,
            ),
        ]
    return patch_requests
