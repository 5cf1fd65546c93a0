"""The control of mediation: which positions it patches, in which text, with whose states."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from cotlab.core.keys import derive
from cotlab.core.program import Params, RequestRound
from cotlab.core.requests import (
    PREFIX_INDEX,
    Failed,
    Locate,
    LogProb,
    Reply,
    Request,
    Source,
    Span,
)
from cotlab.metrics.kit import MissingReason, ask, missing_reply_reason
from cotlab.metrics.mediation.interventions import (
    KEEP_SHARES,
    ChainText,
    Donor,
    LocatedText,
    PatchRequest,
    Positions,
    StateSource,
    state_sources,
    subset_size,
)
from cotlab.text.edits.ablations import dots_text

DONOR_CONTROLS = ("other", "neutral")
"""Controls whose states come from another item whatever the source."""
N_SPARE_FILLERS = 2
"""Dots beyond the chain's length: the control of the wider window needs as many."""


class NeutralText(NamedTuple):
    """The item's text with dots between question and chain, and the donors' in the same form."""

    prefix: str
    """Dots, chain and cue."""
    positions: Positions
    """Positions of the dots."""
    donor_runs: Mapping[str, tuple[Source, Positions]]
    """Each donor's run in this form, and the positions of its dots."""
    base_request: LogProb
    """The request for the answer's log-probability in this text without a patch."""


class ControlSource(NamedTuple):
    """States of a control, and the text that they are put into."""

    states: StateSource
    """Where the states come from."""
    positions: Positions
    """Positions that the control may patch."""
    prefix: str = ""
    """Prefix of the text that is patched; empty for the item's own."""


def neutral_prefix(text: ChainText, n_fillers: int) -> tuple[str, Span]:
    """Return the start of a reply with dots before its chain, and where the dots stand."""
    dots = dots_text(n_fillers)
    return f"{dots}\n{text.prefix}", Span(PREFIX_INDEX, 0, len(dots))


def locate_neutral_text(
    located_text: LocatedText, donors: Sequence[Donor], answer: str, params: Params
) -> Generator[
    RequestRound, Sequence[Reply], tuple[NeutralText | None, MissingReason, dict[str, Reply]]
]:
    """Ask where dots beside the chain stand, in the item's text and in its donors'.

    Returns
    -------
    NeutralText or None
        None where it cannot be located for the item and at least one donor.
    MissingReason
        Why there is none.
    dict of str to Reply
        The replies, by request key.
    """
    n_fillers = len(located_text.chain_positions) + N_SPARE_FILLERS
    text = located_text.text

    def locate_request(chain_text: ChainText) -> Locate:
        prefix, span = neutral_prefix(chain_text, n_fillers)
        return Locate(params.subject, chain_text.messages, (span,), prefix=prefix)

    prefix, _ = neutral_prefix(text, n_fillers)
    base_request = text.logprob_request(params, answer, prefix)
    own_request = locate_request(text)
    request_by_donor = {donor.text.id: locate_request(donor.text) for donor in donors}
    requests: list[Request] = [base_request, own_request, *request_by_donor.values()]
    replies = yield from ask(requests)
    for reply in replies.values():
        if (reason := missing_reply_reason(reply)) is not None:
            return None, reason, dict(replies)
    own_positions = _first_span(replies[own_request.key])
    donor_runs = {}
    for donor in donors:
        donor_prefix, _ = neutral_prefix(donor.text, n_fillers)
        positions = _first_span(replies[request_by_donor[donor.text.id].key])
        if positions:
            source = Source("run", donor.text.messages, donor_prefix)
            donor_runs[donor.text.id] = (source, positions)
    if not own_positions or not donor_runs:
        return None, ("undefined", "the dots beside the chain cannot be located"), dict(replies)
    return (
        NeutralText(prefix, own_positions, donor_runs, base_request),
        ("undefined", ""),
        dict(replies),
    )


def _first_span(reply: Reply) -> Positions:
    """Return the positions of the first span of a reply; none where it has no positions."""
    if isinstance(reply, Failed) or reply.located is None:
        return ()
    return reply.located.positions[0]


def _map_by_index(
    positions: Positions, *, from_positions: Positions, to_positions: Positions
) -> Positions:
    """Return the same places of another span, wrapping where that is shorter."""
    return tuple(
        to_positions[from_positions.index(position) % len(to_positions)] for position in positions
    )


