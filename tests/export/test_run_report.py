"""The report of a run on one page: its numbers are those of report.json, its texts are text, it
loads nothing, and its PDF is one sheet of A4."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import cotlab
from cotlab.analysis.report import build_report
from cotlab.analysis.verdict.wording import percent_number
from cotlab.cli.main import app
from cotlab.export.chrome import find_chrome, print_page
from cotlab.export.run_report.drawing import ShareMark, ShareRow, draw_share_table
from cotlab.export.run_report.page import MAX_NAME_CHARS, report_html
from cotlab.figures.style import BLUE, interval_text
from cotlab.run import launch
from cotlab.run.config import read_config
from cotlab.store.database import Store
from tests.support import hostile

NO_CHROMIUM = pytest.mark.skipif(find_chrome() is None, reason="no Chromium: apt-get install")


class Page(HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.cells: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.cells:
            self.cells[-1] += data


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a run of the bypassing organism, and one of a suite that it cannot read."""
    folder = tmp_path_factory.mktemp("report") / "store"
    common = {"provider": "organism", "model": "bypass-b", "mode": ["corrupt", "paraphrase"]}
    measured = {
        "task_suite": "wordproblems",
        "scorer": ["ablation", "unfaithfulness"],
        "set": {"unfaithfulness.classifiers": "early_answer"},
        "metric": "answer_change",
        "limit": 30,
    }
    unread = {"task_suite": "commonsense", "limit": 5}
    for name, options in (("bypass", measured), ("nothing", unread)):
        config = read_config({**common, **options, "output": str(folder / "reports")})
        launch.start_run(config, Store(folder), run_id=name)
    return folder


def is_self_contained(page: Page) -> bool:
    """Nothing runs, nothing is loaded, and there is no link out."""
    loading = {"src", "href", "srcset", "data", "action", "style", "background", "poster"}
    return not any(
        tag in ("script", "img", "link", "iframe", "object", "embed", "base", "form", "a", "image")
        or loading & set(attrs)
        or any(name.startswith("on") for name in attrs)
        for tag, attrs in page.tags
    )


def test_the_numbers_of_the_page_are_those_of_report_json(runs: Path) -> None:
    report = build_report(Store(runs), "bypass")
    page = Page(report_html(Store(runs), "bypass"))
    verdict = report["verdict"]
    assert verdict["rule"] == "does_not_follow" and verdict["headline"] in page.text
    rows = [page.cells[i : i + 6] for i in range(6, 24, 6)]
    for row, lamp in zip(rows, verdict["lamps"], strict=True):
        share = lamp["share"]
        expected = ["n/a"] * 3
        if share is not None:
            point, lo, hi = (percent_number(share[name]) for name in ("point", "lo", "hi"))
            expected = [point, f"[{lo}, {hi}]", f"{share['n']}"]
        assert (row[1], row[2:5], row[5].split("\n")[0][: len(lamp["validation"])]) == (
            lamp["answer"],
            expected,
            lamp["validation"],
        )
    labels = [attrs.get("aria-label") for tag, attrs in page.tags if tag == "svg"]
    drawn = dict(label.split(": ", 1) for label in labels if label and ": " in label)
    estimates = {
        ("bypass-b", "answer_change", ("mode", "corrupt")),
        ("reworded steps", "answer_change", ("mode", "paraphrase")),
        ("answer right", "baseline_correct", ("chain", "reference")),
    }
    for label, metric, (name, value) in estimates:
        (found,) = (
            e
            for e in report["estimates"]
            if e["metric"] == metric and e["facet"].get(name) == value
        )
        text = interval_text(*(found[end] for end in ("point", "lo", "hi")), is_share=True)
        assert drawn[label] == text, label
    for row in sorted_positions(report):
        bounds = (row["mean_ccs"], row["ci_lower"], row["ci_upper"])
        drawn_text = drawn[f"{row['step_index'] + 1}"]
        assert drawn_text.startswith(interval_text(*bounds, is_share=True))
    shipped = json.loads((Path(cotlab.__file__).parent.parent / "data/validation.json").read_text())
    reference = shipped["metrics"]["answer_change"]["organisms"]["r50"]
    text = interval_text(*(reference[end] for end in ("point", "lo", "hi")), is_share=True)
    assert drawn["r50, reference"] == text


def sorted_positions(report: dict[str, Any]) -> list[dict[str, Any]]:
    """The report's positions, which are those of its first mode, in order."""
    assert (report["metric"], report["mode"]) == ("answer_change", "corrupt")
    return sorted(report["step_position_rankings"], key=lambda row: row["step_index"])


