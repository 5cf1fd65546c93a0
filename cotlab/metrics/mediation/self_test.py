"""What mediation proves on the model at hand before it measures: patching does what it says, and nothing else."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any

from cotlab.core.errors import ConfigError, SelfTestFailed
from cotlab.core.program import Params, Preparation, Round
from cotlab.core.requests import Failed, Located, Patched, Reply, Response, Row, Source
from cotlab.core.types import Suite
from cotlab.metrics.mediation.interventions import Text, chains_of, ends_of

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
        If patching a run with its own states moves its answer, a full patch is not the source's run, or the control's
        states are those that it replaces.
    """
    why = ""
    for item, other in zip(suite.items, [*suite.items[1:], *suite.items[:1]], strict=True):
        chains, _ = yield from chains_of((item, other), params)
        steps = chains[item.id]
        if not steps or not chains[other.id]:
            continue
        text, back = Text.of(item, steps, params), Text.of(item, steps[::-1], params)
        donor = Text.of(other, chains[other.id], params)
        replies = yield [text.locate(params), back.locate(params), donor.locate(params)]
        if failed := [reply.error for reply in replies if isinstance(reply, Failed)]:
            why = why or f", {item.id!r} for instance: {failed[0]}"
            continue
        here, there, far = (reply.located for reply in replies if isinstance(reply, Response))
        if here is None or there is None or far is None:
            continue
        if beyond := [span for span in params.options["layers"] if span != "all" and ends_of(span)[1] >= here.layers]:
            raise ConfigError(f"--layers {', '.join(beyond)}: the model has layers 0 to {here.layers - 1}.")
        noise = yield from _noise(((text, here), (back, there), (donor, far)), params)
        found = yield from _measure(text, back, donor, here, there, far, params)
        return _judge(found, noise, here.dtype, item.id)
    return {"self_test": f"not made: the model can read no item, so nothing is patched{why}"}


def _noise(texts: Sequence[tuple[Text, Located]], params: Params) -> Generator[Round, Sequence[Reply], float]:
    """How far the shape of a batch alone moves log P of an answer, in nats: the most over three unpatched texts.

    One text would not do: in a short dtype a single number may come out the same by rounding.
    """
    runs: list[list[float]] = [[] for _ in texts]
    for n in SHAPES:
        replies = yield [
            text.patched(params, ANSWER, Source("run"), [Row((), at.positions[0], at.positions[0])] * n) for text, at in texts
        ]
        for run, reply in zip(runs, replies, strict=True):
            run += _numbers(reply)
    alone = yield [text.logprob(params, ANSWER) for text, _ in texts]
    for run, reply in zip(runs, alone, strict=True):
        run += _numbers(reply)
    return max(max(run) - min(run) for run in runs)


def _measure(
    text: Text, back: Text, donor: Text, here: Located, there: Located, far: Located, params: Params
) -> Generator[Round, Sequence[Reply], dict[str, Any]]:
    """Every number that the checks need, in nats, in rounds of their own so that batch shapes are known."""
    n, every = len(here.pieces), tuple(range(here.layers))
    whole, (chain, question, _) = tuple(range(n)), here.positions

    def ask(source: Source, rows: Sequence[Row]) -> Patched:
        return text.patched(params, ANSWER, source, rows)

    own = Source("run")
    same = yield [ask(own, [Row((), whole, whole)])]
    identity = yield [ask(own, [Row(every, whole, whole)])]
    spans = [Row(tuple(range(layer, here.layers)), chain, chain) for layer in every]
    base, shapes, none = yield [
        text.logprob(params, ANSWER), ask(own, spans), ask(own, [Row((), chain, chain)])
    ]  # fmt: skip
    k = min(len(question), len(far.positions[1]))
    swap = Row(every, question[:k], far.positions[1][:k])
    (control,) = yield [ask(Source("run", donor.messages, donor.prefix), [swap])]
    found = {
        "same": _numbers(same[0]), "identity": _numbers(identity[0]), "base": _numbers(base), "shapes": _numbers(shapes),
        "none": _numbers(none), "control": _numbers(control), "full": None, "source": None,
        "answer_apart": max(*chain, *question) < n,
    }  # fmt: skip
    if len(there.pieces) == n and back.prefix != text.prefix:
        full, source = yield [
            ask(Source("run", back.messages, back.prefix), [Row(every, whole, whole)]), back.logprob(params, ANSWER)
        ]
        found |= {"full": _numbers(full), "source": _numbers(source)}
    return found


def _numbers(reply: Reply) -> Sequence[float]:
    if isinstance(reply, Failed) or not reply.numbers:
        why = reply.error if isinstance(reply, Failed) else "the reply holds none"
        raise SelfTestFailed(f"The self-test of patching got no numbers: {why}.")
    return reply.numbers


def _judge(found: Mapping[str, Any], noise: float, dtype: str, item: str) -> Mapping[str, Any]:
    """The measured deviations where all are within bounds."""
    same, base = found["same"][0], found["base"][0]
    exact = dtype in ("float32", "float64")
    noise = max(noise, abs(same - base), abs(found["none"][0] - base))
    most = TOLERANCE if exact else max(TOLERANCE, NOISE_TIMES * noise)
    identity = abs(found["identity"][0] - same)
    shapes = max(abs(number - base) for number in found["shapes"])
    full = None if found["full"] is None else abs(found["full"][0] - found["source"][0])
    where = f"on item {item!r} in {dtype}"
    allowed = f"at most {most:.2g} is allowed" + ("" if exact else f", {NOISE_TIMES} times the noise between batch shapes")
    if identity > (0 if exact else most):
        bound = "not by 0" if exact else allowed
        raise SelfTestFailed(f"Patching a run with its own states moves its answer by {identity:.2g} nat {where}, {bound}.")
    if shapes > most:
        raise SelfTestFailed(f"The identity patch moves the answer by {shapes:.2g} nat across batch shapes {where}; {allowed}.")
    if full is not None and full > most:
        raise SelfTestFailed(f"Patching every position is {full:.2g} nat off the source's run {where}; {allowed}.")
    if not found["answer_apart"]:
        raise SelfTestFailed(f"The answer's positions lie among those of the chain or the question {where}.")
    if found["control"][0] == same or abs(found["control"][0] - base) <= 1e-7:
        raise SelfTestFailed(f"The control changes nothing {where}: its states are those that it replaces.")
    return {
        "self_test": "passed", "item": item, "dtype": dtype, "identity_nats": identity, "across_shapes_nats": shapes,
        "full_patch_nats": full, "batch_noise_nats": noise, "allowed_nats": most,
    }  # fmt: skip