def control_sources(
    source_name: str,
    control: str,
    located_text: LocatedText,
    donors: Sequence[Donor],
    options: Mapping[str, Any],
    neutral_text: NeutralText | None,
) -> list[ControlSource]:
    """Return whose states a control puts where; none where it has no donors."""
    question = located_text.question_positions
    if control == "total":
        return _total_sources(source_name, located_text, donors)
    if control == "neutral":
        if neutral_text is None:
            return []
        return [
            ControlSource(
                StateSource(
                    donor,
                    source,
                    partial(
                        _map_by_index,
                        from_positions=neutral_text.positions,
                        to_positions=donor_positions,
                    ),
                ),
                neutral_text.positions,
                neutral_text.prefix,
            )
            for donor, (source, donor_positions) in neutral_text.donor_runs.items()
        ]
    if control == "other":
        return [
            ControlSource(
                StateSource(
                    donor.text.id,
                    Source("run", donor.text.messages, donor.text.prefix),
                    partial(
                        _map_by_index,
                        from_positions=question,
                        to_positions=donor.question_positions,
                    ),
                ),
                question,
            )
            for donor in donors
        ]
    chain_sources = state_sources(source_name, located_text, donors)
    return [
        ControlSource(chain_sources[n_sampled % len(chain_sources)], question)
        for n_sampled in range(options["donors"] if chain_sources else 0)
    ]


def _total_sources(
    source_name: str, located_text: LocatedText, donors: Sequence[Donor]
) -> list[ControlSource]:
    """Return the sources that take question and chain together.

    Of ``interchange`` the run of each donor, of any other source dots in both places.
    """
    question, chain = located_text.question_positions, located_text.chain_positions
    positions = tuple(sorted({*question, *chain}))
    if source_name != "interchange":
        source = Source("filler", at=positions)
        return [ControlSource(StateSource("", source, lambda at: at), positions)]

    def map_to_run(at: Positions, *, donor: Donor) -> Positions:
        return tuple(
            _map_by_index(
                (position,),
                from_positions=chain if position in chain else question,
                to_positions=donor.chain_positions
                if position in chain
                else donor.question_positions,
            )[0]
            for position in at
        )

    return [
        ControlSource(
            StateSource(
                donor.text.id,
                Source("run", donor.text.messages, donor.text.prefix),
                partial(map_to_run, donor=donor),
            ),
            positions,
        )
        for donor in donors
    ]


def control_rows(
    control: str,
    sources: Sequence[ControlSource],
    located_text: LocatedText,
    spans: Mapping[str, Positions],
    options: Mapping[str, Any],
    seed: int,
) -> list[PatchRequest]:
    """Return the control's rows: of the chain's size at each span, of others at all layers.

    Of the control ``total`` there is one row a source: every position, all layers.
    """
    n_chain_tokens = len(located_text.chain_positions)
    if control == "total":
        return [
            source.states.patch_request("control", spans["all"], source.positions)
            for source in sources
        ]

    def sample_positions(
        positions: Positions, n_positions: int, *seed_keys: str | int
    ) -> Positions:
        rng = derive("mediation control", seed, located_text.text.id, *seed_keys)
        return tuple(sorted(rng.sample(positions, n_positions)))

    size_by_part = {
        "control": n_chain_tokens,
        "expanded_control": n_chain_tokens + 2,
        "shrunk_control": n_chain_tokens - 2,
    }
    patch_requests: list[PatchRequest] = []
    for source_index, (states, pool, prefix) in enumerate(sources):
        for part, size in size_by_part.items():
            n_sampled = min(size, len(pool))
            for draw in range(
                options["draws"] if 0 < n_sampled < len(pool) else int(n_sampled > 0)
            ):
                positions = sample_positions(pool, n_sampled, part, source_index, draw)
                draw_index = source_index * options["draws"] + draw
                for span in spans if part == "control" else ("all",):
                    patch = states.patch_request(
                        part, spans[span], positions, span=span, draw=draw_index
                    )
                    patch_requests.append(patch._replace(prefix=prefix))
        for keep_share in KEEP_SHARES:
            n_sampled = min(subset_size(n_chain_tokens, keep_share), len(pool))
            for draw in range(source_index, options["subsets"], len(sources)):
                positions = sample_positions(pool, n_sampled, str(keep_share), draw)
                patch = states.patch_request(
                    "kept_control", spans["all"], positions, draw=draw, keep_share=keep_share
                )
                patch_requests.append(patch._replace(prefix=prefix))
    return patch_requests


def control_coverage(
    sources: Sequence[ControlSource], located_text: LocatedText, fallback: Positions
) -> float:
    """Return positions that a control can patch over positions of the chain, at most 1."""
    positions = sources[0].positions if sources else fallback
    return min(1.0, len(positions) / len(located_text.chain_positions))
