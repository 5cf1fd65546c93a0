"""The verdict on Home, Run and Runs, in each of its states, and where its numbers lead."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import pytest
from streamlit.testing.v1 import AppTest

import cotlab
from cotlab.core.provider import Finding
from cotlab.core.registry import SCORERS
from cotlab.store import write
from cotlab.store.database import Store
from cotlab.store.live import LiveRunStore, RunProgress
from cotlab.store.server_checks import ServerCheck, add_server_check
from cotlab.ui import cached
from cotlab.ui.linked import PageLink
from cotlab.ui.metric_names import metric_name
from cotlab.ui.new_run.measures import add_measure
from cotlab.ui.text import escape_markdown
from cotlab.ui.verdict import evidence_link
from tests.support import hostile
from tests.support.linked import linked_view
from tests.support.pages import components
from tests.support.stores import MODEL
from tests.support.stores.judged import add_measured_run, numbered_suite
from tests.ui.test_pages import open_page


class State(NamedTuple):
    """A run and what the pages say of it."""

    values: dict[str, float | None]
    """The value of each measure."""
    mark: str
    """The mark of the verdict."""
    headline: str
    """The headline."""
    short: str
    """The finding in the table."""
    answers: tuple[str, ...]
    """What the lamps say."""


STATES = {
    "follows": State(
        {"change": 1, "control": 0, "moved": 0, "sound": 1},
        "yes",
        "The answer mostly or always follows the chain.",
        "mostly follows",
        ("Yes", "No hint moved it", "Yes, as far as checked"),
    ),
    "bypass": State(
        {"change": 0, "control": 0, "moved": 0, "sound": 1},
        "no",
        "The answer rarely or never follows the chain.",
        "rarely follows",
        ("No", "No hint moved it", "Yes, but they are not used"),
    ),
    "hint": State(
        {"change": 1, "control": 0, "moved": 1, "admitted": 0},
        "no",
        "The answer follows a suggestion, and the chain hides it.",
        "follows a suggestion, hides it",
        ("Only where nothing is suggested", "No", "Not measured"),
    ),
    "nothing": State(
        {"change": None, "control": None},
        "unknown",
        "Cannot say: nothing was measured.",
        "nothing measured",
        ("Cannot be measured here", "Not measured", "Not measured"),
    ),
    "server": State(
        {},
        "unknown",
        "Cannot say: the server does not continue a chain.",
        "cannot say",
        ("Cannot be measured here", "Not measured", "Not measured"),
    ),
}


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A store for each state, each with one run of 40 items."""
    folders = {}
    for name, state in STATES.items():
        folders[name] = tmp_path_factory.mktemp(name)
        store = Store(folders[name])
        is_refused = name == "server"
        add_measured_run(
            store, "run-1", state.values, status="failed" if is_refused else "done", model=name
        )
        if is_refused:
            model = type(MODEL)(MODEL.provider, name, form="continuation")
            finding = Finding("new turn", "It opens a new turn instead.")
            check = ServerCheck(model, {"prefix": finding}, 4, datetime.now(UTC))
            add_server_check(store, "run-1", check)
    return folders


@pytest.mark.parametrize("name", STATES)
def test_home_and_run_say_what_may_be_believed(
    name: str, stores: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(stores[name]))
    state = STATES[name]
    for app in (open_page("home"), open_page("run", run="run-1")):
        assert not app.exception, [error.value for error in app.exception]
        shown = linked_view(app, "verdict")
        assert (shown["mark"], shown["headline"]) == (state.mark, state.headline)
        lamps = linked_view(app, "lamps")["lamps"]
        assert tuple(lamp["answer"] for lamp in lamps) == state.answers
        assert all(lamp["button"] or lamp["mark"] != "unknown" for lamp in lamps)
        assert all((lamp["share"] is None) == (lamp["interval"] is None) for lamp in lamps)
    row = linked_view(open_page("home"), "table")["rows"][0]
    assert (row[1]["text"], row[1]["mark"]) == (state.short, state.mark)
    table = linked_view(open_page("runs"), "table")
    assert (table["rows"][0][1]["text"], table["rows"][0][1]["mark"]) == (state.short, state.mark)
    titles = " ".join(column["title"] for column in table["columns"])
    assert "RRR" not in titles and "r_raw" not in titles


def listed_statuses() -> list[str]:
    """Return the status of each run on the page Runs."""
    table = linked_view(open_page("runs"), "table")
    (column,) = [i for i, entry in enumerate(table["columns"]) if entry["title"] == "Status"]
    return [row[column]["text"] for row in table["rows"]]


