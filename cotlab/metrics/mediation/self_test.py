"""The self-test before mediation measures: patching does what it says, and nothing else."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any

from cotlab.core.errors import ConfigError, SelfTestFailed
from cotlab.core.program import Params, Preparation, Round
from cotlab.core.requests import Failed, Located, Patched, PatchRow, Reply, Response, Source
from cotlab.core.types import Suite
from cotlab.metrics.mediation.interventions import Text, ends_of, item_chains

TOLERANCE = 1e-4
"""How far batch shapes may move a log-probability in float32, in nats."""
NOISE_TIMES = 3
"""In a shorter dtype: how many times the model's own noise between batch shapes."""
SHAPES = (1, 2, 5, 16)
"""Batches of the clean run whose numbers tell that noise."""
ANSWER = " 1"
"""What is scored: any answer tells whether patching works."""


def self_test(suite: Suite, params: Params) -> Preparation:
    """Check the patching on the first item that the model can take.

    Raises
    ------
    SelfTestFailed
        If patching a run with its own states moves its answer, a full patch is not the source's
        run, or the control's states are those that it replaces.
    """
    reason = ""
    for item, other in zip(suite.items, [*suite.items[1:], *suite.items[:1]], strict=True):
        chains, _ = yield from item_chains((item, other), params)
        steps = chains[item.id]
        if not steps or not chains[other.id]:
            continue
        text, reversed_text = Text.of(item, steps, params), Text.of(item, steps[::-1], params)
        donor = Text.of(other, chains[other.id], params)
        replies = yield [text.locate(params), reversed_text.locate(params), donor.locate(params)]
        if failed := [reply.error for reply in replies if isinstance(reply, Failed)]:
            reason = reason or f", {item.id!r} for instance: {failed[0]}"
            continue
        location, reversed_location, donor_location = (
            reply.located for reply in replies if isinstance(reply, Response)
        )
        if location is None or reversed_location is None or donor_location is None:
            continue
        if beyond := [
            span
            for span in params.options["layers"]
            if span != "all" and ends_of(span)[1] >= location.layers
        ]:
            raise ConfigError(
                f"--layers {', '.join(beyond)}: the model has layers 0 to {location.layers - 1}."
            )
        noise = yield from _noise(
            ((text, location), (reversed_text, reversed_location), (donor, donor_location)), params
        )
        measured = yield from _measure(
            text, reversed_text, donor, location, reversed_location, donor_location, params
        )
        return _judge(measured, noise, location.dtype, item.id)
    return {"self_test": f"not made: the model can read no item, so nothing is patched{reason}"}


def _noise(
    texts: Sequence[tuple[Text, Located]], params: Params
) -> Generator[Round, Sequence[Reply], float]:
    """Measure how far the shape of a batch alone moves log P of an answer, in nats.

    It is the most over three unpatched texts. One text would not do: in a short dtype a single
    number may come out the same by rounding.
    """
    runs: list[list[float]] = [[] for _ in texts]
    for n in SHAPES:
        replies = yield [
            text.patched(
                params, ANSWER, Source("run"), [PatchRow((), at.positions[0], at.positions[0])] * n
            )
            for text, at in texts
        ]
        for run, reply in zip(runs, replies, strict=True):
            run += _numbers(reply)
    alone = yield [text.logprob(params, ANSWER) for text, _ in texts]
    for run, reply in zip(runs, alone, strict=True):
        run += _numbers(reply)
    return max(max(run) - min(run) for run in runs)


