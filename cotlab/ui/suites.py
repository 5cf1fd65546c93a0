"""The page Suites: shipped and stored suites, their items, and the upload of a new one."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import streamlit as st

from cotlab.core.errors import CotlabError, SuiteErrors
from cotlab.core.types import Suite
from cotlab.store import read
from cotlab.suites.importers.benchmarks import FAITHFUL_KEY, MISTAKE_KEY
from cotlab.suites.importers.chains import ChainFields
from cotlab.suites.importers.formats import (
    FORMATS_WITH_FIELDS,
    IMPORT_FORMATS,
    import_suite_file,
)
from cotlab.suites.jsonl import load_suite, parse_suite
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

EXAMPLE_LINE = (
    '{"item_id": "…", "prompt": "…", "reference_cot": [{"index": 0, "text": "…"}], "ground_truth":'
    ' "…"}'
)


MODEL_CHAINS_LABEL = "Chains are the model's own"
"""Label of the box for suites without chains."""
SUITE_FORMAT = "cotlab (.jsonl)"
"""The format that suites are kept in."""


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


def render_upload() -> Suite | None:
    """Check an uploaded file, store its suite and return it; None where nothing was stored.

    A file with defects lists each of them, and is stored only where its good lines are
    requested.
    """
    if not access.has_role("admin"):
        st.info("A suite is stored for all users: uploading one needs the role admin.")
        return None
    parse_upload = _select_upload()
    if parse_upload is None:
        return None
    try:
        suite = parse_upload()
    except SuiteErrors as errors:
        _show_suite_errors(errors)
        label = f"Use the {errors.n_good_lines} valid lines"
        if not errors.n_good_lines or not st.button(label, key="upload-good"):
            return None
        suite = parse_upload(good_lines=True)
    except CotlabError as error:
        st.error(escape_markdown(str(error)))
        return None
    access.require_role("admin")
    processes.save_suite(cached.store(), suite)
    st.success(f"Stored {len(suite.items)} items.")
    render_suite_links(suite, "this suite")
    return suite


def _select_upload() -> Callable[..., Suite] | None:
    """Choose format and file; return what reads the file, or None without one."""
    format_name = st.selectbox("Format", [SUITE_FORMAT, *IMPORT_FORMATS], key="upload-format")
    if format_name != SUITE_FORMAT:
        fields = _render_field_names(format_name)
        uploaded_file = st.file_uploader(f"File ({format_name})", key=f"upload-file-{format_name}")
        if uploaded_file is None:
            return None
        return partial(
            _import_upload, format_name, uploaded_file.name, uploaded_file.getvalue(), fields
        )
    st.markdown(
        "One JSON object per line (UTF-8). Where no line has a `reference_cot`, the model writes"
        " the chains."
    )
    st.code(EXAMPLE_LINE, language=None, wrap_lines=True)
    has_model_chains = st.checkbox(
        f"{MODEL_CHAINS_LABEL} (some lines have no `reference_cot`)", key="upload-own"
    )
    uploaded_file = st.file_uploader(
        "Suite (.jsonl)", type=["jsonl", "json", "txt"], key="upload-file"
    )
    if uploaded_file is None:
        return None
    return partial(
        parse_suite,
        uploaded_file.getvalue(),
        uploaded_file.name.rsplit(".", 1)[0],
        chain="own" if has_model_chains else "auto",
    )


def _render_field_names(format_name: str) -> ChainFields:
    """Show the inputs of a file's field names, where the format leaves them open."""
    if format_name not in FORMATS_WITH_FIELDS:
        return ChainFields()
    labels = {"question": "Question's field", "chain": "Chain's field", "answer": "Answer's field"}
    labels["id"] = "Id's field (empty: the position)"
    if format_name == "chains":
        labels["chains"] = "Field of several chains (empty: one a record)"
        labels["model_answer"] = "Field of the model's answer (empty: none)"
        labels["correct"] = "Field of its correctness (empty: none)"
    defaults = ChainFields()
    names = {
        name: st.text_input(label, getattr(defaults, name) or "", key=f"upload-{name}")
        for name, label in labels.items()
    }
    given = {name: text.strip() for name, text in names.items() if text.strip()}
    return ChainFields(**given)


def _import_upload(
    format_name: str, file_name: str, data: bytes, fields: ChainFields, *, good_lines: bool = False
) -> Suite:
    """Import an uploaded file; the importers read files, so it lies in one meanwhile."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / (Path(file_name).name or "upload")
        path.write_bytes(data)
        return import_suite_file(
            format_name, path, fields, split=split_steps, good_lines=good_lines
        )


def _with_box_name(message: str) -> str:
    """Return what is wrong with a line with the box of this page instead of a command's flag."""
    return message.replace("--chain own", f"“{MODEL_CHAINS_LABEL}” above")


def _show_suite_errors(errors: SuiteErrors) -> None:
    st.error(
        f"{len(errors.errors)} defects. Nothing of this file was stored; {errors.n_good_lines}"
        " lines are valid."
    )
    rows = [
        (error.line, error.field or "", _with_box_name(error.message), error.raw)
        for error in errors.errors
    ]
    frame = pd.DataFrame(rows, columns=["line", "field", "message", "raw"])
    components.show_table(frame, "upload-errors")


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
