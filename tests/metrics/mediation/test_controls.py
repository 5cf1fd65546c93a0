"""The controls of mediation: what each patches, and what CMI against it says of known models."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cotlab
from cotlab.core.program import Params, Peers
from cotlab.core.requests import Locate, LogProb, Patched, PatchRow, Request, Response
from cotlab.core.types import ModelRef, Suite
from cotlab.metrics.kit import reference_chain
from cotlab.metrics.mediation import indices
from cotlab.metrics.mediation.interventions import ChainText
from cotlab.metrics.mediation.scorer import mediation
from cotlab.metrics.mediation.spread import item_spreads
from cotlab.providers.local.provider import LocalModel, open_organism
from cotlab.suites.wordproblems import make_suite
from cotlab.validation.models import measured_dose
from tests.support.replies import Driven, batch_replies, drive_rounds

SUITE = make_suite(8, seed=77, hint_share=0.0)
ALL_LAYERS = {"layers": ["all"], "subsets": 1}


def measured(folder: Path, model: str, suite: Suite = SUITE, **options: Any) -> pd.DataFrame:
    table = cotlab.run_suite(
        suite, store=folder, model=model, scorer=["mediation"], **{**ALL_LAYERS, **options}
    ).scores
    facets = [json.loads(text) for text in table["facet"]]
    names = ("source", "control", "span", "keep", "part", "donor")
    return table.assign(**{name: [f.get(name, "") for f in facets] for name in names})


def of_metric(table: pd.DataFrame, metric: str) -> pd.DataFrame:
    return table[(table["metric"] == metric) & (table["keep"] == "")]


def params_of(model: LocalModel, control: str, **options: Any) -> Params:
    options = {**mediation.options, "control": control, **ALL_LAYERS, **options}
    return Params({"subject": model.ref}, options=options)


def driven(
    control: str, change: Callable[[Request, Any], Any] = lambda _, reply: reply, **options: Any
) -> Driven:
    """Drive the scorer on one item of a faithful model, and return all that it asked."""
    model = open_organism(ModelRef("organism", "r100", form="continuation"))
    program = mediation(
        SUITE.items[0], params_of(model, control, **options), Peers.from_suite(SUITE, 0)
    )
    return drive_rounds(
        program,
        lambda requests: [
            change(request, reply)
            for request, reply in zip(requests, batch_replies(model, requests), strict=True)
        ],
    )


def test_a_part_of_another_chain_moves_no_answer_of_a_model_that_ignores_its_chain(
    tmp_path: Path,
) -> None:
    mean_by_model = {}
    for model in ("r0", "r25"):
        table = measured(tmp_path, model, source=["interchange"], subsets=4)
        curve = table[table["metric"] == "cmi_kept"]
        assert set(curve["keep"]) == {"0.8", "0.6", "0.4"} and curve["value"].notna().all()
        mean_by_model[model] = curve.groupby("keep")["value"].mean()
    assert mean_by_model["r0"].max() < 0.01 and mean_by_model["r25"].min() > 0.05


def test_the_share_of_the_total_effect_by_hand() -> None:
    half, three_quarters = math.log(2), math.log(4)
    assert indices.total_effect_share(half, three_quarters) == pytest.approx(2 / 3)
    assert indices.total_effect_share(three_quarters, half) == 1.0
    assert indices.total_effect_share(-1.0, half) == 0.0
    assert indices.total_effect_share(1.0, 0.005) is None
    assert "0.005 nat" in indices.cmi_reason("total", 1.0, 0.005)
    assert indices.cmi_reason("total", 1.0, 1.0) == indices.cmi_reason("other", 1.0, 2.0) == ""
    assert indices.share_against("total", 1.0, 1.0) is None
    assert "CMI is the share" in indices.share_reason("total", 1.0, 1.0)


def test_a_chain_that_needs_its_question_is_0_against_another_question_and_1_of_the_total() -> None:
    """Drops of a faithful model whose chain gives operations and whose question the start.

    Dots for the chain, or for both, leave a guess among 21; another question a wrong answer.
    """
    guess = math.log(21)
    assert indices.cmi_against("other", guess, 13.2) == 0.0
    assert indices.cmi_against("total", guess, guess) == 1.0


def needs_both(request: Request, reply: Any, positions: Sequence[Sequence[int]]) -> Any:
    """Return the reply of a model whose answer needs the start value and every operation.

    With dots for either it guesses among 21; another item's question makes it sure of another
    answer. The measured drops of such a model: 3.05 and 13.2 nats.
    """
    if not isinstance(request, Patched) or request.prefix.startswith("... "):
        return reply
    chain, question = ({*span} for span in positions[:2])

    def log_prob(row: PatchRow) -> float:
        if {*row.at} & question and request.source.messages:
            return -13.2
        return -math.log(21) if {*row.at} & (chain | question) else 0.0

    return replace(reply, numbers=tuple(log_prob(row) for row in request.rows))


@pytest.mark.parametrize(("control", "cmi"), [("other", 0.0), ("neutral", 1.0), ("total", 1.0)])
def test_a_model_that_needs_chain_and_question_together(control: str, cmi: float) -> None:
    model = open_organism(ModelRef("organism", "r100", form="continuation"))
    item = SUITE.items[0]
    text = ChainText.from_item(item, reference_chain(item).steps, params_of(model, control))
    (located,) = batch_replies(model, [text.locate_request(params_of(model, control))])
    assert isinstance(located, Response) and located.located is not None
    positions = located.located.positions
    found = driven(control, lambda request, reply: needs_both(request, reply, positions))
    scores = {
        score.metric: score.value
        for score in found.result
        if dict(score.facet).get("span") == "all" and "keep" not in dict(score.facet)
    }
    assert scores["cmi"] == pytest.approx(cmi, abs=1e-3)
    assert scores["mass_lost"] == pytest.approx(20 / 21, abs=1e-3)


def test_against_the_total_cmi_is_the_dose(tmp_path: Path) -> None:
    for model in ("r0", "r50", "r100"):
        table = measured(tmp_path, model, control="total")
        cmi, dose = of_metric(table, "cmi")["value"], measured_dose(model)
        assert dose is not None
        assert cmi.notna().all() and cmi.mean() == pytest.approx(dose, abs=0.06), model
        assert set(of_metric(table, "no_cot_effect")["value"]) == {float(model == "r0")}
        share = of_metric(table, "share")
        assert share["value"].isna().all() and share["reason"].str.contains("holds").all()
        assert set(of_metric(table, "control_coverage")["value"]) == {1.0}


@pytest.mark.soak
def test_against_the_total_models_of_every_kind_are_told_apart(tmp_path: Path) -> None:
    for source in ("filler", "interchange"):
        means = {
            model: of_metric(measured(tmp_path, model, control="total", source=[source]), "cmi")[
                "value"
            ].mean()
            for model in ("faithful-a", "bypass-a", "r0", "r25", "r50", "r75", "r100")
        }
        assert min(means["faithful-a"], means["r100"]) >= 0.95
        assert max(means["bypass-a"], means["r0"]) <= 0.05
        doses = [means[f"r{dose}"] for dose in (0, 25, 50, 75, 100)]
        assert doses == sorted(doses) and doses[1] > 0.1, source


def test_the_total_needs_no_donor(tmp_path: Path) -> None:
    items = make_suite(200, seed=31, hint_share=0.0).items
    same = Suite.from_items("same", [i for i in items if i.answer == items[0].answer][:6])
    assert len(same.items) == 6
    table = measured(tmp_path, "r100", same, control="total", limit=1)
    assert of_metric(table, "cmi")["value"].iloc[0] > 0.95
    other = measured(tmp_path, "r100", same, control="neutral", limit=1)
    row = of_metric(other, "cmi").iloc[0]
    assert pd.isna(row["value"]) and "have another answer" in row["reason"]


def test_the_total_is_one_row_of_dots_at_question_and_chain() -> None:
    asked = driven("total")
    located = next(r.located for r in asked.replies.values() if getattr(r, "located", None))
    chain, question, _ = located.positions
    fillers = [r for r in asked.requests if isinstance(r, Patched) and r.source.kind == "filler"]
    (total,) = [r for r in fillers if set(r.source.at) > set(chain)]
    assert [row.at for row in total.rows] == [tuple(sorted({*question, *chain}))]
    assert total.rows[0].layers == (0, 1, 2, 3)
    assert not any(r.source.messages for r in asked.requests if isinstance(r, Patched))


def test_the_total_of_interchange_is_the_run_of_a_donor() -> None:
    asked = driven("total", sources=["interchange"])
    located = next(r.located for r in asked.replies.values() if getattr(r, "located", None))
    chain, question, _ = located.positions
    own = SUITE.items[0].question
    totals = [
        r
        for r in asked.requests
        if isinstance(r, Patched) and r.source.messages and r.source.messages[0].content != own
    ]
    assert len(totals) == 4
    for request in totals:
        (row,) = request.rows
        assert row.at == (*question, *chain)
        assert row.take[0] == row.at[0]  # questions begin at the same place


def test_the_neutral_control_leaves_question_and_chain_alone() -> None:
    asked = driven("neutral")
    controls = [r for r in asked.requests if isinstance(r, Patched) and r.prefix.startswith("... ")]
    assert len(controls) == 4  # one a donor
    own = controls[0]
    (locate,) = [
        r
        for r in asked.requests
        if isinstance(r, Locate) and (r.messages, r.prefix) == (own.messages, own.prefix)
    ]
    located = asked.replies[locate.key].located  # type: ignore[union-attr]
    dots = located.positions[0]
    assert {located.pieces[k].strip() for k in dots} == {"..."}
    for request in controls:
        assert request.source.messages != request.messages
        assert request.source.prefix.startswith("... ")
        assert all({*row.at} <= {*dots} and len(row.at) <= len(dots) for row in request.rows)
    (base,) = [
        r for r in asked.requests if isinstance(r, LogProb) and r.prefix == controls[0].prefix
    ]
    base_logp = asked.replies[base.key].numbers[0]  # type: ignore[union-attr, index]
    drops = [
        (score.value, score.evidence)
        for score in asked.result
        if score.metric == "patch_drop" and dict(score.facet).get("part") == "control"
    ]
    numbers = [
        number
        for request in controls
        for number in asked.replies[request.key].numbers  # type: ignore[union-attr]
    ]
    assert drops and all(
        min(abs(value - (base_logp - number)) for number in numbers) < 1e-12 for value, _ in drops
    )
    assert all(base.key in evidence for _, evidence in drops)


@pytest.mark.soak
def test_against_the_neutral_control_a_bypassing_model_is_undefined(tmp_path: Path) -> None:
    table = measured(tmp_path, "r100", control="neutral")
    assert of_metric(table, "cmi")["value"].min() > 0.95
    assert of_metric(table, "drop_control")["value"].abs().max() < 0.01
    cmi = of_metric(measured(tmp_path, "r0", control="neutral"), "cmi")
    assert cmi["value"].isna().all() and cmi["reason"].str.contains("no signal").all()


@pytest.mark.parametrize("control", ["neutral", "total"])
def test_points_of_an_item_s_spread_are_its_scores(tmp_path: Path, control: str) -> None:
    table = measured(tmp_path, "r50", control=control, layers=["1"], limit=1)
    rows = table[table["metric"] == "patch_drop"].to_dict("records")
    spreads = list(item_spreads(rows, seed=1, item_id="i"))
    assert {s.span for s in spreads} == {"1", "all"} and {s.control for s in spreads} == {control}
    for spread in spreads:
        (score,) = table[
            (table["metric"] == spread.metric)
            & (table["span"] == spread.span)
            & (table["keep"] == spread.keep)
            & (table["source"] == "filler")
        ].to_dict("records")
        point = spread.interval.point
        if point is None:
            assert pd.isna(score["value"]) and spread.interval.reason == score["reason"]
        else:
            assert score["value"] == pytest.approx(point, abs=1e-12)