def _measure(
    text: Text,
    reversed_text: Text,
    donor: Text,
    location: Located,
    reversed_location: Located,
    donor_location: Located,
    params: Params,
) -> Generator[Round, Sequence[Reply], dict[str, Any]]:
    """Measure every number that the checks need, in nats.

    The rounds are separate, so that batch shapes are known.
    """
    n, every = len(location.pieces), tuple(range(location.layers))
    all_positions, (chain, question, _) = tuple(range(n)), location.positions

    def ask(source: Source, rows: Sequence[PatchRow]) -> Patched:
        return text.patched(params, ANSWER, source, rows)

    self_source = Source("run")
    same = yield [ask(self_source, [PatchRow((), all_positions, all_positions)])]
    identity = yield [ask(self_source, [PatchRow(every, all_positions, all_positions)])]
    spans = [PatchRow(tuple(range(layer, location.layers)), chain, chain) for layer in every]
    base, shapes, none = yield [
        text.logprob(params, ANSWER),
        ask(self_source, spans),
        ask(self_source, [PatchRow((), chain, chain)]),
    ]
    k = min(len(question), len(donor_location.positions[1]))
    swap = PatchRow(every, question[:k], donor_location.positions[1][:k])
    (control,) = yield [ask(Source("run", donor.messages, donor.prefix), [swap])]
    measured = {
        "same": _numbers(same[0]),
        "identity": _numbers(identity[0]),
        "base": _numbers(base),
        "shapes": _numbers(shapes),
        "none": _numbers(none),
        "control": _numbers(control),
        "full": None,
        "source": None,
        "answer_apart": max(*chain, *question) < n,
    }
    if len(reversed_location.pieces) == n and reversed_text.prefix != text.prefix:
        full, source = yield [
            ask(
                Source("run", reversed_text.messages, reversed_text.prefix),
                [PatchRow(every, all_positions, all_positions)],
            ),
            reversed_text.logprob(params, ANSWER),
        ]
        measured |= {"full": _numbers(full), "source": _numbers(source)}
    return measured


def _numbers(reply: Reply) -> Sequence[float]:
    if isinstance(reply, Failed) or not reply.numbers:
        reason = reply.error if isinstance(reply, Failed) else "the reply holds none"
        raise SelfTestFailed(f"The self-test of patching got no numbers: {reason}.")
    return reply.numbers


def _judge(measured: Mapping[str, Any], noise: float, dtype: str, item: str) -> Mapping[str, Any]:
    """Return the measured deviations where all are within bounds."""
    same, base = measured["same"][0], measured["base"][0]
    exact = dtype in ("float32", "float64")
    noise = max(noise, abs(same - base), abs(measured["none"][0] - base))
    limit = TOLERANCE if exact else max(TOLERANCE, NOISE_TIMES * noise)
    identity = abs(measured["identity"][0] - same)
    shapes = max(abs(number - base) for number in measured["shapes"])
    full = None if measured["full"] is None else abs(measured["full"][0] - measured["source"][0])
    where = f"on item {item!r} in {dtype}"
    allowed = f"at most {limit:.2g} is allowed" + (
        "" if exact else f", {NOISE_TIMES} times the noise between batch shapes"
    )
    if identity > (0 if exact else limit):
        bound = "not by 0" if exact else allowed
        raise SelfTestFailed(
            f"Patching a run with its own states moves its answer by {identity:.2g} nat {where},"
            f" {bound}."
        )
    if shapes > limit:
        raise SelfTestFailed(
            f"The identity patch moves the answer by {shapes:.2g} nat across batch shapes {where};"
            f" {allowed}."
        )
    if full is not None and full > limit:
        raise SelfTestFailed(
            f"Patching every position is {full:.2g} nat off the source's run {where}; {allowed}."
        )
    if not measured["answer_apart"]:
        raise SelfTestFailed(
            f"The answer's positions lie among those of the chain or the question {where}."
        )
    if measured["control"][0] == same or abs(measured["control"][0] - base) <= 1e-7:
        raise SelfTestFailed(
            f"The control changes nothing {where}: its states are those that it replaces."
        )
    return {
        "self_test": "passed",
        "item": item,
        "dtype": dtype,
        "identity_nats": identity,
        "across_shapes_nats": shapes,
        "full_patch_nats": full,
        "batch_noise_nats": noise,
        "allowed_nats": limit,
    }
