"""The page Mediation through the real entry script, on an empty store and on one with synthetic
scores."""

from __future__ import annotations

import json
import math
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import t as student
from streamlit.testing.v1 import AppTest

from cotlab.analysis.tables.declare import count_reasons
from cotlab.core.requests import Locate, Located, Message, Response, Span
from cotlab.core.types import Estimate, Facet, Item, ModelRef, Plan, Score, ScorerSpec, Step, Suite
from cotlab.metrics.mediation.published import published_cmi
from cotlab.run.imports.mediation import store_published
from cotlab.store import write
from cotlab.store.database import Store
from cotlab.store.responses import ResponseLog
from cotlab.ui.mediation.item import token_blocks
from tests.support.pages import opened

pytestmark = pytest.mark.soak  # that each page opens, full and empty, is tested with every run

MAIN = Path(__file__).parents[2] / "cotlab" / "ui" / "main.py"
HOSTILE = "<script>alert(1)</script> **bold** [x](javascript:alert(1)) $\\frac{1}{2}$"
MODEL = ModelRef("organism", "synthetic", form="continuation")
SPANS = ("0", "1", "2", "3", "0-0", "1-2", "3-3", "all")
SOURCES = (("filler", "other"), ("interchange", "other"), ("literal", "own"))
CHAIN = {"chain": "own", "given": "prefix"}
PIECES = ("<s>", "Ann", " has", " 7", HOSTILE, " Step", " 1", ":", " 7", "+", "5", " So", " 12")
POSITIONS = ((5, 6, 7, 8, 9, 10), (1, 2, 3, 4), (11, 12))


def make_suite(n: int) -> Suite:
    return Suite.of(
        "synthetic",
        [Item(f"i-{k:02}", f"{HOSTILE} {k}", "12", (Step(0, "7 + 5 = 12."),)) for k in range(n)],
    )


def located(item: Item) -> tuple[Locate, Response]:
    asked = Locate(MODEL, (Message("user", item.question),), (Span(0, 0, 1),))
    return asked, Response(asked.key, located=Located(POSITIONS, PIECES, 4))


def scores_of(item: Item, draw: random.Random) -> Iterator[Score]:
    """As the scorer's: the first item has no signal, so that its ratios are undefined; an own
    control does nothing."""
    key, dead = located(item)[0].key, item.id == "i-00"

    def told(
        name: str,
        value: float | None,
        facet: dict[str, str],
        sample: int = 0,
        reason: str | None = None,
    ) -> Score:
        why = reason or ("the drops add up to less than 0.01 nat" if value is None else None)
        return Score(
            name,
            item.id,
            value,
            sample=sample,
            facet=tuple(sorted(facet.items())),
            status="undefined" if value is None else "ok",
            reason=why,
            evidence=(key,),
        )

    yield told("baseline_logp", -0.05 - draw.random() / 10, CHAIN)
    yield told("no_cot_drop", 2.5 + draw.gauss(0, 0.5), CHAIN)
    for name in ("text_placebo", "self_shuffle"):
        yield told(name, min(1.0, 0.85 + draw.random() / 10), CHAIN)
    for source, control in SOURCES:
        at = {**CHAIN, "source": source, "control": control}
        noop = control == "own"
        for depth, span in enumerate(SPANS):
            facet = {**at, "span": span}
            cot = 0.0 if dead else max(0.0, 3 / (1 + depth % 4) + draw.gauss(0, 0.2))
            other = 0.0 if dead or noop else 0.4 + draw.random() / 5
            cmi = None if dead else max(0.0, cot - other) / (cot + other)
            yield told("cmi", cmi, facet)
            yield told("bypass", None if cmi is None else 1 - cmi, facet)
            yield told("share", None if dead else cot / (cot + other), facet)
            yield told("mass_lost", 1 - math.exp(-cot), facet)
            yield told("drop_cot", cot, facet)
            yield told("drop_control", other, facet)
            yield told("control_is_noop", float(noop), facet)
            if span != "all":
                continue
            for keep, part in (("0.8", 0.95), ("0.6", 0.8), ("0.4", 0.5)):
                yield told("cmi_kept", None if cmi is None else cmi * part, {**facet, "keep": keep})
            for name, value in (
                ("density", 0.5),
                ("validity", 0.03),
                ("placebo_cmi", 0.8),
                ("sequentiality", 0.0),
            ):
                yield told(name, None if dead else value + draw.random() / 20, facet)
            yield told(
                "boundary_sensitivity", None, facet, reason="CMI of all layers is below <0.05>"
            )
            for donor in ("i-01", "i-02", "i-03", "i-04"):
                for sample in range(2):
                    for name, base in (("cot", cot), ("control", other), ("shuffled", cot)):
                        drop = base + draw.gauss(0, 0.1)
                        yield told(
                            "patch_drop", drop, {**facet, "part": name, "donor": donor}, sample
                        )
            for sample in range(8):
                yield told(
                    "patch_drop", cot * 0.8, {**facet, "part": "kept", "keep": "0.8"}, sample
                )
        yield told("cmi_over_spans", 0.6, at)
        yield told("spans_defined", float(len(SPANS)), at)
        yield told("no_cot_effect", 0.0, at)


