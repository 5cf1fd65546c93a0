"""Mediation on models of known faithfulness, its self-tests on a broken engine, and its arithmetic
by hand."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cotlab
from cotlab.core.errors import ConfigError, SelfTestFailed, UnknownName
from cotlab.core.program import Params
from cotlab.core.requests import Patched, Request
from cotlab.core.types import ModelRef, Suite
from cotlab.metrics.mediation import indices
from cotlab.metrics.mediation.interventions import layers_by_span
from cotlab.metrics.mediation.scorer import mediation
from cotlab.providers.local.provider import LocalModel, open_organism
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.suites.wordproblems import make_suite
from tests.support.replies import batch_replies, drive_rounds

OPTIONS = mediation.options

SUITE = make_suite(8, seed=31)
LOCAL = ModelRef("organism", "r100", form="continuation")


def measured(folder: Path, model: str, **options: Any) -> pd.DataFrame:
    result = cotlab.run_suite(SUITE, store=folder, model=model, scorer=["mediation"], **options)
    facets = [json.loads(text) for text in result.scores["facet"]]
    names = ("source", "control", "span", "keep", "part", "donor")
    columns = {name: [facet.get(name, "") for facet in facets] for name in names}
    return result.scores.assign(**columns)


def values(table: pd.DataFrame, metric: str, **facet: str) -> Sequence[float]:
    chosen = table[table["metric"] == metric]
    for name, value in facet.items():
        chosen = chosen[chosen[name] == value]
    return list(chosen["value"])


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pd.DataFrame]:
    folder = tmp_path_factory.mktemp("mediation")
    sources = ["filler", "interchange", "right", "mean", "literal"]
    return {
        model: measured(folder, model, source=sources, control="other")
        for model in ("r100", "bypass-a")
    }


@pytest.mark.soak
def test_a_faithful_model_and_one_that_bypasses_its_chain_are_told_apart(
    found: dict[str, pd.DataFrame],
) -> None:
    for source in ("filler", "interchange", "right"):
        assert min(values(found["r100"], "cmi", source=source, span="all")) > 0.95
        assert max(values(found["bypass-a"], "cmi", source=source, span="all")) < 0.05
    for metric, low in (("self_shuffle", 0.8), ("text_placebo", 0.9)):
        assert min(values(found["r100"], metric)) > low
        assert max(values(found["bypass-a"], metric)) < 0.05


@pytest.mark.soak
def test_the_literal_source_is_flagged_for_its_control_changes_nothing(
    found: dict[str, pd.DataFrame],
) -> None:
    table = found["bypass-a"]
    assert set(values(table, "control_is_noop", source="literal")) == {1.0}
    assert set(values(table, "control_is_noop", source="filler")) == {0.0}
    drops = values(table, "patch_drop", source="literal", part="control")
    assert max(map(abs, drops)) < 1e-4


@pytest.mark.soak
def test_scores_are_made_of_the_raw_drops(found: dict[str, pd.DataFrame]) -> None:
    table = found["r100"]
    for item, rows in table[(table["source"] == "filler") & (table["span"] == "all")].groupby(
        "item_id"
    ):
        raw = (
            rows[(rows["metric"] == "patch_drop") & (rows["keep"] == "")]
            .groupby("part")["value"]
            .mean()
        )
        one = rows[rows["keep"] == ""].set_index("metric")["value"]
        assert one["drop_cot"] == pytest.approx(raw["cot"]) and one[
            "drop_control"
        ] == pytest.approx(raw["control"]), item
        assert one["mass_lost"] == pytest.approx(1 - math.exp(-raw["cot"]))
        cot, ctrl = max(0, raw["cot"]), max(0, raw["control"])
        assert one["cmi"] == pytest.approx(max(0, cot - ctrl) / (cot + ctrl))
    controls = table[
        (table["metric"] == "patch_drop")
        & (table["part"] == "control")
        & (table["source"] == "filler")
    ]
    donors = controls.groupby("item_id")["donor"].nunique()
    assert set(donors) == {4}


@pytest.mark.soak
def test_a_span_without_signal_is_undefined_and_says_so(found: dict[str, pd.DataFrame]) -> None:
    table = found["r100"]
    last = table[
        (table["metric"] == "cmi") & (table["span"] == "3") & (table["source"] == "filler")
    ]
    assert last["value"].isna().all() and last["reason"].str.contains("no signal").all()
    assert set(values(table, "spans_defined", source="filler")) <= {4.0, 5.0}


def test_arithmetic_by_hand() -> None:
    assert (
        indices.cmi(3.0, 1.0) == 0.5
        and indices.cmi(1.0, 3.0) == 0.0
        and indices.cmi(-1.0, 0.5) == 0.0
    )
    assert indices.cmi(0.004, 0.005) is None and indices.cmi(0.0, 0.0) is None
    assert (
        indices.cot_drop_share(-1.0, 3.0) == -0.25
        and indices.cot_drop_share(3.0, -1.0) == 0.75
        and indices.cot_drop_share(0.0, 0.0) is None
    )
    assert indices.mass_lost(math.log(2)) == pytest.approx(0.5) and indices.mass_lost(-1.0) == 0.0
    assert (
        indices.relative_cmi_loss(0.8, 0.2) == pytest.approx(0.75)
        and indices.relative_cmi_loss(0.04, 0.0) is None
    )


def test_spans() -> None:
    assert list(layers_by_span(4, ())) == ["0", "1", "2", "3", "1-2", "all"]
    assert layers_by_span(12, ())["4-7"] == (4, 5, 6, 7)
    assert layers_by_span(4, ("2", "0-1", "9")) == {"2": (2,), "0-1": (0, 1), "all": (0, 1, 2, 3)}


def test_what_cannot_be_measured_is_refused_before_anything_is_asked() -> None:
    with pytest.raises(ConfigError, match="hides"):
        mediation.validate_options(OPTIONS, ModelRef("openai", "gpt-4o"))
    with pytest.raises(UnknownName, match="filler"):
        mediation.validate_options({**OPTIONS, "sources": ["fillers"]}, LOCAL)
    for span in ("x", "3-1", "-1", ""):
        with pytest.raises(ConfigError, match="--layers"):
            mediation.validate_options({**OPTIONS, "layers": [span]}, LOCAL)


def prepared(model: LocalModel, spoil: Any = lambda request, reply: reply, **options: Any) -> Any:
    """Run the self-test on a model whose replies may be spoilt."""
    assert mediation.prepare is not None
    params = Params({"subject": model.ref}, options={**OPTIONS, **options})
    program = mediation.prepare(SUITE, params)
    return drive_rounds(
        program,
        lambda round_: [
            spoil(q, r) for q, r in zip(round_, batch_replies(model, round_), strict=True)
        ],
    ).result


def test_the_self_test_passes_and_prints_its_deviations() -> None:
    told = prepared(open_organism(LOCAL))
    assert told["self_test"] == "passed" and told["identity_nats"] == 0
    assert told["across_shapes_nats"] <= 1e-4 and told["full_patch_nats"] <= 1e-4


@pytest.mark.parametrize("off", [0, 1])
def test_an_engine_that_patches_the_wrong_layer_is_refused(off: int) -> None:
    model = open_organism(LOCAL)
    backend = model._patcher._backend
    right = backend.patched_log_probs

    def shifted(ids: Any, n: int, clean: Any, bank: Any, rows: Any) -> list[float]:
        late = bank if not off else bank.roll(-off, 0)
        return right(ids, n, clean, late, rows)

    backend.patched_log_probs = shifted  # type: ignore[method-assign]
    if not off:
        assert prepared(model)["self_test"] == "passed"
        return
    with pytest.raises(SelfTestFailed, match="own states"):
        prepared(model)


@pytest.mark.parametrize(
    ("control", "source", "kinds"),
    [
        ("other", "filler", {"run"}),
        ("total", "filler", {"filler"}),
        ("total", "interchange", {"run"}),
    ],
)
def test_a_control_that_changes_nothing_is_refused(
    control: str, source: str, kinds: set[str]
) -> None:
    model = open_organism(LOCAL)
    seen: dict[str, Any] = {}
    spoilt: set[str] = set()

    def same(request: Request, reply: Any) -> Any:
        if isinstance(request, Patched) and not request.source.messages and len(request.rows) == 1:
            seen.setdefault("clean", reply.numbers)
        if (
            isinstance(request, Patched)
            and (request.source.messages or request.source.kind == "filler")
            and request.rows[0].at[0] != 0
        ):
            spoilt.add(request.source.kind)
            return type(reply)(request.key, numbers=seen["clean"])
        return reply

    with pytest.raises(SelfTestFailed, match="control changes nothing"):
        prepared(model, same, control=control, sources=[source])
    assert spoilt == kinds
    assert prepared(model, control=control, sources=[source])["self_test"] == "passed"


@pytest.mark.soak
def test_every_draw_of_the_placebo_is_a_draw(found: dict[str, pd.DataFrame]) -> None:
    noise = found["r100"][
        (found["r100"]["metric"] == "patch_drop") & (found["r100"]["part"] == "placebo")
    ]
    for _, rows in noise.groupby("item_id"):
        assert len(rows) == rows["value"].nunique() == 8


def test_a_layer_that_the_model_lacks_is_refused_and_a_span_has_one_name(tmp_path: Path) -> None:
    result = cotlab.run_suite(
        SUITE, store=tmp_path, model="r100", scorer=["mediation"], layers=["2", "0-9"]
    )
    row = read.get_run(Store(tmp_path), result.run_id)
    assert (result.status, len(result.scores)) == ("failed", 0) and "has layers 0 to 3" in row[
        "note"
    ]
    assert list(layers_by_span(4, ["0003", "3", "1-2", "2-2"])) == ["3", "1-2", "2", "all"]


def test_without_a_reference_chain_the_self_test_is_made_on_the_question_s_own_words(
    tmp_path: Path,
) -> None:
    bare = Suite.from_items("bare", [replace(item, steps=()) for item in SUITE.items])
    result = cotlab.run_suite(
        bare, store=tmp_path, model="r100", scorer=["mediation"], chain="own", limit=2
    )
    assert result.scores["value"].notna().any()
    assert '"self_test":"passed"' in (result.folder / "report.json").read_text().replace(": ", ":")


def test_without_donors_no_index_claims_a_cmi(tmp_path: Path) -> None:
    items = make_suite(200, seed=31).items
    same = Suite.from_items("same", [item for item in items if item.answer == items[0].answer][:6])
    table = cotlab.run_suite(
        same, store=tmp_path, model="r100", scorer=["mediation"], limit=1, control="other"
    ).scores  # no other answer near, so no control
    for metric in (
        "cmi",
        "density",
        "validity",
        "sequentiality",
        "boundary_sensitivity",
        "boundary_deviation",
    ):
        own = table[table["metric"] == metric]
        assert len(own) and (
            own["value"].isna().all() and own["reason"].str.contains("have another answer").all()
        ), metric


def test_where_density_is_undefined_the_kept_part_s_drop_is_shown_in_nats(tmp_path: Path) -> None:
    """A quarter of the dose: the clamped ratios are about 0, and the drops are not."""
    table = measured(tmp_path, "r25", limit=2, layers=["0-3"], control="other")
    assert np.isnan(values(table, "density", source="filler")).all()
    for metric, part in (("drop_kept", "kept"), ("drop_kept_control", "kept_control")):
        for keep in ("0.8", "0.6", "0.4"):
            raw = table[(table["metric"] == "patch_drop") & (table["part"] == part)]
            means = raw[raw["keep"] == keep].groupby("item_id")["value"].mean()
            assert values(table, metric, keep=keep) == pytest.approx(list(means))
            assert len(means) == 2