def test_a_run_without_any_value_is_never_done(
    stores: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(stores["nothing"]))
    assert listed_statuses() == ["nothing measured"]
    run = open_page("run", run="run-1")
    assert any("nothing measured" in caption.value for caption in run.caption)
    (reason,) = linked_view(run, "verdict")["sentences"]
    text = "".join(passage["text"] for passage in reason)
    assert text == "Words unknown to the model: 40 items."  # those of the change
    monkeypatch.setenv("COTLAB_STORE", str(stores["follows"]))
    assert listed_statuses() == ["done"]


def test_a_chip_leads_to_its_own_figures_at_the_top_of_validation(
    stores: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("hint", "nothing"):  # measured, and not measured
        monkeypatch.setenv("COTLAB_STORE", str(stores[name]))
        shown = linked_view(open_page("home"), "lamps")
        for lamp, record in zip(
            shown["lamps"],
            ("answer_change", "unfaithfulness (classifier=hint)", "arithmetic_ok"),
            strict=True,
        ):
            address = urlsplit(shown["addresses"][lamp["validation_link"]])
            query = dict(parse_qsl(address.query))
            assert (address.path, query) == ("/validation", {"metric": record})
            page = open_page("validation", **query)
            text = escape_markdown(lamp["validation"])[1:]  # there a sentence
            claims = [entry.value for entry in page.markdown if text in entry.value]
            assert len(claims) == 1, claims
            assert page.selectbox(key="pick-metric").value == record


def test_each_number_leads_to_its_evidence(
    stores: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(stores["hint"]))
    home = open_page("home")
    marks = [lamp["validation_mark"] for lamp in linked_view(home, "lamps")["lamps"]]
    assert marks == ["yes", "yes", "part"]
    shown = linked_view(home, "verdict")
    linked = {
        passage["text"]: shown["addresses"][passage["link"]]
        for sentence in shown["sentences"]
        for passage in sentence
        if passage["link"] is not None
    }
    assert linked["100 % of the items"] == (
        "/run?run=run-1&number=moved&classifier=hint&tab=unfaithfulness"
    )
    assert linked["100 % of the steps"] == (
        "/run?run=run-1&number=change&metric=answer_change&mode=corrupt&tab=steps"
    )
    assert evidence_link("run-1", "control").address.endswith("mode=paraphrase&tab=steps")
    query = (("run", "run-1"), ("number", "inner_change"))
    assert evidence_link("run-1", "inner_change") == PageLink("mediation", query)
    unlinked = [
        passage["text"]
        for sentence in shown["sentences"]
        for passage in sentence
        if passage["link"] is None
    ]
    assert not any("%" in text for text in unlinked)


def test_a_lamp_that_is_out_opens_new_run_with_what_lights_it(
    stores: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(stores["hint"]))
    lamps = linked_view(open_page("home"), "lamps")
    button = lamps["lamps"][2]["button"]
    assert lamps["addresses"][button["link"]] == "/new?from=run-1&measure=equations"
    stored = {"scorer": ["ablation"], "mode": ["corrupt"], "chain": "reference"}
    assert add_measure(stored, "control")["mode"] == ["corrupt", "paraphrase"]
    assert add_measure(stored, "suggestion")["scorer"] == ["ablation", "unfaithfulness"]
    sound = add_measure({**stored, "scorer": []}, "equations")
    assert (sound["scorer"], sound["chain"]) == (["verification"], "own")
    assert add_measure(stored, None) == stored == add_measure(stored, hostile.ALL)


def test_the_form_is_filled_with_what_a_lamp_asks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path))
    run = cotlab.run_suite(
        numbered_suite(3), store=tmp_path, provider="echo", model="echo", mode=["corrupt"]
    ).run_id
    app = open_page("new_run", **{"from": run, "measure": "suggestion"})
    assert not app.exception
    assert app.multiselect(key="new-scorer").value == ["ablation", "unfaithfulness"]
    assert app.selectbox(key="new-provider").value == "echo"
    assert any("unfaithfulness added" in info.value for info in app.info)
    assert any("requests**" in text.value for text in app.markdown)