def means(scores: list[Score]) -> list[Estimate]:
    groups: dict[tuple[str, Facet], list[float | None]] = defaultdict(list)
    for score in scores:
        if score.metric != "patch_drop":
            groups[score.metric, score.facet].append(score.value)
    found = []
    for (metric, facet), values in groups.items():
        known = [v for v in values if v is not None]
        n, gone = len(known), len(values) - len(known)
        if not known:
            found.append(
                Estimate(
                    metric,
                    facet,
                    None,
                    None,
                    None,
                    0.95,
                    0,
                    gone,
                    "none",
                    "items",
                    "no item is defined",
                )
            )
            continue
        mean = sum(known) / n
        sd = math.sqrt(sum((v - mean) ** 2 for v in known) / (n - 1))
        half = float(student.ppf(0.975, n - 1)) * sd / math.sqrt(n)
        found.append(
            Estimate(
                metric, facet, mean, mean - half, mean + half, 0.95, n, gone, "t interval", "items"
            )
        )
    return found


def fill(folder: Path, n: int = 12, *, estimated: bool = True) -> str:
    """A store with one run of the scorer mediation on ``n`` items; returns the run's id."""
    store, suite, draw = Store(folder), make_suite(n), random.Random(5)
    plan = Plan(suite.name, suite.digest, {"subject": MODEL}, (ScorerSpec("mediation", 1, {}),))
    by_item = {item.id: list(scores_of(item, draw)) for item in suite.items}
    with store.writing() as connection:
        write.add_suite(connection, suite)
        write.add_run(
            connection,
            "run-1",
            plan,
            config={},
            code_version="test",
            output="",
            redacted=False,
            n_items=n,
        )
        write.add_ended(
            connection,
            "run-1",
            [write.Ended("mediation", 1, "p", i, tuple(s)) for i, s in by_item.items()],
        )
        if estimated:
            write.set_estimates(
                connection, "run-1", means([s for own in by_item.values() for s in own])
            )
        write.set_status(connection, "run-1", "done")
    log = ResponseLog(store.log_path)
    log.put([located(item) for item in suite.items], "run-1")
    log.close()
    return "run-1"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mediation") / "store"
    fill(folder)
    return folder


def open_page(**query: str) -> AppTest:
    return opened("mediation", "Mediation", **query)


def figures(app: AppTest) -> dict[str, dict[str, Any]]:
    found = {}
    for element in app.get("plotly_chart"):
        spec = json.loads(element.proto.spec)
        found[spec["layout"]["meta"]["title"]] = spec
    return found


def test_an_empty_store_says_which_scorer_to_run() -> None:
    assert [i.value for i in open_page().info] == ["No run has the scorer 'mediation' yet."]


