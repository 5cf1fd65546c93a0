"""Published CMI rows by hand: the formula, what is undefined, the warnings, and files that mean harm."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cotlab.cli.main import app
from cotlab.core.errors import ConfigError, SuiteError
from cotlab.metrics.mediation_import import SMALL, ZERO, published_cmi, published_summary, published_warnings
from cotlab.suites.import_cmi import read_cmi


def row(cot: Any = 3.0, control: Any = 1.0, score: Any = 0.5, layer: Any = 0, bypass: Any = 0.5) -> dict[str, Any]:
    return {"layer": layer, "cot_drop": cot, "control_drop": control, "cmi_score": score, "bypass_score": bypass}


@pytest.mark.parametrize(
    ("cot", "control", "cmi", "reason"),
    [
        (3.0, 1.0, 0.5, None),  # (3 - 1) / (3 + 1)
        (1.0, 3.0, 0.0, None),  # max(0, 1 - 3)
        (2.0, -5.0, 1.0, None),  # a control that helps counts as 0
        (0.0, 0.0, None, ZERO),
        (-1.0, -2.0, None, ZERO),
        (0.006, 0.003, None, SMALL),  # .009 < .01
        (0.01, 0.0, 1.0, None),  # at the threshold
    ],
)
def test_formula(cot: float, control: float, cmi: float | None, reason: str | None) -> None:
    (found,) = published_cmi("f", {"a": [row(cot, control)]}).rows
    assert (found.cmi, found.reason) == (cmi, reason)
    assert found.bypass == (None if cmi is None else 1 - cmi)


def test_the_published_value_stays_beside_the_recomputed_one() -> None:
    (off, small, none) = published_cmi("f", {"a": [row(score=0.75), row(0.006, 0.002), row(0, 0, 0)]}).rows
    assert (off.published_cmi, off.difference) == (0.75, 0.25)
    assert small.cmi is None and small.difference == pytest.approx(0.0)  # (.006 - .002) / .008 = .5
    assert (none.published_cmi, none.difference) == (0.0, None)


def test_threshold_is_a_parameter_and_zero_stays_zero() -> None:
    rows = published_cmi("f", {"a": [row(0.006, 0.002), row(0, 0)]}, least_drop=0).rows
    assert [r.reason for r in rows] == [None, ZERO]
    for wrong in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ConfigError, match="threshold"):
            published_cmi("f", {}, least_drop=wrong)


def test_summary_pools_rows_and_resamples_items() -> None:
    found = published_summary(published_cmi("f", {"a": [row(), row(layer=1)], "b": [row(1, 0, 1), row(0, 0, 0)]}))
    assert (found.rows, found.items, found.layers, found.defined, found.zero, found.small) == (4, 2, 2, 3, 1, 0)
    assert found.mean.point == pytest.approx(2 / 3) and found.mean.n == 2  # (.5 + .5 + 1) / 3
    assert (found.within, found.compared) == (3, 3)
    empty = published_summary(published_cmi("f", {}))
    assert empty.mean.point is None and empty.compared == 0


def test_warnings() -> None:
    same, spans = {"a": [row()]}, {"a": [{**row(), "layers": [0]}]}
    del spans["a"][0]["layer"]
    one, two = published_cmi("one", same), published_cmi("two", spans)
    assert published_warnings([one]) == ()
    assert published_warnings([one, two]) == ("Duplicate file: one and two hold the same rows; count them once.",)
    renamed = published_cmi("three", {"z": [row()]})
    assert "under other names" in published_warnings([one, renamed])[0]
    more = published_cmi("more", {"a": [row(score=0.53), row()], "b": [row(0, 0, 0, bypass=1)]})
    told = published_warnings([one, more])
    assert [line.split(":")[0] for line in told] == ["Layer count", "Published CMI", "Undefined", "Layer count"]
    assert "item 'a' row 0 by +0.030" in told[1] and "(1 and 2)" in told[3]


@pytest.mark.parametrize(
    "entry",
    [
        7, {}, row(cot="3"), row(cot=None), row(control=True), row(cot=float("nan")), row(cot=float("inf")), row(cot=10**400),
        row(score=1e300), row(bypass=[]), row(layer=-1), row(layer=1.5), row(layer=True), row(layer=10**400),
        {**row(), "layers": [0]}, {**row(), "cmi_raw": "x"},
    ],
)  # fmt: skip
def test_a_malformed_row_is_named(entry: object) -> None:
    with pytest.raises(SuiteError, match=r"^f\.json: item 'a', row 1: "):
        published_cmi("f.json", {"a": [row(), entry]})


@pytest.mark.parametrize("parsed", [[], None, 3, {"a": {}}, {"a": None}])
def test_another_form_is_refused(parsed: object) -> None:
    with pytest.raises(SuiteError, match="list of rows"):
        published_cmi("f", parsed)


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[]", b"\xff\xfe", b"9" * 5000, b'{"a":' + b"9" * 5000 + b"}", b"[" * 200_000, b'{"a": [], "a": []}']
)
def test_hostile_files(raw: bytes, tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_bytes(raw)
    with pytest.raises(SuiteError, match="f.json") as told:
        read_cmi(path)
    assert len(str(told.value).splitlines()) == 1


def test_no_file(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.json", "a\0b"):
        with pytest.raises(SuiteError):
            read_cmi(path)


def test_command(tmp_path: Path) -> None:
    source, output = tmp_path / "f.json", tmp_path / "rows.csv"
    source.write_text(json.dumps({"=1+1": [row(), row(0, 0, 0, bypass=1)]}), encoding="utf-8")
    shown = CliRunner().invoke(app, ["mediation", "import", str(source), "--output", str(output)])
    assert shown.exit_code == 0 and "zero total drop" in shown.output and "warning: Undefined: 1 of 2 rows" in shown.output
    with output.open(encoding="utf-8", newline="") as stream:
        written = list(csv.DictReader(stream))
    assert [line["item"] for line in written] == ["'=1+1", "'=1+1"]
    assert [line["cmi"] for line in written] == ["0.5", ""]
    found = json.loads(CliRunner().invoke(app, ["mediation", "import", str(source), "--json"]).output)
    assert found["files"][0]["zero"] == 1 and len(found["warnings"]) == 1
    refused = CliRunner().invoke(app, ["mediation", "import", str(source), "--output", str(source)])
    assert isinstance(refused.exception, ConfigError)