def test_two_demonstration_models_are_set_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path))
    store = Store(tmp_path)
    for model, name in (("bypass-b", "bypass"), ("r100", "follows")):
        add_measured_run(store, model, STATES[name].values, model=model)
    app = open_page("home")
    cards = [data for data in components(app) if data.get("view") == "verdict"]
    assert [card["headline"] for card in cards] == [
        STATES[name].headline for name in ("follows", "bypass")
    ]
    assert all(card["chip"] and not card["limits"] for card in cards)
    add_measured_run(store, "another", STATES["hint"].values, model="hint")
    home = open_page("home")  # another run has the page
    assert linked_view(home, "verdict")["headline"] == STATES["hint"].headline


def test_a_run_that_measured_nothing_has_no_bare_count_of_items(
    stores: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(stores["nothing"]))
    live = LiveRunStore(Store(stores["nothing"]).log_path)
    live.write_heartbeat("run-1", RunProgress(status="done", items_done=40, items_total=40))
    live.close()
    labels = [metric.label for metric in open_page("run", run="run-1").metric]
    assert "Items tried, none with a value" in labels and "Items" not in labels


@pytest.mark.parametrize("page", ["home", "run", "runs"])
def test_a_run_is_finishing_until_its_estimates_are_there(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One word for the state; the numbers that it has are shown already."""
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path))
    store = Store(tmp_path)
    add_measured_run(store, "run-1", STATES["follows"].values)
    live = LiveRunStore(store.log_path)  # by this process, which goes on
    live.write_heartbeat("run-1", RunProgress(status="done", items_done=40, items_total=40))
    live.close()
    assert "finishing" not in _state_texts(page)
    with store.writing() as connection:
        connection.execute("DELETE FROM estimates")
        write.set_status(connection, "run-1", "done")
    text = _state_texts(page)
    assert "finishing" in text and "done" not in text and "Not measured yet" not in text
    if page != "runs":
        assert "finishing: estimates in a few seconds" in text.replace("\\", "")
        assert STATES["follows"].headline in text


def _state_texts(page: str) -> str:
    """Return what a page shows of the state of a run: status, headline, lamps and cells."""
    app = open_page(page, run="run-1")
    assert not app.exception
    views = [] if page == "runs" else [linked_view(app, name) for name in ("verdict", "lamps")]
    rows = linked_view(app, "table")["rows"] if page == "runs" else []
    return json.dumps([[s.value for s in app.caption], views, rows])


def test_foreign_text_is_data_of_the_component_and_never_markup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path))
    suite = numbered_suite(name=hostile.ALL)
    store = Store(tmp_path)
    for run, values in (("run-1", {"change": 1.0, "control": 0.0}), ("run-2", {"change": None})):
        add_measured_run(
            store, run, values, suite=suite, model=hostile.ALL, reason=hostile.ALL, note=hostile.ALL
        )
    for app in (open_page("home"), open_page("run", run="run-1"), open_page("run", run="run-2")):
        assert not app.exception
        shown = linked_view(app, "verdict")
        assert "evil" in json.dumps(shown)
        for element in (*app.markdown, *app.caption, *app.warning, *app.info, *app.header):
            assert (
                "<script>" not in element.value and f"](https://{hostile.HOST}" not in element.value
            )
    view = (Path(cached.__file__).parent / "linked_view.js").read_text("utf-8")
    assert "innerHTML" not in view and "insertAdjacentHTML" not in view


HEADLINE_PAGES = ("home", "run", "runs", "reliability", "robustness", "compare")


@pytest.mark.parametrize("page", HEADLINE_PAGES)
def test_no_large_number_is_of_a_metric_that_fails_its_own_test(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every metric of the registry that stands in large figures, or in the table of runs."""
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path))
    store = Store(tmp_path)
    for run in ("run-1", "run-2"):
        add_measured_run(store, run, STATES["follows"].values, model=run)
    labels = _headline_labels(open_page(page, run="run-1", base="run-1", other="run-2"))
    cards = {card.name for name in SCORERS for card in SCORERS[name].cards}
    failing = {name for name in cards if not cached.metric_validation(name).is_usable}
    assert {"r_raw", "consistency", "robustness", "flags", "diversity"} <= failing
    assert not {"answer_change", "mass_lost", "hint_followed", "arithmetic_ok"} & failing
    assert not {metric_name(name) for name in failing} & labels


def _headline_labels(app: AppTest) -> set[str]:
    assert not app.exception
    labels: set[Any] = {metric.label.partition(", n =")[0] for metric in app.metric}
    for frame in app.dataframe:
        labels |= {name.partition(" [")[0] for name in map(str, frame.value.columns)}
    return labels