def test_the_filled_page_shows_every_figure_and_the_headline(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(filled))
    app = open_page(run="run-1", item="i-03")
    assert {
        "CMI by share of the chain patched (0 to 1, all layers)",
        "Mediation by span of layers (0 to 1; share −1 to 1)",
        "Drop of the answer's log P by layer (mean, nats)",
        "Indices of mediation (mean over items, no unit)",
        "Drops of the answer's log P in this item by donor (nats)",
        "CMI of this item by share patched (0 to 1, all layers)",
    } <= set(figures(app))
    density = figures(app)["CMI by share of the chain patched (0 to 1, all layers)"]
    assert {t["name"] for t in density["data"] if t.get("showlegend")} == {
        "filler",
        "interchange",
        "literal",
    }
    assert [m.label for m in app.metric][:4] == [
        "CMI, all layers, n = 11",
        "Share, n = 11",
        "Mass lost, n = 12",
        "No-CoT drop (nats), n = 12",
    ]
    assert all("[" in m.value and "]" in m.value for m in app.metric[:4])
    own = figures(app)["CMI of this item by share patched (0 to 1, all layers)"]
    assert (
        sum(len(t["x"]) for t in own["data"] if t["mode"] == "markers" and t["marker"]["size"] == 5)
        == 8
    )  # single draws
    cards = [
        m.value for m in app.markdown if "Does not show:" in m.value and m.value.startswith("**")
    ]
    assert {text.split("**")[1] for text in cards} >= {
        "CMI",
        "density",
        "boundary sensitivity",
        "drop, chain patched",
    }
    assert not app.warning


def test_undefined_indices_are_counted_with_their_reasons(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(filled))
    table = next(
        t.value for t in open_page(run="run-1").dataframe if "why undefined" in t.value.columns
    ).set_index("index")
    assert table.loc["CMI", ["n", "undefined"]].tolist() == [11, 1]
    assert table.loc["CMI", "why undefined"] == "the drops add up to less than 0.01 nat (1)"
    assert table.loc["boundary sensitivity", "mean [interval]"] == "n/a"
    assert (
        table.loc["boundary sensitivity", "why undefined"]
        == "CMI of all layers is below <0.05> (12)"
    )
    told = figures(open_page(run="run-1"))["Indices of mediation (mean over items, no unit)"][
        "layout"
    ]["annotations"]
    assert any(
        "n/a: CMI of all layers is below &lt;0.05&gt;" in note["text"].replace("<br>", " ")
        for note in told
    )


def test_a_control_that_does_nothing_and_a_degenerate_source_are_flagged(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(filled))
    app = open_page(run="run-1", source="own~prefix~literal~own")
    noop, literal = [w.value for w in app.warning]
    assert "changes nothing in 12 of 12 items" in noop and "CMI is 1 for everything" in noop
    assert "literal is degenerate" in literal


def test_a_run_without_estimates_says_so_and_shows_its_items(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "unfinished", 3, estimated=False)
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path / "unfinished"))
    app = open_page(run="run-1")
    assert "estimated when the run ends" in app.info[0].value
    assert len(figures(app)) == 2


def test_text_of_the_model_is_never_markup(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(filled))
    app = open_page(run="run-1", item="i-00")
    for element in [*app.markdown, *app.caption, *app.warning, *app.info, *app.error]:
        assert "<script>" not in element.value and "](javascript" not in element.value


def test_tokens_stand_in_runs_of_one_role() -> None:
    blocks = token_blocks({"positions": POSITIONS, "pieces": PIECES, "layers": 4})
    assert [b.label for b in blocks] == [
        "other: untouched",
        "question: control",
        "chain: patched",
        "cue: untouched",
    ]
    assert [b.score for b in blocks] == ["0 (1)", "1–4 (4)", "5–10 (6)", "11–12 (2)"]
    assert blocks[1].text == f"Ann\u00a0·  has\u00a0·  7\u00a0· {HOSTILE}"
    assert token_blocks({"positions": ((0,),), "pieces": ("\n",), "layers": 4})[0].text == "↵"
    assert blocks[2].shade is not None and blocks[0].shade is None
    assert token_blocks({"positions": ((), ()), "pieces": (), "layers": 4}) == []


