"""The self-test before mediation measures: patching does what it says, and nothing else."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any

from cotlab.core.errors import ConfigError, SelfTestFailed
from cotlab.core.program import Params, Preparation, RequestRound
from cotlab.core.requests import Failed, Located, Patched, PatchRow, Reply, Response, Source
from cotlab.core.types import Suite
from cotlab.metrics.mediation.interventions import ChainText, collect_chains, first_and_last_layer

TOLERANCE_NATS = 1e-4
"""How far batch shapes may move a log-probability in float32, in nats."""
NOISE_FACTOR = 3
"""In a shorter dtype: how many times the model's own noise between batch shapes."""
BATCH_SIZES = (1, 2, 5, 16)
"""Batches of the clean run whose numbers tell that noise."""
TEST_ANSWER = " 1"
"""What is scored: any answer tells whether patching works."""


def run_self_test(suite: Suite, params: Params) -> Preparation:
    """Check the patching on the first item that the model can take.

    Raises
    ------
    SelfTestFailed
        If patching a run with its own states moves its answer, a full patch is not the source's
        run, or the control's states are those that it replaces.
    """
    reason = ""
    for item, donor_item in zip(suite.items, [*suite.items[1:], *suite.items[:1]], strict=True):
        chains, _ = yield from collect_chains((item, donor_item), params)
        steps = chains[item.id]
        if not steps or not chains[donor_item.id]:
            continue
        text = ChainText.from_item(item, steps, params)
        reversed_text = ChainText.from_item(item, steps[::-1], params)
        donor = ChainText.from_item(donor_item, chains[donor_item.id], params)
        replies = yield [
            text.locate_request(params),
            reversed_text.locate_request(params),
            donor.locate_request(params),
        ]
        if errors := [reply.error for reply in replies if isinstance(reply, Failed)]:
            reason = reason or f", {item.id!r} for instance: {errors[0]}"
            continue
        location, reversed_location, donor_location = (
            reply.located for reply in replies if isinstance(reply, Response)
        )
        if location is None or reversed_location is None or donor_location is None:
            continue
        if unknown_spans := [
            span
            for span in params.options["layers"]
            if span != "all" and first_and_last_layer(span)[1] >= location.layers
        ]:
            raise ConfigError(
                f"--layers {', '.join(unknown_spans)}: the model has layers 0 to"
                f" {location.layers - 1}."
            )
        noise_nats = yield from _measure_noise(
            ((text, location), (reversed_text, reversed_location), (donor, donor_location)), params
        )
        numbers_by_check = yield from _measure_checks(
            text, reversed_text, donor, location, reversed_location, donor_location, params
        )
        return _check_deviations(numbers_by_check, noise_nats, location.dtype, item.id)
    return {"self_test": f"not made: the model can read no item, so nothing is patched{reason}"}


def _measure_noise(
    texts: Sequence[tuple[ChainText, Located]], params: Params
) -> Generator[RequestRound, Sequence[Reply], float]:
    """Measure how far the shape of a batch alone moves log P of an answer, in nats.

    It is the most over three unpatched texts. One text would not do: in a short dtype a single
    number may come out the same by rounding.
    """
    numbers_by_text: list[list[float]] = [[] for _ in texts]
    for batch_size in BATCH_SIZES:
        replies = yield [
            text.patched_request(
                params,
                TEST_ANSWER,
                Source("run"),
                [PatchRow((), located.positions[0], located.positions[0])] * batch_size,
            )
            for text, located in texts
        ]
        for text_numbers, reply in zip(numbers_by_text, replies, strict=True):
            text_numbers += _require_numbers(reply)
    single_replies = yield [text.logprob_request(params, TEST_ANSWER) for text, _ in texts]
    for text_numbers, reply in zip(numbers_by_text, single_replies, strict=True):
        text_numbers += _require_numbers(reply)
    return max(max(text_numbers) - min(text_numbers) for text_numbers in numbers_by_text)


def _measure_checks(
    text: ChainText,
    reversed_text: ChainText,
    donor: ChainText,
    location: Located,
    reversed_location: Located,
    donor_location: Located,
    params: Params,
) -> Generator[RequestRound, Sequence[Reply], dict[str, Any]]:
    """Measure every number that the checks need, in nats.

    The rounds are separate, so that batch shapes are known.
    """
    n_tokens, all_layers = len(location.pieces), tuple(range(location.layers))
    all_positions, (chain, question, _) = tuple(range(n_tokens)), location.positions

    def patched_request(source: Source, rows: Sequence[PatchRow]) -> Patched:
        return text.patched_request(params, TEST_ANSWER, source, rows)

    self_source = Source("run")
    unpatched_replies = yield [
        patched_request(self_source, [PatchRow((), all_positions, all_positions)])
    ]
    identity_replies = yield [
        patched_request(self_source, [PatchRow(all_layers, all_positions, all_positions)])
    ]
    span_rows = [
        PatchRow(tuple(range(layer, location.layers)), chain, chain) for layer in all_layers
    ]
    base_reply, shapes_reply, no_layer_reply = yield [
        text.logprob_request(params, TEST_ANSWER),
        patched_request(self_source, span_rows),
        patched_request(self_source, [PatchRow((), chain, chain)]),
    ]
    control_replies = yield [
        patched_request(source, [row])
        for source, row in _control_patches(donor, location, donor_location, params)
    ]
    numbers_by_check = {
        "same": _require_numbers(unpatched_replies[0]),
        "identity": _require_numbers(identity_replies[0]),
        "base": _require_numbers(base_reply),
        "shapes": _require_numbers(shapes_reply),
        "none": _require_numbers(no_layer_reply),
        "control": [_require_numbers(reply)[0] for reply in control_replies],
        "answer_apart": max(*chain, *question) < n_tokens,
    }
    if len(reversed_location.pieces) == n_tokens and reversed_text.prefix != text.prefix:
        full_reply, source_reply = yield [
            patched_request(
                Source("run", reversed_text.messages, reversed_text.prefix),
                [PatchRow(all_layers, all_positions, all_positions)],
            ),
            reversed_text.logprob_request(params, TEST_ANSWER),
        ]
        numbers_by_check |= {
            "full": _require_numbers(full_reply),
            "source": _require_numbers(source_reply),
        }
    return numbers_by_check


