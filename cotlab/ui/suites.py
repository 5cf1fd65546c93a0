"""The page Suites: shipped and stored suites, their items, and the upload of a new one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd
import streamlit as st

from cotlab.analysis.verdict.wording import noun_count
from cotlab.core.errors import CotlabError, SuiteErrors
from cotlab.core.types import Suite
from cotlab.store import read
from cotlab.suites.importers.benchmarks import FAITHFUL_KEY, MISTAKE_KEY
from cotlab.suites.importers.door import ROWS, ROWS_TEXT, Form, detect_form
from cotlab.suites.importers.formats import IMPORT_FORMATS, import_suite_file
from cotlab.suites.jsonl import load_suite
from cotlab.suites.shipped import shipped_suites
from cotlab.suites.split import split_by_question
from cotlab.text.steps import split_steps
from cotlab.ui import access, cached, charts, components
from cotlab.ui.item.chain import TextRow, render_rows
from cotlab.ui.new_run import processes
from cotlab.ui.new_run.measures import LABELLED_CHAINS
from cotlab.ui.new_run.questions import QUESTION_PARAM
from cotlab.ui.pickers import select_option
from cotlab.ui.text import escape_markdown, shorten

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

COLUMN_LABELS = {
    "question": "Question",
    "answer": "Right answer",
    "options": "Options",
    "id": "Id",
    "category": "Category",
    "chain": "Chain",
    "chains": "Several chains",
    "model_answer": "Model's answer",
    "correct": "Its correctness",
}
"""Labels of what a column can hold."""


def suite_labels() -> dict[str, str]:
    """Return the label of every suite by its name (shipped) or digest (stored)."""
    shipped_labels = {name: f"{name} (shipped)" for name in shipped_suites()}
    shipped_digests = {shipped_suite(name).digest for name in shipped_labels}
    stored_labels = {
        row["digest"]: f"{row['name']} ({row['n']} items, {row['digest'][:8]})"
        for row in cached.read_once(read.list_suites).to_dict("records")
        if row["digest"] not in shipped_digests
    }
    return {**stored_labels, **shipped_labels}


@st.cache_data(show_spinner=False)
def shipped_suite(name: str) -> Suite:
    """Return a shipped suite."""
    return load_suite(shipped_suites()[name])


def load_chosen_suite(suite_key: str) -> Suite:
    """Return the suite that a key of ``suite_labels`` names."""
    return (
        shipped_suite(suite_key)
        if suite_key in shipped_suites()
        else cached.stored_suite(suite_key)
    )


def select_suite() -> Suite | None:
    """Choose a suite."""
    labels = suite_labels()
    if not labels:
        components.render_empty_state("There is no suite. Upload one.")
        return None
    chosen_key = select_option("Suite", labels, "suite", "wordproblems")
    suite = load_chosen_suite(chosen_key)
    render_suite_links(suite, "this suite", chosen_key)
    return suite


def has_labelled_chains(suite: Suite) -> bool:
    """Return whether labels of chains came with a suite."""
    return any(key in item.meta for item in suite.items for key in (MISTAKE_KEY, FAITHFUL_KEY))


def render_suite_links(suite: Suite, name: str, suite_key: str | None = None) -> None:
    """Show links to a new run on a suite; chains with labels can be measured without a model.

    ``suite_key`` is the suite's key of ``suite_labels``, its digest by default.
    """
    query = {"suite": suite_key or suite.digest}
    label = f"Run {escape_markdown(name)}"
    components.page_link("new_run", label, "play_arrow", {**query, QUESTION_PARAM: "change"})
    if has_labelled_chains(suite):
        components.page_link(
            "new_run",
            f"Measure the labelled chains of {escape_markdown(name)}, without a model",
            "rule",
            {**query, "measure": LABELLED_CHAINS},
        )


def render_suite(suite: Suite) -> None:
    """Show the digest, the chain lengths and the items of a suite."""
    step_counts = [len(item.steps) for item in suite.items if item.steps]
    n_categories = len({item.category for item in suite.items if item.category})
    steps_text = f"{min(step_counts)} to {max(step_counts)}" if step_counts else "n/a"
    components.show_numbers(
        (
            ("Items", str(len(suite.items))),
            ("With a chain", str(len(step_counts))),
            ("Steps per chain", steps_text),
            ("With an answer", str(sum(item.answer is not None for item in suite.items))),
            ("Categories", str(n_categories) if n_categories else "n/a"),
            ("With judged steps", str(sum(MISTAKE_KEY in item.meta for item in suite.items))),
        )
    )
    st.caption(f"SHA-256 of its items: {suite.digest}")
    if step_counts:
        lengths = pd.Series(step_counts, name="n_steps").value_counts().sort_index().reset_index()
        charts.show_figure("chain_lengths", lengths, key="lengths")
    else:
        st.caption("No item has a chain: a run measures the chains that the model writes.")
    render_preview(suite)


def render_preview(suite: Suite) -> None:
    """Show a suite's items, page by page."""
    st.header("Items")
    page_items = suite.items[components.page_slice(len(suite.items), "suite-page")]
    rows = [
        (i.id, i.answer or "n/a", len(i.steps), i.category, shorten(i.question, 140))
        for i in page_items
    ]  # the question last: it is what a narrow page cuts
    frame = pd.DataFrame(rows, columns=["id", "answer", "steps", "category", "question"])
    key = f"items-{suite.digest[:8]}-{page_items[0].id}"
    event = st.dataframe(
        frame, hide_index=True, key=key, on_select="rerun", selection_mode="single-row"
    )
    st.caption(f"{len(page_items)} of {len(suite.items)} items. Choose a row to read it.")
    if event.selection.rows:
        item = page_items[event.selection.rows[0]]
        answer = item.answer if item.answer is not None else "n/a: no ground truth"
        blocks = [
            TextRow(-1, "Question", item.question),
            *(TextRow(step.index, f"{step.index + 1}", step.text) for step in item.steps),
            TextRow(-2, "Answer", answer),
        ]
        render_rows(blocks, key=f"read-{suite.digest[:8]}-{item.id}")