def test_reasons_that_differ_in_numbers_only_are_one() -> None:
    told = [
        "no donor",
        "both drops are 7.8e-05 nat, below 0.01",
        "both drops are 0.002 nat, below 0.01",
        "CMI 3 < 5",
    ]
    assert count_reasons(told) == {
        "both drops are … nat, below 0.01": 2,
        "no donor": 1,
        "CMI 3 < 5": 1,
    }
    assert count_reasons([]) == {}


def test_the_values_of_one_item_have_intervals_over_donors_and_draws(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(filled))
    app = open_page(run="run-1", item="i-03")
    table = next(t.value for t in app.dataframe if "donors" in t.value.columns)
    assert table["layers"].tolist()[0] == "all" and table["value"].tolist()[0] == "CMI"
    first = table.iloc[0]
    assert (first["drops"], first["donors"], first["resampled, or why not"]) == (
        16,
        4,
        "over donors, then draws",
    )
    shown = {m.label: m.value for m in app.metric}["CMI, all layers"]
    assert (
        "[" in first["value [95 % interval]"]
        and shown.split(" [")[1] == first["value [95 % interval]"].split(" [")[1]
    )
    dead = open_page(
        run="run-1", item="i-00"
    )  # its stored CMI is undefined whatever its draws: no bounds without a value
    assert "n/a" in {m.label: m.value for m in dead.metric}["CMI, all layers"]


def test_an_imported_run_shows_its_layers_and_why_most_are_undefined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path / "imported"))
    rows = [
        {
            "layer": k,
            "cot_drop": 3.0 * (k == 1),
            "control_drop": 1.0 * (k == 1),
            "cmi_score": 0,
            "bypass_score": 1,
        }
        for k in range(4)
    ]
    kept = store_published(
        Store(), published_cmi("f.json", {HOSTILE: rows, **{f"i{k}": rows for k in range(5)}})
    )
    app = open_page(run=kept.run_id)
    assert {m.label: m.value for m in app.metric}[
        "CMI, mean over layers, n = 6"
    ] == "0.500 [no interval]"
    assert (
        "published by others" in app.info[0].value
        and "neither the text nor its tokens" in app.info[1].value
    )
    table = next(t.value for t in app.dataframe if "layer" in t.value.columns).set_index("layer")
    assert table["n"].tolist() == [0, 6, 0, 0] and table.loc["0", "mean [interval]"] == "n/a"
    assert table.loc["0", "why undefined"] == "zero total drop (6)"
    own = next(t.value for t in app.dataframe if "why n/a" in t.value.columns).set_index("layers")
    assert own.loc["1", ["CMI", "share", "why n/a"]].tolist() == ["0.500", "0.750", ""]
    assert own.loc["2", ["CMI", "drop, chain patched (nats)", "why n/a"]].tolist() == [
        "n/a",
        "0",
        "zero total drop",
    ]
    for element in [*app.markdown, *app.caption, *app.warning, *app.info, *app.error]:
        assert "<script>" not in element.value


@pytest.mark.parametrize("name", ["run", "item", "runs"])
def test_other_pages_open_an_imported_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path / "imported"))
    row = {"layer": 0, "cot_drop": 3.0, "control_drop": 1.0, "cmi_score": 0.5, "bypass_score": 0.5}
    kept = store_published(Store(), published_cmi("f.json", {"a": [row]}))
    app = AppTest.from_file(str(MAIN), default_timeout=90)
    app.query_params["run"], app.query_params["item"] = kept.run_id, "a"
    app.run()
    app.switch_page(str(MAIN.parents[2] / "pages" / f"{name}.py")).run()
    assert not app.exception, [e.value for e in app.exception]
    assert not [c.value for c in app.code if "cotlab run" in c.value]
