"""The page Decisions: thresholds, saving a policy, deciding, the queue and the audit."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from cotlab.core.types import Item, Step, Suite
from cotlab.review.release.decide import load_policy
from cotlab.store import decisions as decision_store
from cotlab.store.calibrators import current_calibrator
from cotlab.store.database import Store
from cotlab.store.labels import list_label_queues, list_queue_items
from cotlab.ui import access
from cotlab.ui.decisions.decided import count_answers_to_decide
from tests.support.stores import add_run, composite, use_calibrator
from tests.support.stores.decided import HOSTILE, RUN, fill
from tests.ui.test_pages import check, open_page

pytestmark = pytest.mark.soak  # that each page opens, full and empty, is tested with every run


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return fill(tmp_path / "store", 60, labelled=50)


def press(app: AppTest, label: str) -> AppTest:
    next(button for button in app.button if button.label == label).click()
    return app.run()


def said(app: AppTest) -> str:
    return " ".join(
        str(e.value)
        for kind in (app.markdown, app.caption, app.warning, app.info, app.error)
        for e in kind
    )


def test_an_empty_store_says_what_to_run() -> None:
    app = open_page("decisions", audit="true")
    check(app, "Decide")
    assert "No run has" in said(app) and "phase 0 of 5" in " ".join(s.value for s in app.header)


def test_without_a_calibrated_score_there_is_no_curve_and_nothing_to_decide(
    tmp_path: Path,
) -> None:
    fill(tmp_path / "store", 20, labelled=10, fitted=False)
    app = open_page("decisions", run=RUN)
    check(app, "Decide")
    start = "No answer of this run has a calibrated score (r_cal), so nothing can be released:"
    warnings = [text.value.replace("\\", "") for text in app.warning]
    assert sum(text.startswith(start) for text in warnings) == 1, warnings
    assert next(b for b in app.button if b.label == "Decide on this run").disabled
    assert not app.get("plotly_chart")
    policy = open_page("policy", run=RUN)
    assert not policy.get("plotly_chart")
    assert "Save as the policy" not in [b.label for b in policy.button]


def test_from_thresholds_to_decisions_to_a_queue(store: Store) -> None:
    app = open_page("policy", run=RUN, thresholds="0.3,0.7", more="true")
    check(app, "Decide")
    before = app.dataframe[0].value.set_index("of 60 answers")["These thresholds"].to_dict()
    assert app.slider[0].value == (0.3, 0.7)
    app.slider[0].set_value((0.0, 0.0)).run()
    after = app.dataframe[0].value.set_index("of 60 answers")["These thresholds"].to_dict()
    assert after["Released"] == "56 (93%)" and after["Escalated"] == "4 (7%)", (
        "what has no r_cal is never released"
    )
    assert before["Released"] != after["Released"] and decision_store.list_policies(store).empty, (
        "nothing is saved by looking"
    )

    app.slider[0].set_value((0.3, 0.7))
    press(app, "Save as the policy")
    assert "needs its reason" in said(app) and decision_store.list_policies(store).empty
    next(t for t in app.text_input if t.key == "policy-reason").set_value(HOSTILE)
    press(app, "Save as the policy")
    held = load_policy(store).thresholds["default"]
    assert (held.low, held.high) == (0.3, 0.7)

    app = open_page("decisions", run=RUN, review="true")
    press(app, "Decide on this run")
    check(app, "Decide")
    made = decision_store.list_decisions(store, RUN)
    assert len(made) == 60 and set(made["policy"]) == {1} and set(made["by_"]) == {"local"}
    assert f"{(made['action'] == 'release').sum()} " in before["Released"]
    press(app, "Make a label queue of the first")
    items = list_queue_items(store, list_label_queues(store)["id"].iloc[0])
    assert len(items) == 20 and not set(items["item_id"]) & set(
        made[made["action"] == "release"]["item_id"]
    )
    log = decision_store.list_audit(store)
    assert log["what"].tolist() == ["decide", "policy", "choose calibrator"]
    assert json.loads(log["after"].iloc[1])["version"] == 1
    assert "<script>" not in "".join(
        str(e.value).replace("\\<", "") for e in (*app.markdown, *app.caption)
    )


def test_a_change_of_the_policy_asks_to_decide_again(store: Store) -> None:
    from cotlab.reliability.policy import DEFAULT_DOMAIN, Policy, Thresholds
    from cotlab.review.release.decide import decide_run, set_policy

    set_policy(store, Policy({DEFAULT_DOMAIN: Thresholds(0.3, 0.7)}, 5), author="Ann", reason="x")
    decide_run(store, RUN, author="Ann")
    assert "Decide again" not in said(open_page("decisions", run=RUN))
    set_policy(store, Policy({DEFAULT_DOMAIN: Thresholds(0.3, 0.9)}, 5), author="Ann", reason="y")
    app = open_page("decisions", run=RUN, review="true", more="true", action="review")
    check(app, "Decide")
    assert "These decisions were made with another policy" in said(
        app
    ) and "At 5 reviews a day" in said(app)


def test_what_was_scored_after_the_decision_is_counted() -> None:
    gone = float("nan")
    made = pd.DataFrame(
        {"item_id": ["a", "b", "c"], "r_raw": [0.5, gone, 0.5], "r_cal": [0.6, gone, 0.6]}
    )
    now = pd.DataFrame(
        {
            "item_id": list("abcd"),
            "r_raw": [0.5, gone, 0.4, 0.9],
            "r_cal": [0.6 + 1e-15, gone, 0.5, 0.9],
        }
    )
    assert count_answers_to_decide(now.iloc[:2], made) == 0
    assert (
        count_answers_to_decide(now, made) == 2
    )  # c has another score, d has none that was decided on
    assert count_answers_to_decide(now.assign(r_raw=0.5, r_cal=0.6), made) == 2  # b has one now


def test_whoever_is_no_admin_changes_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "current_person", lambda: access.Person("Eve", "labeller"))
    for tab, label in (("policy", "Save as the policy"), ("decisions", "Decide on this run")):
        app = open_page(tab, run=RUN)
        check(app, "Decide")
        assert [button.disabled for button in app.button if button.label == label] == [True]
    monkeypatch.setattr(
        access, "has_role", lambda role: True
    )  # whoever enables a button in the browser is still asked
    press(app.run(), "Decide on this run")
    assert (
        "needs the role admin" in said(app).replace("\\", "")
        and decision_store.list_decisions(store).empty
    )


def test_costs_and_a_target_move_the_sliders(store: Store) -> None:
    app = open_page("policy", run=RUN)
    assert not app.radio, "closed, nothing is tried on the labels"
    app = open_page("policy", run=RUN, suggest="true")
    press(app, "Try these thresholds")
    assert app.slider[0].value == (
        0.0,
        0.9444,
    ), "error 20, review 1, escalation 3, missed .1: high 1 - 1/18"
    app.radio[0].set_value("Target precision").run()
    check(app, "Decide")
    assert "more labels" in said(app)


def test_a_run_whose_labels_the_calibrator_has_seen_is_named_and_another_offered(
    store: Store,
) -> None:
    items = tuple(Item(f"i-{k}", f"{k}?", "1", (Step(0, "1"),)) for k in range(6))
    ended = [composite(item, 0.5, dict.fromkeys("CVFRD", 0.5)) for item in items]
    add_run(store, "held", Suite.from_items(HOSTILE, items), ended)
    seen = open_page("decisions", run=RUN)
    assert "was fitted on labels of this run" not in said(seen), "its report names no run"
    calibrator = current_calibrator(store)
    assert calibrator is not None
    report = {**calibrator["report"], "runs": [RUN]}
    use_calibrator(store, calibrator["params"]["all"], n=46, n_positive=20, report=report)
    seen = open_page("decisions", run=RUN)
    assert "was fitted on labels of this run" in said(seen)
    (link,) = [button for button in seen.button if button.label.startswith("Decide on ")]
    assert link.label.endswith("held")
    held = open_page("decisions", run="held")
    check(held, "Decide")
    assert "was fitted on labels of this run" not in said(held)
