"""The page Drift: empty, with an alert, and what its buttons write."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cotlab.store.calibrators import list_drift_checks
from cotlab.store.database import Store
from cotlab.store.labels import list_label_queues, list_queue_items
from tests.support import stores
from tests.support.pages import opened
from tests.support.stores.drifted import add_run, decide, vectors
from tests.support.stores.judged import numbered_suite

pytestmark = pytest.mark.soak


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return the store of a test: two runs, the second shifted and partly released."""
    made = Store()
    add_run(made, "ref", vectors(60, 1))
    add_run(made, "low", vectors(60, 3, shift=0.3), first=200)
    decide(made, "low", {f"i-{200 + k}": "release" for k in range(10)})
    return made


def test_an_empty_store_says_what_is_missing() -> None:
    assert opened("drift").info[0].value.startswith("A drift check needs two runs")


def test_an_alert_its_figures_and_what_the_buttons_keep(store: Store) -> None:
    app = opened("drift", reference="ref", current="low", more="true")
    assert app.error[0].value.startswith("**Drift.**")
    specs = [json.loads(one.proto.spec) for one in app.get("plotly_chart")]
    assert [spec["layout"]["meta"]["title"] for spec in specs] == [
        "How far each feature moved (PSI in nats, KS 0 to 1)",
        "Each feature's distribution (cumulative, %)",
    ]
    assert {m.label: m.value for m in app.metric}["Features moved"] == "2 of 4"
    app.button(key="keep-check").click().run()
    app.button(key="keep-check").click().run()
    assert (
        not app.exception
        and len(list_drift_checks(store)) == 1
        and list_drift_checks(store)["by_"].iloc[0] == "local"
    )
    app.number_input(key="reaudit-n").set_value(3).run()
    app.button(key="reaudit").click().run()
    assert not app.exception and "3 released items were added to the queue" in app.success[
        0
    ].value.replace("\\", "")
    assert len(list_queue_items(store, list_label_queues(store)["id"].iloc[0])) == 3


def test_runs_that_share_no_number_are_said(store: Store) -> None:
    add_run(store, "other", {"r_raw": [None] * 30}, first=900)
    told = opened("drift", reference="ref", current="other").info
    assert any("no number in common" in one.value for one in told)


def test_the_run_of_the_address_is_looked_at_also_on_a_second_view(store: Store) -> None:
    add_run(store, "new", vectors(60, 4), first=400)
    for run in ("low", "new"):
        app = opened("drift", run=run)
        assert app.multiselect(key="pick-current").value == [run]
        assert app.multiselect(key="pick-reference").value == ["ref"]


def test_the_default_is_the_newest_run_that_shares_numbers_with_the_reference(store: Store) -> None:
    """Of the two newest runs one measured nothing, and one has another scorer."""
    add_run(store, "empty", {"r_raw": [None] * 30}, first=900)
    stores.add_run(store, "other", numbered_suite(3, "other"), (), scorers=("ablation",))
    app = opened("drift")
    assert app.multiselect(key="pick-reference").value == ["ref"]
    assert app.multiselect(key="pick-current").value == ["low"]


def test_runs_of_two_models_differ_and_without_a_calibrator_nothing_is_fitted_again(
    store: Store,
) -> None:
    """The alert is that one model changed over time: here it is another model."""
    app = opened("drift", reference="ref", current="low")
    assert app.error[0].value.startswith("**Drift.**")
    with store.writing() as connection:
        connection.execute("UPDATE runs SET model = 'test/other' WHERE id = 'low'")
    app = opened("drift", reference="ref", current="low", ks="0.16")
    assert not app.error and app.warning[0].value.startswith("**These runs differ.**")
    captions = " ".join(caption.value for caption in app.caption)
    assert "No calibrator has been fitted" in captions
    assert not any("Fit again" in link.proto.label for link in app.get("page_link"))
