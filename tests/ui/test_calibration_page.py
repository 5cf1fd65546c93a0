"""The page Calibration on hand-made scores and labels, and the pending reviews on Home."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from cotlab.review.labelling.queue import make_queue
from cotlab.review.release.apply import calibrated_scores
from cotlab.review.release.calibrate import calibrate_runs, roll_back_calibrator
from cotlab.review.release.features import feature_table
from cotlab.store.calibrators import (
    add_calibrator,
    current_calibrator,
    list_calibrator_choices,
    list_calibrators,
)
from cotlab.store.database import Store, store_folder
from cotlab.store.decisions import add_policy
from cotlab.store.labels import add_labels
from cotlab.ui import access
from cotlab.ui.access import Person
from cotlab.ui.calibration import missing_labels_text
from tests.review.release.test_combined_features import fill as fill_text_features
from tests.support.pages import opened
from tests.support.stores.labelled import HOSTILE, fill, label
from tests.ui.test_pages import QUESTION

pytestmark = pytest.mark.soak  # that each page opens, full and empty, is tested with every run


SECTIONS = dict.fromkeys(("more", "scores", "versions", "steps"), "true")
"""The address of the page with all that is under "More"."""


def page(**query: str) -> AppTest:
    return opened("calibrate", **SECTIONS | query)


def words(app: AppTest) -> str:
    shown = [*app.markdown, *app.caption, *app.info, *app.warning, *app.error, *app.success]
    return "\n".join(str(e.value) for e in shown)


def drawn(app: AppTest, title: str) -> dict[str, Any]:
    specs: list[dict[str, Any]] = [json.loads(e.proto.spec) for e in app.get("plotly_chart")]
    return next(spec for spec in specs if spec["layout"]["meta"]["title"].startswith(title))


def press(app: AppTest, key: str) -> None:
    app.button(key=key).click().run()
    assert not app.exception, [e.value for e in app.exception]


def test_without_a_composite_the_page_says_what_to_measure() -> None:
    assert "No run has a composite score yet" in words(page())


def test_missing_labels_are_counted_and_nothing_can_be_fitted() -> None:
    fill(store_folder(), n=12, labels=9)
    app = (
        page()
    )  # 0.58 and more are five of nine scores: accepted() takes all of the first nine chains
    assert (
        "A fit needs 11 more labels, with at least 5 more chains that are not acceptable"
        in words(app)
    )
    assert app.button(key="fit").disabled
    assert drawn(app, "Scores of chains")["layout"]["xaxis"]["title"]["text"] == "r_raw"


@pytest.mark.parametrize(
    ("good", "bad", "gaps"),
    [
        (
            0,
            0,
            (
                "20 more labels, with at least 5 more acceptable chains and 5 more chains that are"
                " not acceptable"
            ),
        ),
        (10, 5, "5 more labels"),
        (40, 3, "2 more chains that are not acceptable"),
        (5, 15, ""),
    ],
)
def test_what_is_missing_is_said_in_words(good: int, bad: int, gaps: str) -> None:
    assert missing_labels_text(pd.Series([True] * good + [False] * bad, dtype=bool)) == gaps


def test_a_click_fits_a_version_and_the_diagram_shows_its_bins() -> None:
    store = fill(store_folder(), labels=54)
    with store.writing() as connection:
        add_policy(
            connection,
            thresholds={"default": (0.35, 0.65)},
            capacity=None,
            params={},
            author="ana",
            reason="test",
        )
    app = page()
    app.text_input(key="fit-note").set_value(f"first {HOSTILE}")
    app.toggle(key="fit-domain").set_value(True)
    press(app, "fit")
    row = current_calibrator(store)
    assert row is not None and (row["version"], row["made_by"], row["n"]) == (
        1,
        "local",
        53,
    )  # one chain has no score
    assert "Version 1 is fitted and in use." in words(
        app
    ) and "A fit today would see the same scores" in words(app)
    report = row["report"]
    fig = drawn(app, "Acceptable chains by prediction")
    assert f"n = 53 labelled chains in {len(report['diagram'])} bins" in " ".join(
        fig["layout"]["meta"]["subtitle"]
    )
    assert "below 0.35 escalate, from 0.65 on release" in " ".join(
        fig["layout"]["meta"]["subtitle"]
    )
    assert [cell.removesuffix(" (in use)") for cell in app.dataframe[0].value["Method"]] == [
        "Platt",
        "Beta",
        "Isotonic",
    ]
    refused = app.dataframe[0].value.set_index("Method").loc["Isotonic"]
    assert refused["Brier score"] == "n/a" and "200" in refused["Note"]
    both = app.dataframe[1].value.set_index("Domain")
    assert set(both.index) == {"sums", HOSTILE} and set(both["Labels"]) == {26, 27}
    assert "<script>" not in words(app) and "](javascript" not in words(app)
    with store.writing() as connection:  # a label that comes later is told
        add_labels(connection, [label("run-1", 0, good=False)])
    assert "have changed since: 53 labels now, 53 then" in words(page())


def two_versions() -> Store:
    store = fill(store_folder(), labels=54)
    calibrate_runs(store, ["run-1"], author="ana", method="platt")
    row = current_calibrator(store)
    assert row is not None
    with store.writing() as connection:
        add_calibrator(
            connection,
            method="platt",
            params={"all": {**row["params"]["all"], "intercept": 9.0}, "domains": {}},
            weights=None,
            labels_digest="other",
            n=53,
            n_positive=29,
            report=row["report"],
            author="ben",
        )
    return store


def test_a_fit_that_is_refused_is_drawn_as_used_by_nobody() -> None:
    fill_text_features(Store(), "a", seed=3, slope=0.0)
    app = page(run="a", target="chain_sound")
    app.selectbox(key="fit-weights").select("combined")
    press(app, "fit")
    assert "No version is kept" in words(app) and current_calibrator(Store()) is None
    fig = drawn(app, "Calibrators on unseen labels")
    assert "In use" not in " ".join(fig["layout"]["meta"]["subtitle"])


def test_an_older_version_is_used_again_with_a_reason_only() -> None:
    store = two_versions()
    features = feature_table(store, ["run-1"])
    before = calibrated_scores(store, features)["r_cal"]
    roll_back_calibrator(store, 2, author="ben", reason="to compare")
    assert (calibrated_scores(store, features)["r_cal"] - before).abs().max() > 0.1
    app = page()
    press(app, "back")
    assert "needs its reason" in words(app) and list(list_calibrator_choices(store)["version"]) == [
        2,
        1,
    ]
    app.text_input(key="back-reason").set_value("it was wrong")
    press(app, "back")
    row = list_calibrator_choices(store).iloc[0]
    assert "Version 1 is in use." in words(app)
    assert (row["version"], row["by_"], row["reason"]) == (1, "local", "it was wrong")
    assert calibrated_scores(store, features)["r_cal"].equals(before)


def test_who_is_no_admin_can_neither_fit_nor_go_back(monkeypatch: pytest.MonkeyPatch) -> None:
    store = two_versions()
    monkeypatch.setattr(access, "current_person", lambda: Person("vera", "viewer"))
    app = page()
    assert app.button(key="fit").disabled and app.button(key="back").disabled
    monkeypatch.setattr(access, "role_control", lambda role, **more: {})
    app.run()
    press(app, "fit")  # a click that comes through all the same is refused where the fit begins
    assert "vera is viewer here" in words(app) and len(list_calibrators(store)) == 2


def test_labels_of_runs_that_the_fit_did_not_see_have_a_diagram_of_their_own() -> None:
    store = fill(store_folder(), labels=54)
    calibrate_runs(store, ["run-1"], author="ana", method="platt")
    fill(store_folder(), "run-2", n=30, labels=30)
    app = page(on="fresh")
    assert "on 29 labels of runs that it has not seen" in words(app)
    assert "n = 29 labelled chains" in " ".join(
        drawn(app, "Acceptable chains")["layout"]["meta"]["subtitle"]
    )
    assert len(list_calibrators(store)) == 1


def _reviews(app: AppTest) -> list[str]:
    return [s.value for s in app.header if s.value in ("Labels due", "Drift alerts")]


def test_home_lists_labels_that_are_due_and_alerts_of_drift(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = fill(store_folder(), n=6)
    queue = make_queue(store, HOSTILE, [("run-1", f"i-{k:03}", "") for k in range(4)], author="ana")
    with store.writing() as connection:
        add_labels(connection, [label("run-1", 0, "local", queue=queue)])
        connection.execute(
            "INSERT INTO drift_checks VALUES ('d', '[\"run-0\"]', '[\"run-1\"]', now(), 'ana',"
            " true, ?, '{}')",
            [HOSTILE],
        )
    app = opened("home", QUESTION)
    links = [e.proto for e in app.get("page_link")]
    assert any(
        "3 of 4 items left for you" in link.label and f"queue={queue}" in link.query_string
        for link in links
    )
    assert any("reference=run-0&current=run-1" in link.query_string for link in links)
    assert _reviews(app) == ["Labels due", "Drift alerts"]
    assert "<script>" not in words(app) + "".join(link.label for link in links)
    with monkeypatch.context() as looking:
        looking.setattr(access, "current_person", lambda: access.Person("vi", "viewer", "header"))
        assert _reviews(opened("home", QUESTION)) == ["Drift alerts"]  # who may not label owes none
    with store.writing() as connection:
        add_labels(connection, [label("run-1", k, "local", queue=queue) for k in range(1, 4)])
        connection.execute("DELETE FROM drift_checks")
    assert _reviews(opened("home", QUESTION)) == []