class _Upload(NamedTuple):
    """What an uploaded file gives."""

    suite: Suite | None
    """Its good lines; None without any."""
    defects: tuple[str, ...]
    """What is wrong with the others, each defect with its lines."""
    rows: tuple[tuple[Any, ...], ...]
    """(line, field, message, text) of each defect."""


def render_upload() -> Suite | None:
    """Show what an uploaded file holds, store its suite on request and return it.

    None where nothing was stored.
    """
    if not access.has_role("admin"):
        st.info("A suite is stored for all users: uploading one needs the role admin.")
        return None
    file = st.file_uploader(
        "JSON, JSON Lines, CSV, Parquet or a log of Inspect",
        key="upload-file",
        help="A larger file: `cotlab suites import FILE --output SUITE`",
    )
    if file is None:
        return None
    if st.session_state.get("upload-shown") != file.file_id:  # what was chosen for another file
        for key in ("format", "count", *COLUMN_LABELS):
            st.session_state.pop(f"upload-{key}", None)
        st.session_state["upload-shown"] = file.file_id
    try:
        form = _render_form(file.name, _detect(file.file_id, file))
        upload = _read(file.file_id, form, file)
    except SuiteErrors as errors:
        st.error("\n".join(f"- {escape_markdown(text)}" for text in errors.groups[:10]))
        return None
    except CotlabError as error:
        st.error(escape_markdown(str(error)))
        return None
    n_items = len(upload.suite.items) if upload.suite else 0
    if upload.suite is not None:
        _show_first_items(upload.suite)
    if upload.defects:
        st.warning(
            "Lines that cannot be used:\n"
            + "\n".join(f"- {escape_markdown(text)}" for text in upload.defects[:10])
        )
        with st.expander("Show these lines"):
            frame = pd.DataFrame(upload.rows, columns=["line", "field", "message", "text"])
            components.show_table(frame, "upload-errors")
    if upload.suite is None:
        return None
    is_added = st.session_state.get("upload-added") == (file.file_id, upload.suite.digest)
    if not is_added:
        label = f"Add {noun_count(n_items, 'item')}"
        if not st.button(label, type="primary", key="upload-add"):
            return None
        access.require_role("admin")
        processes.save_suite(cached.store(), upload.suite)
        st.session_state["upload-added"] = file.file_id, upload.suite.digest
    st.success(f"Stored {noun_count(n_items, 'item')}.")
    render_suite_links(upload.suite, "this suite")
    return upload.suite


