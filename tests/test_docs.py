"""What the documentation promises: commands exist and run, code blocks work, links lead somewhere,
generated pages are current."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from cotlab.cli.main import app

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
README = (ROOT / "README.md").read_text("utf-8")
FENCE = re.compile(r"^( *)```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
"""A fenced block: ```python title="my_scorer.py"."""
EXIT_CODES = {"cotlab decide tutorial": 6}
"""Commands of the tutorial that end with another code than 0, as its text says."""


def blocks(page: Path, language: str) -> Iterator[tuple[str, str]]:
    """Yield title and code of each fenced block of a language."""
    for _, kind, title, code in FENCE.findall(page.read_text("utf-8")):
        if kind == language:
            yield title, code


def commands(page: Path) -> list[str]:
    """Return the lines of a page's bash blocks that call cotlab, without comments."""
    lines = (line for _, code in blocks(page, "bash") for line in code.splitlines())
    return [line.split("  #")[0].strip() for line in lines if line.strip().startswith("cotlab")]


def example() -> str:
    """Return the Python example of the README."""
    return next(code for _, code in blocks(ROOT / "README.md", "python") if "run_suite" in code)


def test_the_readme_has_a_picture() -> None:
    (picture,) = re.findall(r"!\[[^]]+\]\(([^)]+)\)", README)
    assert (ROOT / picture).stat().st_size > 10_000


def test_the_example_is_short() -> None:
    assert len(example().strip().splitlines()) <= 15


@pytest.mark.soak
def test_the_example_runs_inside_an_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path))
    scope: dict[str, object] = {}

    async def inside() -> None:
        exec(compile(example(), "README.md", "exec"), scope)  # our own text, read from the checkout

    asyncio.run(inside())
    assert 0 <= scope["result"].rrr <= 1  # type: ignore[attr-defined]


@pytest.mark.soak
def test_the_example_runs_in_a_process_of_its_own(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", example()],
        cwd=ROOT,
        env={**os.environ, "COTLAB_STORE": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"^RRR 0\.\d{3}, 95 % interval \(", done.stdout, re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_command_and_flag_exists(page: Path) -> None:
    root = typer.main.get_command(app)
    for line in commands(page):
        words = shlex.split(line.replace("…", ""))[1:]
        command = root
        while words and hasattr(command, "commands") and not words[0].startswith("-"):
            name = words.pop(0)
            assert name in command.commands, f"{page.name}: {line}: no command {name}"
            command = command.commands[name]
        known = {
            flag
            for parameter in command.params
            for flag in (*parameter.opts, *parameter.secondary_opts)
        } | {"--help", "--version"}
        flags = {word.split("=")[0] for word in words if word.startswith("-") and len(word) > 1}
        assert flags <= known, f"{page.name}: {line}: {flags - known}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not target.startswith(("http://", "https://", "mailto:", "#")):
            assert (page.parent / target.split("#")[0]).exists(), f"{page.name}: {target}"


def test_every_page_is_reached_from_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8")
    generated = {"metrics", "decisions"}  # their index names each page
    for page in (ROOT / "docs").rglob("*.md"):
        path = page.relative_to(ROOT / "docs").as_posix()
        if path.split("/")[0] in generated and page.name != "index.md":
            assert f"({page.name}" in (page.parent / "index.md").read_text("utf-8"), path
        else:
            assert path in navigation, path


def test_the_generated_pages_are_current() -> None:
    done = subprocess.run(
        [sys.executable, "docs/generate.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_commands_are_targets_of_the_makefile() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    contributing = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    assert set(re.findall(r"^make (\w+)", README + contributing, re.MULTILINE)) <= targets
    assert set(re.findall(r"`make (\w+)`", README + contributing)) <= targets


def test_every_organism_is_in_the_table_of_its_page() -> None:
    from cotlab.core.resources import shipped_organisms

    page = (ROOT / "docs" / "organisms.md").read_text("utf-8")
    rows = re.findall(r"^\| `?([\w-]+)`? \| \d", page, re.MULTILINE)
    assert set(shipped_organisms()) <= set(rows)


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """A folder as pip would leave it: the modules of docs/extend and their metadata."""
    folder = tmp_path / "site"
    info = folder / "my_plugin-0.1.dist-info"
    info.mkdir(parents=True)
    entries = ""
    for name in ("metric", "provider"):
        page = ROOT / "docs" / "extend" / f"{name}.md"
        ((title, code),) = blocks(page, "python")
        (folder / title).write_text(code)
        ((_, toml),) = blocks(page, "toml")
        group, line = re.findall(r'"(cotlab\.\w+)"\]\n(.+)', toml)[0]
        entries += f"[{group}]\n{line.replace(chr(34), '')}\n\n"
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-plugin\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text(entries)
    return folder


def test_the_metric_and_the_provider_of_the_pages_run(plugin: Path, tmp_path: Path) -> None:
    suite = tmp_path / "suite.jsonl"
    (example_line,) = (code for _, code in blocks(ROOT / "docs/guides/suites.md", "json"))
    suite.write_text(example_line)
    done = subprocess.run(
        [sys.executable, "-m", "cotlab", "run", "--task-suite", str(suite), "--provider", "mirror"]
        + ["--model", "any", "--scorer", "repeats", "--run-id", "mine"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{plugin}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"repeats_question.*1\.000", done.stdout)


def test_the_example_on_one_item_finds_the_false_step() -> None:
    code = next(
        code for _, code in blocks(ROOT / "docs/reference/python.md", "python") if "flags(" in code
    )
    scope: dict[str, object] = {}
    exec(compile(code, "python.md", "exec"), scope)  # our own text, read from the checkout
    assert scope["links"].status == "ok"  # type: ignore[attr-defined]
    assert scope["links"].value < 1  # type: ignore[attr-defined]


def test_the_examples_of_the_extension_pages_pass_the_linters(tmp_path: Path) -> None:
    for page in sorted((ROOT / "docs" / "extend").glob("*.md")):
        for title, code in blocks(page, "python"):
            if title.startswith(("my_", "pages/")):
                (tmp_path / Path(title).name).write_text(code)
    assert len(list(tmp_path.iterdir())) == 4
    config = ["--config", str(ROOT / "pyproject.toml"), "--no-cache"]
    for command in (["ruff", "check", *config], ["ruff", "format", "--check", *config]):
        done = subprocess.run(
            [sys.executable, "-m", *command, str(tmp_path)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout


def test_the_figure_of_the_page_draws() -> None:
    import pandas as pd

    ((_, code),) = blocks(ROOT / "docs" / "extend" / "figure.md", "python")
    scope: dict[str, object] = {}
    exec(compile(code, "figure.md", "exec"), scope)  # our own text, read from the checkout
    table = pd.DataFrame({"model": ["a"], "point": [3.0], "lo": [2.0], "hi": [4.0], "n": [5]})
    drawn = scope["reply_words"](table)  # type: ignore[operator]
    assert list(drawn.data[0].y) == [3.0]


def test_the_page_of_the_page_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from streamlit.testing.v1 import AppTest

    monkeypatch.setenv("COTLAB_STORE", str(tmp_path / "store"))
    code = next(
        code
        for title, code in blocks(ROOT / "docs" / "extend" / "page.md", "python")
        if title == "pages/lengths.py"
    )
    page = tmp_path / "lengths.py"
    page.write_text(code)
    main = (
        "import streamlit as st\nfrom pathlib import Path\n"
        f"others = sorted(Path({str(ROOT / 'pages')!r}).glob('*.py'))\n"
        f"page = st.Page({str(page)!r}, default=True)\n"
        "st.navigation([page, *(st.Page(other) for other in others)]).run()\n"
    )
    opened = AppTest.from_string(main, default_timeout=300).run()
    assert not opened.exception


@pytest.mark.soak
def test_the_tutorial_works_as_written(tmp_path: Path) -> None:
    env = {**os.environ, "COTLAB_STORE": str(tmp_path / "store"), "COLUMNS": "160"}
    (tmp_path / "docs").symlink_to(
        ROOT / "docs"
    )  # what the commands write stays out of the checkout
    printed = ""
    for line in commands(ROOT / "docs" / "tutorial.md"):
        done = subprocess.run(
            [sys.executable, "-m", "cotlab", *shlex.split(line)[1:]],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == EXIT_CODES.get(line, 0), f"{line}\n{done.stdout}\n{done.stderr}"
        printed += done.stdout
    assert re.search(r"answer_change +│ mode=corrupt +│ +1\.000 │ +\[0\.912, 1\.000\]", printed)
    assert re.search(r"answer_change +│ mode=corrupt +│ +0\.000 │ +\[0\.000, 0\.088\]", printed)
    assert "100 new labels" in printed
    assert re.search(r"Released 7\d", printed)
