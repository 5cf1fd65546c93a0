"""What the self-test of patching allows in each type of number, and where a reader finds what it
measured."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import cotlab
from cotlab.analysis.markdown import render_markdown
from cotlab.analysis.report import build_report
from cotlab.cli.screen import print_estimates
from cotlab.core.errors import SelfTestFailed
from cotlab.core.program import Params
from cotlab.core.requests import Failed, Reply
from cotlab.core.types import ModelRef
from cotlab.metrics.mediation.interventions import ChainText
from cotlab.metrics.mediation.scorer import mediation
from cotlab.metrics.mediation.self_test import (
    NOISE_FACTOR,
    TOLERANCE_NATS,
    _check_deviations,
    run_self_test,
)
from cotlab.providers.local.provider import LocalModel, open_organism
from cotlab.store.database import Store
from cotlab.suites.wordproblems import make_suite
from tests.support.replies import batch_replies, drive_rounds

OPTIONS = mediation.options

SUITE = make_suite(8, seed=31)
LOCAL = ModelRef("organism", "r100", form="continuation")


def found(**changed: Any) -> dict[str, Any]:
    """What ``_measure`` gives for a perfect engine, but for ``changed``."""
    sound = {
        "same": [-3.0],
        "identity": [-3.0],
        "base": [-3.0],
        "shapes": [-3.0, -3.0],
        "none": [-3.0],
        "control": [-4.0],
        "full": [-5.0],
        "source": [-5.0],
        "answer_apart": True,
    }
    return {**sound, **changed}


def test_where_the_model_can_read_no_item_the_reason_of_the_first_is_told() -> None:
    program = run_self_test(SUITE, Params({"subject": LOCAL}, options=OPTIONS))

    def refused(asked: Sequence[Any]) -> list[Reply]:
        why = "no offsets" if asked[0].prefix == first_prefix() else "something else"
        return [Failed(request.key, why, 1, unsupported=True) for request in asked]

    told = drive_rounds(program, refused).result["self_test"]
    assert told.startswith("not made") and told.endswith(
        f"{SUITE.items[0].id!r} for instance: no offsets"
    )


def first_prefix() -> str:
    return ChainText.from_item(
        SUITE.items[0], [step.text for step in SUITE.items[0].steps], Params({"subject": LOCAL})
    ).prefix


def test_in_float32_the_bounds_are_fixed_whatever_the_noise() -> None:
    told = _check_deviations(found(shapes=[-3.00009, -3.0]), 0.5, "float32", "i")
    assert (
        told["allowed_nats"] == TOLERANCE_NATS
        and told["batch_noise_nats"] == 0.5
        and told["identity_nats"] == 0
    )
    for changed in ({"shapes": [-3.0, -3.0002]}, {"full": [-5.0002]}, {"identity": [-3.000001]}):
        with pytest.raises(SelfTestFailed, match="float32"):
            _check_deviations(found(**changed), 0.5, "float32", "i")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_in_a_shorter_type_three_times_the_own_noise_is_allowed_and_not_more(dtype: str) -> None:
    for changed, field in (
        ({"shapes": [-3.0, -3.029]}, "across_shapes_nats"),
        ({"full": [-5.029]}, "full_patch_nats"),
        ({"identity": [-3.029]}, "identity_nats"),
    ):
        told = _check_deviations(found(**changed), 0.01, dtype, "i")
        assert told[field] == pytest.approx(0.029) and told["allowed_nats"] == pytest.approx(
            NOISE_FACTOR * 0.01
        )
        with pytest.raises(SelfTestFailed, match="3 times the noise between batch shapes"):
            _check_deviations(found(**changed), 0.009, dtype, "i")


def test_the_noise_is_at_least_what_the_checked_text_shows_itself() -> None:
    assert _check_deviations(found(none=[-3.2]), 0.01, "bfloat16", "i")[
        "batch_noise_nats"
    ] == pytest.approx(0.2)
    assert _check_deviations(found(), 0.0, "bfloat16", "i")["allowed_nats"] == TOLERANCE_NATS


def prepared(model: LocalModel) -> Any:
    assert mediation.prepare is not None
    program = mediation.prepare(SUITE, Params({"subject": model.ref}, options=OPTIONS))
    return drive_rounds(program, lambda round_: batch_replies(model, round_)).result


@pytest.mark.parametrize("backend", ["auto", "hooks"])
def test_bfloat16_passes_on_a_sound_engine_and_not_on_one_that_is_a_layer_off(backend: str) -> None:
    model = open_organism(LOCAL, dtype="bfloat16", backend=backend)
    told = prepared(model)
    assert told["self_test"] == "passed" and told["dtype"] == "bfloat16"
    assert told["allowed_nats"] == max(TOLERANCE_NATS, NOISE_FACTOR * told["batch_noise_nats"]) < 1
    for name in ("identity_nats", "across_shapes_nats", "full_patch_nats"):
        assert told[name] <= told["allowed_nats"]
    engine = model._patcher._backend
    right = engine.patched_log_probs
    engine.patched_log_probs = lambda ids, n, clean, bank, rows: right(
        ids, n, clean, bank.roll(-1, 0), rows
    )  # type: ignore[method-assign]
    with pytest.raises(SelfTestFailed, match="own states"):
        prepared(model)


@pytest.mark.soak
def test_a_run_in_bfloat16_tells_its_noise_in_the_log_the_report_and_on_the_screen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = cotlab.run_suite(
        SUITE,
        store=tmp_path,
        provider="organism",
        model="r100",
        scorer=["mediation"],
        dtype="bfloat16",
    )
    scores = result.scores
    every = scores["facet"].map(lambda text: json.loads(text).get("span") == "all")
    cmi = scores[(scores["metric"] == "cmi") & every]["value"]
    assert len(cmi) == len(SUITE.items) and cmi.min() > 0.9

    report = build_report(Store(tmp_path), result.run_id)
    told = report["self_tests"]["mediation"]
    assert (told["self_test"], told["dtype"]) == ("passed", "bfloat16") and told[
        "batch_noise_nats"
    ] is not None
    said = f"noise between batch shapes is {told['batch_noise_nats']:.2g}"
    assert "**Self-test:** mediation: passed in bfloat16" in render_markdown(
        report
    ) and said in render_markdown(report)
    print_estimates(report)
    assert said in " ".join(capsys.readouterr().out.split())
    (log,) = tmp_path.rglob("run.log")
    noted = [
        event
        for event in map(json.loads, log.read_text("utf-8").splitlines())
        if event["event"] == "prepared"
    ]
    assert [event["batch_noise_nats"] for event in noted] == [told["batch_noise_nats"]]