def _control_patches(
    donor: ChainText, location: Located, donor_location: Located, params: Params
) -> list[tuple[Source, PatchRow]]:
    """Return states of the run's control, and where they are put.

    Dots at question and chain where it is "total", whose donors serve ``interchange`` alone; of any
    other control, and of those donors, another item's states at the question.
    """
    all_layers, (chain, question, _) = tuple(range(location.layers)), location.positions
    options, patches = params.options, []
    if options["control"] == "total" and {*options["sources"]} - {"interchange"}:
        both = tuple(sorted({*question, *chain}))
        patches.append((Source("filler", at=both), PatchRow(all_layers, both, both)))
    if options["control"] != "total" or "interchange" in options["sources"]:
        n_swapped = min(len(question), len(donor_location.positions[1]))
        row = PatchRow(all_layers, question[:n_swapped], donor_location.positions[1][:n_swapped])
        patches.append((Source("run", donor.messages, donor.prefix), row))
    return patches


def _require_numbers(reply: Reply) -> Sequence[float]:
    if isinstance(reply, Failed) or not reply.numbers:
        reason = reply.error if isinstance(reply, Failed) else "the reply holds none"
        raise SelfTestFailed(f"The self-test of patching got no numbers: {reason}.")
    return reply.numbers


def _check_deviations(
    numbers_by_check: Mapping[str, Any], noise_nats: float, dtype: str, item_id: str
) -> Mapping[str, Any]:
    """Return the measured deviations where all are within bounds."""
    unpatched_logp, base_logp = numbers_by_check["same"][0], numbers_by_check["base"][0]
    is_exact = dtype in ("float32", "float64")
    noise_nats = max(
        noise_nats, abs(unpatched_logp - base_logp), abs(numbers_by_check["none"][0] - base_logp)
    )
    limit_nats = TOLERANCE_NATS if is_exact else max(TOLERANCE_NATS, NOISE_FACTOR * noise_nats)
    identity_nats = abs(numbers_by_check["identity"][0] - unpatched_logp)
    shapes_nats = max(abs(number - base_logp) for number in numbers_by_check["shapes"])
    full_patch_nats = (
        abs(numbers_by_check["full"][0] - numbers_by_check["source"][0])
        if "full" in numbers_by_check
        else None
    )
    item_text = f"on item {item_id!r} in {dtype}"
    bound_text = f"at most {limit_nats:.2g} is allowed" + (
        "" if is_exact else f", {NOISE_FACTOR} times the noise between batch shapes"
    )
    if identity_nats > (0 if is_exact else limit_nats):
        identity_bound = "not by 0" if is_exact else bound_text
        raise SelfTestFailed(
            f"Patching a run with its own states moves its answer by {identity_nats:.2g} nat"
            f" {item_text}, {identity_bound}."
        )
    if shapes_nats > limit_nats:
        raise SelfTestFailed(
            f"The identity patch moves the answer by {shapes_nats:.2g} nat across batch shapes"
            f" {item_text}; {bound_text}."
        )
    if full_patch_nats is not None and full_patch_nats > limit_nats:
        raise SelfTestFailed(
            f"Patching every position is {full_patch_nats:.2g} nat off the source's run"
            f" {item_text}; {bound_text}."
        )
    if not numbers_by_check["answer_apart"]:
        raise SelfTestFailed(
            f"The answer's positions lie among those of the chain or the question {item_text}."
        )
    if any(
        number == unpatched_logp or abs(number - base_logp) <= 1e-7
        for number in numbers_by_check["control"]
    ):
        raise SelfTestFailed(
            f"The control changes nothing {item_text}: its states are those that it replaces."
        )
    return {
        "self_test": "passed",
        "item": item_id,
        "dtype": dtype,
        "identity_nats": identity_nats,
        "across_shapes_nats": shapes_nats,
        "full_patch_nats": full_patch_nats,
        "batch_noise_nats": noise_nats,
        "allowed_nats": limit_nats,
    }
