"""Every function of a page checks the user's role before it writes, starts or stops anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.calls import Function, functions, writers

ROOT = Path(__file__).parents[2]
NEED = "cotlab.ui.access.require_role"
DOORS = ("cotlab.ui.new_run.processes", "cotlab.ui.cached")
"""Modules that pages write through: their callers ask."""
BESIDES = ("cotlab.run.plan.check_connection", "cotlab.run.server_check.check_model")
"""Reads, but sends a key to a server that the caller names."""
APART = ("cotlab.store.database.Store", "cotlab.store.older", "cotlab.ui", "pages")
"""Opening a store may bring it up to date: that is no act of whoever looks at it."""
HARMLESS = frozenset(
    {
        "cotlab.store.log.open_log",
        "cotlab.store.live.LiveRunStore.__init__",
        "cotlab.store.responses.ResponseLog.__init__",
        # keeps what follows from a run that has ended, and changes nothing that anybody did
        "cotlab.store.run_results.keep_results",
    }
)


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def unasked(function: Function, writing: set[str]) -> list[str]:
    """Return the calls by which a function of a page writes before it checks the role."""
    asked = min((line for line, full in function.calls if full == NEED), default=None)
    by = [
        (line, full)
        for line, full in function.calls
        if full in writing or full in BESIDES or full.rsplit(".", 1)[-1] == "writing"
    ]
    return [
        f"{function.name}, line {line}: {full}"
        for line, full in by
        if asked is None or asked >= line
    ]


@pytest.fixture(scope="module")
def package() -> dict[str, Function]:
    paths = [*(ROOT / "cotlab").rglob("*.py"), *(ROOT / "pages").glob("*.py")]
    return {found.name: found for path in paths for found in functions(path, module_of(path))}


def is_page(name: str) -> bool:
    return name.startswith(("cotlab.ui.", "pages.")) and not name.startswith(
        tuple(f"{door}." for door in DOORS)
    )


def writing_of(package: dict[str, Function]) -> set[str]:
    below = {
        name: found
        for name, found in package.items()
        if not name.startswith(tuple(f"{apart}." for apart in APART))
        or name.startswith(tuple(f"{door}." for door in DOORS))
    }
    return writers(below, HARMLESS)


def test_every_write_of_a_page_asks_first(package: dict[str, Function]) -> None:
    writing = writing_of(package)
    assert [
        line for name, found in package.items() if is_page(name) for line in unasked(found, writing)
    ] == []


def test_what_writes_is_found(package: dict[str, Function]) -> None:
    known = {
        "cotlab.ui.new_run.processes.spawn_run",
        "cotlab.ui.new_run.processes.spawn_resume",
        "cotlab.ui.new_run.processes.save_suite",
        "cotlab.ui.cached.request_stop",
        "cotlab.store.backup.back_up",
        "cotlab.store.write.add_suite",
        "cotlab.run.summary.summarise",
    }
    found = writing_of(package)
    assert known <= found
    reading = {
        "cotlab.store.read.list_runs",
        "cotlab.ui.cached.live_run",
        "cotlab.ui.cached.stored_suite",
        "cotlab.analysis.report.build_report",
    }
    assert not found & reading
    asking = {
        name
        for name, function in package.items()
        if is_page(name) and NEED in {full for _, full in function.calls}
    }
    assert {
        "cotlab.ui.home.render_first_use",
        "cotlab.ui.runs.header._stop_run",
        "cotlab.ui.runs.header._resume_run",
        "cotlab.ui.suites.render_upload",
    } <= asking


PAGE = """
import streamlit as st
from cotlab.store import labels
from cotlab.ui import access, cached
from cotlab.ui.new_run.processes import spawn_run

def forgets():
    if st.button("x"):
        spawn_run(cached.store(), "r", {{}})

def asks_late():
    spawn_run(cached.store(), "r", {{}})
    access.require_role("admin")

def hides():
    access.require_role("admin")
    st.button("x", on_click=lambda: spawn_run(cached.store(), "r", {{}}))

def within():
    access.require_role("admin")
    def chose():
        with cached.store().writing() as connection:
            labels.add_labels(connection, ())
    st.button("x", on_click=chose)

def asks():
    if st.button("x"):
        access.require_role("admin")
        spawn_run(cached.store(), "r", {{}})

spawn_run(cached.store(), "r", {{}})
"""


def test_a_forgotten_question_is_found(package: dict[str, Function], tmp_path: Path) -> None:
    (tmp_path / "page.py").write_text(PAGE.format(), "utf-8")
    writing = writing_of(package)
    told = {
        found.name
        for found in functions(tmp_path / "page.py", "pages.page")
        if unasked(found, writing)
    }
    names = {"forgets", "asks_late", "hides.<lambda>", "within.chose", "<module>"}
    assert {name.removeprefix("pages.page.") for name in told} == names