def _render_form(file_name: str, form: Form) -> Form:
    """Show what a file looks like, and inputs that say otherwise."""
    form_name = ROWS_TEXT if form.format == ROWS else form.format
    st.markdown(f"**{escape_markdown(file_name)}** looks like **{form_name}**")
    with st.expander("Another format, other columns", expanded=form.columns.question is None):
        chosen = st.selectbox(
            "Format", IMPORT_FORMATS, IMPORT_FORMATS.index(form.format), key="upload-format"
        )
        if chosen != ROWS:
            return form.corrected(chosen, {})
        named = form.columns.used
        names = {}
        for start in range(0, len(COLUMN_LABELS), 3):
            for cell, (role, label) in zip(
                st.columns(3), list(COLUMN_LABELS.items())[start : start + 3], strict=False
            ):
                options = list(dict.fromkeys(("", *form.fields, named.get(role, ""))))
                index = options.index(named.get(role, ""))
                names[role] = cell.selectbox(
                    label, options, index, key=f"upload-{role}", format_func=lambda n: n or "none"
                )
        columns: dict[str, Any] = names
        if names["options"]:
            count = st.segmented_control(
                "Whole-number answers count the options from",
                (0, 1),
                default=form.columns.count_from,
                key="upload-count",
            )
            columns = {**names, "count_from": count}
        form = replace(form, fields=(*form.fields, *named.values()))
        corrected = form.corrected(ROWS, columns)
    st.caption(escape_markdown(corrected.text))
    return corrected


def _show_first_items(suite: Suite) -> None:
    """Show the first items as they would be stored."""
    rows = [
        (
            shorten(item.id, 40),
            shorten(item.question, 120),
            "n/a" if item.answer is None else shorten(item.answer, 40),
            shorten(", ".join(map(str, item.meta.get("choices") or ())), 60),
            str(len(item.steps)) if item.steps else "none",
        )
        for item in suite.items[:5]
    ]
    frame = pd.DataFrame(rows, columns=["id", "question", "answer", "options", "steps"])
    components.show_table(frame, "upload-items")


@st.cache_data(show_spinner="Reading the file", max_entries=2)
def _detect(file_id: str, _file: UploadedFile) -> Form:
    with _as_file(_file) as path:
        return detect_form(path)


@st.cache_data(show_spinner="Reading the file", max_entries=2)
def _read(file_id: str, form: Form, _file: UploadedFile) -> _Upload:
    with _as_file(_file) as path:
        try:
            return _Upload(import_suite_file(form, path, split=split_steps), (), ())
        except SuiteErrors as errors:
            if not errors.n_good_lines:
                raise
            suite = import_suite_file(form, path, split=split_steps, good_lines=True)
            rows = [(e.line, e.field, e.message, e.raw) for e in errors.errors]
            return _Upload(suite, tuple(errors.groups), tuple(rows))


@contextmanager
def _as_file(file: UploadedFile) -> Iterator[Path]:
    """Give an upload as a file of its name, which the importers read."""
    with TemporaryDirectory() as folder:
        name = Path(file.name.replace("\0", "")).name
        is_name = name not in ("", ".", "..") and len(name.encode()) <= 255
        path = Path(folder) / (name if is_name else "upload")
        path.write_bytes(file.getvalue())
        yield path


NAME_PATTERN = re.compile(r"[\w(][\w ().+-]*")
"""Names of parts, which name files too."""
SPLIT_HELP = (
    "Items of one question stay in one part, so that what is fitted on the first part is tested on"
    " questions that it has not seen."
)


def render_split(suite: Suite) -> None:
    """Show a form that stores a suite's two parts, for whoever may store suites."""
    if not access.has_role("admin"):
        return
    with (
        st.expander(
            "Divide by question: fit on one part, test on the other", icon=":material/cut:"
        ),
        st.form(f"split-{suite.digest[:8]}", border=False),
    ):
        st.caption(SPLIT_HELP)
        with st.container(horizontal=True, vertical_alignment="bottom"):
            names = [
                st.text_input(f"Name of the {which} part", f"{suite.name}-{name}", max_chars=80)
                for which, name in (("first", "fit"), ("second", "test"))
            ]
            share = st.number_input("Share of the first part", 0.01, 0.99, 0.5, 0.05, width=180)
            seed = st.number_input("Seed", 0, 2**31 - 1, 0, width=120)
        is_pressed = st.form_submit_button("Divide", icon=":material/cut:")
    if is_pressed:
        _store_halves(suite, names, float(share), int(seed))


def _store_halves(suite: Suite, names: list[str], share: float, seed: int) -> None:
    """Store both parts, and link to a run of each."""
    first_name, second_name = (name.strip() for name in names)
    if first_name == second_name or not all(map(NAME_PATTERN.fullmatch, (first_name, second_name))):
        st.error("Give each part another name, of letters, digits, spaces and . _ + - ( ) alone.")
        return
    access.require_role("admin")
    try:
        halves = split_by_question(suite, share, seed=seed)
    except ValueError as error:
        st.error(escape_markdown(f"Not divided: {error}."))
        return
    for name, part in zip((first_name, second_name), halves, strict=True):
        named_part = Suite(name, part.items, part.digest)
        processes.save_suite(cached.store(), named_part)
        st.success(escape_markdown(f"Stored {name}: {len(part.items)} items."))
        render_suite_links(named_part, name)
