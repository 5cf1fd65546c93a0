"""The probability of the first mistake at each step: fitted, kept or refused, and shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cotlab.cli.main import app
from cotlab.core.errors import ConfigError
from cotlab.review.release.step_hazard import (
    ANSWER_MODEL,
    SCORES_MODEL,
    TEXT_MODEL,
    fit_step_hazard,
    forecast_steps,
)
from cotlab.review.release.step_table import SAME_CHAIN_REASON, load_judged_chains
from cotlab.stats.ranking import NO_MISTAKE
from cotlab.store.calibrators import (
    STEP_KIND,
    current_calibrator,
    list_calibrator_choices,
    list_calibrators,
)
from cotlab.store.database import Store
from tests.support.pages import opened, opened_item
from tests.support.stores.stepped import fill_stepped


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("steps") / "store")
    fill_stepped(store)
    assert fit_step_hazard(store, None, author="ann").version == 1
    return store


@pytest.mark.soak
def test_a_version_is_kept_beside_position_and_length(fitted: Store) -> None:
    version = current_calibrator(fitted, STEP_KIND)
    assert version is not None and set(version["params"]) >= {TEXT_MODEL}
    report = version["report"]
    text = report["models"][TEXT_MODEL]
    assert text["difference"]["lo"] > 0 and text["pb_f1"]["point"] > 0.8
    assert text["baseline"]["pb_f1"]["point"] < 0.6
    assert text["other_domains"]["reason"].startswith("without the domain sums")
    assert report["models"][ANSWER_MODEL]["baseline"]["none_right"]["point"] > 0.9
    assert (report["n"], report["n_positive"]) == (160, 80)
    assert list_calibrators(fitted).empty and current_calibrator(fitted) is None
    again = fit_step_hazard(fitted, None, author="ann")
    assert again.version is None and again.refusal.startswith("version 1 was fitted on the same")


def test_the_page_shows_where_to_look_first(fitted: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(fitted.folder))
    chains = load_judged_chains(fitted, ["run-1"]).chains
    row = chains[chains["first_wrong"] == 2].iloc[0]
    page = opened_item("run-1", row["item_id"])
    assert "Look here first" in [one.value for one in page.header]
    assert any(m.value.startswith("Read step 3 first") for m in page.markdown)
    assert any(
        "fitted on 160 labelled chains, 160 of them of sums" in c.value for c in page.caption
    )
    rows = next(
        blocks
        for e in page.get("bidi_component")
        if (blocks := json.loads(e.proto.json or "{}").get("blocks", ()))
        and blocks[0]["score"].endswith("%")
    )
    assert max(rows, key=lambda block: float(block["score"][:-1]))["label"] == "3"


@pytest.mark.soak
def test_the_page_fits_and_lists_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path / "store"))
    store = Store(tmp_path / "store")
    fill_stepped(store, n=80)
    page = opened("calibrate", steps="true")
    page.button(key="fit-steps").click().run()
    assert not page.exception and len(list_calibrators(store, STEP_KIND)) == 1
    (table,) = [one.value for one in page.dataframe if "PB-F1" in one.value]
    assert table["In use"].tolist() == ["yes"] and table["Domains"].tolist() == ["sums"]
    assert [one.value for one in page.success] == ["Version 1 is fitted and in use for the steps."]
    assert any(c.value == "There is no other version." for c in page.caption)

    fill_stepped(store, "run-2", n=40, seed=3)
    assert fit_step_hazard(store, None, author="ann").version == 2
    page = opened("calibrate", steps="true")
    assert page.selectbox(key="steps-back-version").options == ["1"]
    page.button(key="steps-back").click().run()
    assert "needs its reason" in page.error[0].value
    page.text_input(key="steps-back-reason").set_value("<script>worse</script>")
    page.button(key="steps-back").click().run()
    assert not page.exception and not page.error
    assert [one.value for one in page.success] == ["Version 1 is in use."]
    version, choices = (
        current_calibrator(store, STEP_KIND),
        list_calibrator_choices(store, STEP_KIND),
    )
    assert version is not None and version["version"] == 1
    assert choices["version"].tolist() == [1, 2, 1]
    history = next(one.value for one in page.dataframe if "From" in one.value)
    assert history["Reason"].tolist()[0] == "<script>worse</script>"


def test_another_domain_has_no_probabilities(fitted: Store, tmp_path: Path) -> None:
    item = fill_stepped(fitted, "run-2", n=4, seed=5, category="law").items[0]
    forecast = forecast_steps(fitted, "run-2", item, "coins")
    assert forecast is not None and forecast.first == () and forecast.sound is None
    assert "chains of sums, none of law" in forecast.reason
    assert forecast_steps(Store(tmp_path / "empty"), "run-2", item, "coins") is None


@pytest.mark.soak
def test_no_version_is_kept_of_features_that_show_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path / "store"))
    store = Store(tmp_path / "store")
    fill_stepped(store, visible=0.0)
    result = CliRunner().invoke(app, ["calibrate", "run-1", "--steps"])
    assert result.exit_code == 1 and "Nothing was written." in result.output
    assert "better than position and length alone" in " ".join(result.output.split())
    assert list_calibrators(store, STEP_KIND).empty
    listed = CliRunner().invoke(app, ["calibrate", "--steps", "--list"])
    assert listed.exit_code == 0 and "No version for the steps yet" in listed.output
    wrong = CliRunner().invoke(app, ["calibrate", "--steps", "--domain"])
    assert isinstance(wrong.exception, ConfigError) and "--steps takes no" in str(wrong.exception)


@pytest.mark.soak
def test_what_scorers_say_of_the_steps_is_read_where_it_is_measured(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    item = fill_stepped(store, visible=0.0, recall=0.9).items[1]
    fit = fit_step_hazard(store, ["run-1"], author="ann")
    assert set(fit.models) == {SCORES_MODEL, ANSWER_MODEL} and fit.version == 1
    assert fit.report["models"][TEXT_MODEL]["refusal"]
    assert fit.report["measured_features"] == ["first_mistake_step", "first_mistake_step: any"]
    forecast = forecast_steps(store, "run-1", item, "coins")
    assert forecast is not None and forecast.model == SCORES_MODEL
    assert sum(forecast.first) + (forecast.sound or 0) == pytest.approx(1)
    assert forecast.located == item.meta["first_mistake"]
    bare = fill_stepped(store, "run-2", n=4, seed=9).items[0]
    unmeasured = forecast_steps(store, "run-2", bare, "coins")
    assert unmeasured is not None and unmeasured.first == ()
    assert "first_mistake_step: any, which the run did not measure" in unmeasured.reason


def test_a_chain_of_two_runs_counts_once(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    fill_stepped(store, n=20)
    fill_stepped(store, "run-2", n=20)
    chains = load_judged_chains(store, ["run-1", "run-2"])
    assert len(chains.chains) == 20 and chains.n_left_out_by_reason == {SAME_CHAIN_REASON: 20}
    assert (chains.chains["first_wrong"] == NO_MISTAKE).sum() == 10
