"""Published CMI rows by hand: the formula, what is undefined, the warnings, and files that mean
harm."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cotlab.analysis.markdown import render_markdown
from cotlab.analysis.report import build_report
from cotlab.cli.main import app
from cotlab.core.errors import ConfigError, SuiteError
from cotlab.metrics.mediation.published import (
    SMALL_DROP_REASON,
    ZERO_DROP_REASON,
    content_digest,
    layer_span_name,
    published_scores,
    published_summary,
    read_published_cmi,
)
from cotlab.metrics.mediation.published_checks import first_warnings_by_kind, published_warnings
from cotlab.run.imports.mediation import NO_QUESTION, is_imported, store_published_file
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.suites.importers.cmi import read_cmi_file
from tests.support.command import cotlab


def row(
    cot: Any = 3.0, control: Any = 1.0, score: Any = 0.5, layer: Any = 0, bypass: Any = 0.5
) -> dict[str, Any]:
    return {
        "layer": layer,
        "cot_drop": cot,
        "control_drop": control,
        "cmi_score": score,
        "bypass_score": bypass,
    }


@pytest.mark.parametrize(
    ("cot", "control", "cmi", "reason"),
    [
        (3.0, 1.0, 0.5, None),  # (3 - 1) / (3 + 1)
        (1.0, 3.0, 0.0, None),  # max(0, 1 - 3)
        (2.0, -5.0, 1.0, None),  # a control that helps counts as 0
        (0.0, 0.0, None, ZERO_DROP_REASON),
        (-1.0, -2.0, None, ZERO_DROP_REASON),
        (0.006, 0.003, None, SMALL_DROP_REASON),  # .009 < .01
        (0.01, 0.0, 1.0, None),  # at the threshold
    ],
)
def test_formula(cot: float, control: float, cmi: float | None, reason: str | None) -> None:
    (found,) = read_published_cmi("f", {"a": [row(cot, control)]}).rows
    assert (found.cmi, found.reason) == (cmi, reason)
    assert found.bypass == (None if cmi is None else 1 - cmi)


def test_the_published_value_stays_beside_the_recomputed_one() -> None:
    off, small, none = read_published_cmi(
        "f", {"a": [row(score=0.75), row(0.006, 0.002), row(0, 0, 0)]}
    ).rows
    assert (off.published_cmi, off.difference) == (0.75, 0.25)
    assert small.cmi is None and small.difference == pytest.approx(0.0)  # (.006 - .002) / .008 = .5
    assert (none.published_cmi, none.difference) == (0.0, None)


def test_threshold_is_a_parameter_and_zero_stays_zero() -> None:
    rows = read_published_cmi("f", {"a": [row(0.006, 0.002), row(0, 0)]}, least_drop=0).rows
    assert [r.reason for r in rows] == [None, ZERO_DROP_REASON]
    for wrong in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ConfigError, match="threshold"):
            read_published_cmi("f", {}, least_drop=wrong)


def test_summary_pools_rows_and_resamples_items() -> None:
    found = published_summary(
        read_published_cmi("f", {"a": [row(), row(layer=1)], "b": [row(1, 0, 1), row(0, 0, 0)]})
    )
    assert (found.rows, found.items, found.layers, found.defined, found.zero, found.small) == (
        4,
        2,
        2,
        3,
        1,
        0,
    )
    assert found.mean.point == pytest.approx(2 / 3) and found.mean.n == 2  # (.5 + .5 + 1) / 3
    assert (found.within, found.compared) == (3, 3)
    empty = published_summary(read_published_cmi("f", {}))
    assert empty.mean.point is None and empty.compared == 0


def test_warnings() -> None:
    same, spans = {"a": [row()]}, {"a": [{**row(), "layers": [0]}]}
    del spans["a"][0]["layer"]
    one, two = read_published_cmi("one", same), read_published_cmi("two", spans)
    assert published_warnings([one]) == ()
    assert published_warnings([one, two]) == (
        "Duplicate file: one and two hold the same rows; count them once.",
    )
    renamed = read_published_cmi("three", {"z": [row()]})
    assert "under other names" in published_warnings([one, renamed])[0]
    more = read_published_cmi(
        "more", {"a": [row(score=0.53), row()], "b": [row(0, 0, 0, bypass=1)]}
    )
    told = published_warnings([one, more])
    assert [line.split(":")[0] for line in told] == [
        "Layer count",
        "Published CMI",
        "Undefined",
        "Layer count",
    ]
    assert "item 'a' row 0 by +0.030" in told[1] and "(1 and 2)" in told[3]


@pytest.mark.parametrize(
    "entry",
    [
        7,
        {},
        row(cot="3"),
        row(cot=None),
        row(control=True),
        row(cot=float("nan")),
        row(cot=float("inf")),
        row(cot=10**400),
        row(score=1e300),
        row(bypass=[]),
        row(layer=-1),
        row(layer=1.5),
        row(layer=True),
        row(layer=10**400),
        {**row(), "layers": [0]},
        {**row(), "cmi_raw": "x"},
    ],
)
def test_a_malformed_row_is_named(entry: object) -> None:
    with pytest.raises(SuiteError, match=r"^f\.json: item 'a', row 1: "):
        read_published_cmi("f.json", {"a": [row(), entry]})


@pytest.mark.parametrize("parsed", [[], None, 3, {"a": {}}, {"a": None}])
def test_another_form_is_refused(parsed: object) -> None:
    with pytest.raises(SuiteError, match="list of rows"):
        read_published_cmi("f", parsed)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b"9" * 5000,
        b'{"a":' + b"9" * 5000 + b"}",
        b"[" * 200_000,
        b'{"a": [], "a": []}',
    ],
)
def test_hostile_files(raw: bytes, tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_bytes(raw)
    with pytest.raises(SuiteError, match="f.json") as told:
        read_cmi_file(path)
    assert len(str(told.value).splitlines()) == 1


def test_no_file(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.json", "a\0b"):
        with pytest.raises(SuiteError):
            read_cmi_file(path)


def test_command(tmp_path: Path) -> None:
    source, output = tmp_path / "f.json", tmp_path / "rows.csv"
    source.write_text(json.dumps({"=1+1": [row(), row(0, 0, 0, bypass=1)]}), encoding="utf-8")
    shown = CliRunner().invoke(app, ["mediation", "import", str(source), "--output", str(output)])
    assert (
        shown.exit_code == 0
        and "zero total drop" in shown.output
        and "warning: Undefined: 1 of 2 rows" in shown.output
    )
    with output.open(encoding="utf-8", newline="") as stream:
        written = list(csv.DictReader(stream))
    assert [line["item"] for line in written] == ["'=1+1", "'=1+1"]
    assert [line["cmi"] for line in written] == ["0.5", ""]
    found = json.loads(
        CliRunner().invoke(app, ["mediation", "import", str(source), "--json"]).output
    )
    assert found["files"][0]["zero"] == 1 and len(found["warnings"]) == 1
    refused = CliRunner().invoke(app, ["mediation", "import", str(source), "--output", str(source)])
    assert isinstance(refused.exception, ConfigError)


def test_scores_of_rows_are_those_of_the_scorer_and_say_that_they_are_imported() -> None:
    """Drops 3 and 1: CMI 2/4, share 3/4, mass lost 1 - e^-3; 0 and 0 have no ratio but a mass; .006
    and .002 are no signal."""
    found = published_scores(
        read_published_cmi("f", {"a": [row(), row(0, 0), row(0.006, 0.002, layer=2)], "b": []})
    )
    by = {(s.metric, dict(s.facet).get("span", ""), s.sample): s for s in found["a"]}
    assert (
        by["cmi", "0", 0].value == 0.5
        and by["bypass", "0", 0].value == 0.5
        and by["share", "0", 0].value == 0.75
    )
    assert by["mass_lost", "0", 0].value == pytest.approx(0.950213, abs=1e-6)
    assert (by["drop_cot", "0", 0].value, by["drop_control", "0", 0].value) == (3.0, 1.0)
    for metric in ("cmi", "bypass", "share"):
        assert (by[metric, "0", 1].value, by[metric, "0", 1].reason) == (
            None,
            ZERO_DROP_REASON,
        )  # the same layer again: sample 1
        assert (by[metric, "2", 0].status, by[metric, "2", 0].reason) == (
            "undefined",
            SMALL_DROP_REASON,
        )
    assert by["mass_lost", "0", 1].value == 0.0
    assert [by[m, "", 0].value for m in ("cmi_over_spans", "spans_defined", "no_cot_effect")] == [
        0.5,
        1.0,
        0.0,
    ]
    assert {(s.value, s.reason) for s in found["b"]} == {(None, "no row is published")}
    for score in (*found["a"], *found["b"]):
        assert {("imported", "yes"), ("source", "published"), ("control", "published")} <= set(
            score.facet
        )
        assert score.evidence == ()


@pytest.mark.parametrize(
    ("layers", "span"),
    [([3], "3"), ([2, 1, 0], "0-2"), ([0, 1, 2, 3], "0-3"), ([1, 4, 5], "1+4+5"), ([7, 7], "7")],
)
def test_layers_are_named_as_spans(layers: list[int], span: str) -> None:
    assert layer_span_name(layers) == span


def test_the_content_of_a_file_is_its_rows_and_not_their_names_or_order() -> None:
    one, other = {"a": [row()], "b": [row(2, 1, 0.3)]}, {"y": [row(2, 1, 0.3)], "x": [row()]}
    assert content_digest(read_published_cmi("f", one)) == content_digest(
        read_published_cmi("g", other)
    )
    assert content_digest(read_published_cmi("f", one)) != content_digest(
        read_published_cmi("f", {"a": [row(), row()]})
    )


def test_a_file_becomes_a_run_once(tmp_path: Path) -> None:
    store = Store(tmp_path)
    file = read_published_cmi(
        "x/cmi_layers_all_my_model.json", {f"i{k}": [row(3 + k)] for k in range(6)}
    )
    kept, again = store_published_file(store, file), store_published_file(store, file)
    assert (kept.is_new, again.is_new, kept.run_id, kept.suite, kept.model) == (
        True,
        False,
        again.run_id,
        "cmi_layers_all_my_model",
        "my_model",
    )
    renamed = store_published_file(
        store,
        read_published_cmi("copy.json", {f"j{k}": [row(3 + k)] for k in range(6)}),
        model="mine",
    )
    assert (renamed.is_new, renamed.run_id, renamed.suite, renamed.model) == (
        False,
        kept.run_id,
        kept.suite,
        kept.model,
    )
    assert read.get_store_totals(store)["runs"] == 1 and read.get_store_totals(store)[
        "scores"
    ] == 6 * (6 + 3)
    run = read.get_run(store, kept.run_id)
    assert (run["status"], run["asked"], run["model"]) == ("done", 0, "published/my_model")
    assert (run["n_ended"], run["n_items"]) == (6, 6)
    assert is_imported(read.plan_from_row(run))
    assert read.get_suite(store, run["suite"]).items[0].question == NO_QUESTION
    means = read.run_estimates(store, kept.run_id, ["cmi"])
    expected = sum((3 + k - 1) / (3 + k + 1) for k in range(6)) / 6
    assert (means["point"].item(), means["n"].item()) == (pytest.approx(expected), 6)
    assert means["lo"].item() < expected < means["hi"].item()
    assert kept.run_id in render_markdown(build_report(store, kept.run_id))
    coarse = read_published_cmi(file.name, {f"i{k}": [row(3 + k)] for k in range(6)}, least_drop=5)
    assert store_published_file(
        store, coarse, least_drop=5
    ).is_new  # another threshold is another measurement


@pytest.mark.parametrize("item", ["", " ", "a\nb", "\ud800", "\x1b[31m"])
def test_an_id_that_cannot_be_shown_is_refused(item: str, tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match="printable"):
        store_published_file(Store(tmp_path), read_published_cmi("f.json", {item: [row()]}))
    with pytest.raises(SuiteError, match="no item"):
        store_published_file(Store(tmp_path), read_published_cmi("f.json", {}))
    assert read.get_store_totals(Store(tmp_path))["runs"] == 0


@pytest.mark.soak
def test_the_command_stores_each_file_once_and_warns_of_its_double(tmp_path: Path) -> None:
    one, copy = tmp_path / "one.json", tmp_path / "copy.json"
    for path in (one, copy):
        path.write_text(json.dumps({"a": [row()]}), encoding="utf-8")

    def told(*args: str) -> str:
        result = CliRunner().invoke(app, ["mediation", "import", *args])
        assert result.exit_code == 0, result.output
        return " ".join(result.output.split())

    assert "run import-" not in told(str(one), "--no-store") and not Store().path.exists()
    both = told(str(one), str(copy))
    assert both.count("Stored: run import-") == 1 and "hold the same rows; count them once" in both
    assert "In the store already: run import-" in told(str(one)) and "Duplicate" not in told(
        str(one)
    )
    assert "copy.json holds the rows of one, run import-" in told(str(copy))
    assert read.get_store_totals(Store())["runs"] == 1
    assert json.loads(CliRunner().invoke(app, ["mediation", "import", str(one), "--json"]).output)[
        "files"
    ][0]["run"]


RECORD = {"question": "Q", "CMI": 0.5, "intervention_records": [row(), row(0.0, 0.0, 0.0, 1, 1.0)]}
SUMMARY = [{"ID": "a", "CMI_mean": 0.25, "Bypass": 0.75}, {"ID": "b", "CMI_mean": 0.9}]


@pytest.mark.parametrize(
    ("name", "content", "items"),
    [
        ("suite.json", [{"id": "a", **RECORD}, {"id": "b", **RECORD}], ["a", "b"]),
        ("results.json", {"CMI": 0.5, "records": [RECORD]}, ["record-0000"]),
        ("single.json", RECORD, ["single"]),
        ("example.json", RECORD["intervention_records"], ["example"]),
        ("layers.json", {"a": RECORD["intervention_records"]}, ["a"]),
    ],
)
def test_every_published_form_gives_the_same_rows(
    name: str, content: Any, items: list[str], tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(json.dumps(content, indent=1))
    file = read_published_cmi(name, read_cmi_file(path).rows_by_item)
    assert list(file.n_rows_by_item) == items
    assert [found.cmi for found in file.rows] == [0.5, None] * len(items)


def test_json_lines_and_their_defects(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(json.dumps(RECORD) + "\n\n" + json.dumps(RECORD) + "\n")
    assert list(read_cmi_file(path).rows_by_item) == ["record-0000", "record-0001"]
    path.write_text(json.dumps(RECORD) + "\n{\n")
    with pytest.raises(SuiteError, match=r"results\.jsonl:2: is not JSON"):
        read_cmi_file(path)
    path.write_text('{"text": "hello"}\n')
    with pytest.raises(SuiteError, match="no form that is known"):
        read_cmi_file(path)
    path.write_text(json.dumps({"id": "a", **RECORD}) + "\n" + json.dumps({"id": "a", **RECORD}))
    with pytest.raises(SuiteError, match="has the id 'a' of an earlier record"):
        read_cmi_file(path)


def test_a_summary_is_held_against_the_rows_and_the_folder_names_the_model(tmp_path: Path) -> None:
    folder = tmp_path / "qwen"
    folder.mkdir()
    suite, summary = folder / "cmi_suite.json", folder / "cmi_summary_table.json"
    suite.write_text(json.dumps([{"id": "a", **RECORD}, {"id": "b", **RECORD}]))
    summary.write_text(json.dumps(SUMMARY))
    done = cotlab("mediation", "import", suite, summary, store=tmp_path / "store")
    assert (
        f"Summary: {summary} has the means of 2 items; 1 are those of {suite} if its 2 of 4"
        " undefined rows count as 0. They are not stored." in done.stdout
    )
    assert "qwen on cmi_suite" in done.stdout and "0.500, of 50.0% of the rows" in done.stdout
    alone = cotlab("mediation", "import", summary, store=tmp_path / "store", code=2)
    assert "holds means without drops: import it together with the file of its rows" in alone.stderr


def test_the_screen_shows_one_warning_of_a_kind() -> None:
    told = first_warnings_by_kind(["Layer count: a.", "Duplicate file: b.", "Layer count: c."])
    assert told == ("Layer count: a. 1 more like this.", "Duplicate file: b.")