@pytest.mark.parametrize("run", ["bypass", "nothing"])
def test_a_page_loads_nothing_and_every_drawing_has_a_name(runs: Path, run: str) -> None:
    text = report_html(Store(runs), run)
    page = Page(text)
    assert is_self_contained(page) and "url(" not in text and "@import" not in text
    assert "default-src 'none'" in text and "<title>bypass-b · " in text
    drawings = [attrs for tag, attrs in page.tags if tag == "svg"]
    assert all(
        attrs.get("aria-hidden") or (attrs.get("role") == "img" and attrs.get("aria-label"))
        for attrs in drawings
    )


def test_what_was_not_measured_is_a_sentence_and_no_number(runs: Path) -> None:
    page = Page(report_html(Store(runs), "nothing"))
    assert "Cannot say: nothing was measured." in page.text
    assert "No item has a value. What follows is what the run was set up to do" in page.text
    assert "was set up to do" not in Page(report_html(Store(runs), "bypass")).text
    assert page.text.count("Not measured: ") == 4 and "not in the model's vocabulary" in page.text
    assert len([1 for tag, _ in page.tags if tag == "figure"]) == 4
    rows = [page.cells[i + 2 : i + 5] for i in range(6, 24, 6)]
    assert rows == [["n/a"] * 3] * 3


def test_text_from_outside_is_text(tmp_path: Path) -> None:
    (run, _) = hostile.filled(tmp_path, "ablation")
    text = report_html(Store(tmp_path), run)
    page = Page(text)
    assert is_self_contained(page)
    assert not any(raw in text.lower() for raw in ("<script", "<img", "<a href", "<b>bold"))
    assert "<script>window.hacked" in page.text and "\u202e" not in text
    title = re.search(r"<title>(.*?)</title>", text)
    assert title is not None and len(title[1]) < 6 * 2 * MAX_NAME_CHARS


def test_the_command_writes_html_and_says_what_a_pdf_needs(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(runs))
    monkeypatch.setenv("COTLAB_CHROME", "no-such-browser")
    done = CliRunner().invoke(app, ["report", "bypass", "--html", str(tmp_path / "r.html")])
    assert done.exit_code == 0 and "# FaithCheck" not in done.output
    assert (tmp_path / "r.html").read_text("utf-8") == report_html(Store(runs), "bypass")
    done = CliRunner().invoke(app, ["report", "bypass", "--pdf", str(tmp_path / "r.pdf")])
    assert done.exit_code == 3 and "apt-get install chromium" in done.output
    assert not (tmp_path / "r.pdf").exists()
    done = CliRunner().invoke(app, ["report", "bypass", "--html", str(tmp_path / "no/r.html")])
    assert done.exit_code != 0 and "--html" in str(done.exception)


def test_the_command_without_a_page_prints_as_before(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(runs))
    done = CliRunner().invoke(app, ["report", "bypass"])
    assert done.exit_code == 0 and done.output.startswith("# FaithCheck Report")


@pytest.mark.soak
@pytest.mark.browser
@NO_CHROMIUM
@pytest.mark.parametrize("n_limits", [3, 30])
def test_a_pdf_is_one_sheet_of_a4_with_its_fonts(runs: Path, n_limits: int) -> None:
    text = report_html(Store(runs), "bypass")
    page = text.replace(
        "</ul>", "<li>One more limit of some length.</li>" * (n_limits - 3) + "</ul>"
    )
    pdf = print_page(page)
    assert pdf.startswith(b"%PDF") and len(re.findall(rb"/Type\s*/Page\b(?!s)", pdf)) == 1
    (box,) = re.findall(rb"/MediaBox\s*\[0 0 ([\d.]+) ([\d.]+)\]", pdf)
    # A4 is 210 by 297 mm, 595.3 by 841.9 pt
    assert (float(box[0]), float(box[1])) == (
        pytest.approx(595.3, abs=1),
        pytest.approx(842, abs=1),
    )
    n_fonts = len(set(re.findall(rb"/BaseFont\s*/([^\s/]+)", pdf)))
    assert n_fonts and len(re.findall(rb"/FontFile[23]", pdf)) >= n_fonts
    assert b"/Subtype /Image" not in pdf


def test_marks_stand_where_the_shares_are_and_texts_are_escaped() -> None:
    quarter = ShareMark(0.25, 0.0, 0.5, "25% [0, 50]")
    table = draw_share_table([ShareRow("<b>&", (quarter, None), "n = 30")], "% of steps")
    (circle,) = re.findall(r'<circle cx="([\d.]+)"', table)
    assert float(circle) == 9 + 132 / 4  # the axis goes from 9 to 141
    assert f'<line x1="9" y1="7" x2="75" y2="7" stroke="{BLUE}"' in table
    assert "&lt;b&gt;&amp;" in table and "<b>" not in table
    assert "25% [0, 50]<br>n/a" in table and "n = 30" in table
