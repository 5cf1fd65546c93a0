"""The report of a run on one page: its numbers are those of report.json, its texts are text, it
loads nothing, and its PDF is one sheet of A4."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

import cotlab
from cotlab.analysis.report import build_report
from cotlab.analysis.verdict.wording import percent_number
from cotlab.cli.main import app
from cotlab.export.chrome import find_chrome, print_page
from cotlab.export.run_report.drawing import (
    SharePoint,
    ShareRow,
    ShareSeries,
    draw_position_chart,
    draw_share_chart,
    text_width,
)
from cotlab.export.run_report.page import MAX_NAME_CHARS, report_html
from cotlab.run import launch
from cotlab.run.config import read_config
from cotlab.store.database import Store
from tests.support import hostile

SVG = "{http://www.w3.org/2000/svg}"
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
    drawings = {attrs["aria-label"] for tag, attrs in page.tags if tag == "svg"}
    labels = [label for label in drawings if label and ". " in label]
    drawn = dict(part.split(": ", 1) for label in labels for part in label.split("; "))
    drawn = {name.split(". ")[-1]: text for name, text in drawn.items()}
    estimates = {
        ("bypass-b, this run", "answer_change", ("mode", "corrupt")),
        ("control, this run", "answer_change", ("mode", "paraphrase")),
        ("answer right", "baseline_correct", ("chain", "reference")),
    }
    for label, metric, (name, value) in estimates:
        (found,) = (
            e
            for e in report["estimates"]
            if e["metric"] == metric and e["facet"].get(name) == value
        )
        point, lo, hi = (percent_number(found[end]) for end in ("point", "lo", "hi"))
        assert drawn[label] == f"{point} [{lo}, {hi}]", label
    shares = [row["mean_ccs"] for row in sorted_positions(report)]
    assert drawn["states something else"] == ", ".join(f"{100 * share:.1f}" for share in shares)
    shipped = json.loads((Path(cotlab.__file__).parent.parent / "data/validation.json").read_text())
    reference = shipped["metrics"]["answer_change"]["organisms"]["r50"]
    point, lo, hi = (percent_number(reference[end]) for end in ("point", "lo", "hi"))
    assert drawn["r50"] == f"{point} [{lo}, {hi}]"


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
    assert all(attrs.get("role") == "img" and attrs.get("aria-label") for attrs in drawings)


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


ROWS = [
    ShareRow("faithful-a", SharePoint(100, 96.3, 100), "100 [96.3, 100]"),
    ShareRow(
        "a name that is much too long for its column", SharePoint(50, 1, 99), "50.0 [1.0, 99.0]"
    ),
    ShareRow("<b>&", SharePoint(0, 0, 3.7), "0 [0, 3.7]", "diamond", note="n = 30"),
    ShareRow("no interval", SharePoint(82, None, None), "82.0, no interval", "open circle"),
]


def texts_of(svg: str) -> list[tuple[str, float, float, float, float]]:
    """Each text with its box: left, top, right, bottom, by the widths that the drawing uses."""
    boxes = []
    for node in ElementTree.fromstring(svg.replace("<svg ", f'<svg xmlns="{SVG[1:-1]}" ', 1)).iter(
        f"{SVG}text"
    ):
        size, text = float(node.get("font-size", 0)), node.text or ""
        x, y, width = float(node.get("x", 0)), float(node.get("y", 0)), text_width(text, size)
        left = x - {"start": 0, "middle": 0.5, "end": 1}[node.get("text-anchor", "start")] * width
        boxes.append((text, left, y - 0.75 * size, left + width, y + 0.22 * size))
    return boxes


@pytest.mark.parametrize("order", [1, -1])
def test_no_two_texts_of_a_chart_cross_and_all_lie_within(order: int) -> None:
    many = tuple(SharePoint(i * 5.0, i * 4.0, i * 5 + 4.0) for i in range(20))
    series = [ShareSeries(f"series {k}", many, tuple(range(1000, 1020))) for k in range(3)]
    for svg in (
        draw_share_chart(ROWS[::order], "% of steps", "rows"),
        draw_position_chart(series, "by position"),
    ):
        height = float(re.search(r'viewBox="0 0 344 ([\d.]+)"', svg)[1])  # type: ignore[index]
        boxes = texts_of(svg)
        for i, (_, left, top, right, bottom) in enumerate(boxes):
            assert left >= -0.5 and right <= 344.5 and top >= 0 and bottom <= height, boxes[i]
            for other in boxes[i + 1 :]:
                is_apart = (
                    right <= other[1] or other[3] <= left or bottom <= other[2] or other[4] <= top
                )
                assert is_apart, (boxes[i], other)


def test_marks_stand_where_the_shares_are() -> None:
    svg = draw_share_chart([ShareRow("a", SharePoint(25, 0, 50), "25.0 [0, 50.0]")], "%", "rows")
    (circle,) = re.findall(r'<circle cx="([\d.]+)"', svg)
    # the axis goes from 124 to 328: a quarter is 51
    assert float(circle) == 124 + 51
    lines = re.findall(r'<line x1="([\d.]+)" x2="([\d.]+)" [^>]*stroke="#0072B2"', svg)
    assert ("124.00", "226.00") in lines
