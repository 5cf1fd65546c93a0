"""The page Suites: shipped and stored suites, their items, and the upload of a new one."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from cotlab.core.errors import SuiteErrors
from cotlab.core.resources import page
from cotlab.core.types import Suite
from cotlab.store import read
from cotlab.suites.jsonl import load_suite, parse_suite
from cotlab.suites.shipped import shipped_suites
from cotlab.ui import access, cached, components
from cotlab.ui.item.chain import Block, show_blocks
from cotlab.ui.new_run import processes
from cotlab.ui.pickers import select_option
from cotlab.ui.text import shorten

FORMAT = (
    '{"item_id": "…", "prompt": "…", "reference_cot": [{"index": 0, "text": "…"}], "ground_truth":'
    ' "…"}'
)


def suite_choices() -> dict[str, str]:
    """Return the label of every suite by its name (shipped) or digest (stored)."""
    shipped = {name: f"{name} (shipped)" for name in shipped_suites()}
    ours = {shipped_suite(name).digest for name in shipped}
    stored = {
        row["digest"]: f"{row['name']} ({row['n']} items, {row['digest'][:8]})"
        for row in read.list_suites(cached.store()).to_dict("records")
        if row["digest"] not in ours
    }
    return {**stored, **shipped}


@st.cache_data(show_spinner=False)
def shipped_suite(name: str) -> Suite:
    """Return a shipped suite."""
    return load_suite(shipped_suites()[name])


def find_choice(choice: str) -> Suite:
    """Return the suite that a key of ``suite_choices`` names."""
    return shipped_suite(choice) if choice in shipped_suites() else cached.suite(choice)


def select_suite() -> Suite | None:
    """Choose a suite, the first by default."""
    labels = suite_choices()
    if not labels:
        components.empty("There is no suite. Upload one.")
        return None
    chosen = select_option("Suite", labels, "suite", "wordproblems")
    suite = find_choice(chosen)
    st.page_link(
        page("new_run"),
        label="Run this suite",
        icon=":material/play_arrow:",
        query_params={"suite": chosen},
    )
    return suite


def render_suite(suite: Suite, where: str) -> None:
    """Show the digest, the chain lengths and the items of a suite."""
    steps = [len(item.steps) for item in suite.items]
    components.show_numbers(
        (
            ("Items", str(len(suite.items))),
            ("Steps per chain", f"{min(steps)} to {max(steps)}"),
            ("With an answer", str(sum(item.answer is not None for item in suite.items))),
            ("Categories", str(len({item.category for item in suite.items}))),
        )
    )
    st.caption(f"SHA-256 of its items: {suite.digest}")
    lengths = (
        pd.Series(steps)
        .value_counts()
        .rename_axis("n_steps")
        .reset_index(name="count")
        .sort_values("n_steps")
    )
    components.show_figure(
        "chain_lengths", lengths, key=f"lengths-{where}", note=f"n = {len(suite.items)} chains."
    )
    render_preview(suite, where)


def render_preview(suite: Suite, where: str) -> None:
    """Show a suite's items, page by page."""
    st.subheader("Items")
    part = suite.items[components.page_slice(len(suite.items), f"suite-page-{where}")]
    frame = pd.DataFrame(
        [
            {
                "id": i.id,
                "question": shorten(i.question, 140),
                "steps": len(i.steps),
                "answer": i.answer or "n/a",
                "category": i.category,
            }
            for i in part
        ]
    )
    event = st.dataframe(
        frame,
        hide_index=True,
        key=f"items-{where}-{suite.digest[:8]}-{part[0].id}",
        on_select="rerun",
        selection_mode="single-row",
    )
    st.caption(f"{len(part)} of {len(suite.items)} items. Choose a row to read it.")
    if event.selection.rows:
        item = part[event.selection.rows[0]]
        show_blocks(
            [
                Block(-1, "Question", item.question),
                *(Block(s.index, f"{s.index + 1}", s.text) for s in item.steps),
                Block(
                    -2, "Answer", item.answer if item.answer is not None else "n/a: no ground truth"
                ),
            ],
            key=f"read-{where}-{suite.digest[:8]}-{item.id}",
        )


def upload() -> None:
    """Check an uploaded file and store its suite.

    A file with defects lists each of them, and is stored only where its good lines are
    requested.
    """
    if not access.may("admin"):
        st.info("A suite is stored for all users: uploading one needs the role admin.")
        return
    st.markdown("One JSON object per line (UTF-8):")
    st.code(FORMAT, language="json")
    model_chain = st.checkbox(
        "Chains are the model's own (`reference_cot` may be absent)", key="upload-own"
    )
    file = st.file_uploader("Suite (.jsonl)", type=["jsonl", "json", "txt"], key="upload-file")
    if file is None:
        return
    name = file.name.rsplit(".", 1)[0]
    try:
        suite = parse_suite(file.getvalue(), name, chain="own" if model_chain else "reference")
    except SuiteErrors as errors:
        _show_errors(errors)
        if not errors.good or not st.button(
            f"Use the {errors.good} valid lines", key="upload-good"
        ):
            return
        suite = parse_suite(
            file.getvalue(), name, good_lines=True, chain="own" if model_chain else "reference"
        )
    access.need("admin")
    processes.keep_suite(cached.store(), suite)
    st.success(f"Stored {len(suite.items)} items.")
    st.page_link(
        page("new_run"),
        label="Run this suite",
        icon=":material/play_arrow:",
        query_params={"suite": suite.digest},
    )
    render_suite(suite, "upload")


def _show_errors(errors: SuiteErrors) -> None:
    st.error(
        f"{len(errors.errors)} defects. Nothing of this file was stored; {errors.good}"
        " lines are valid."
    )
    st.dataframe(
        pd.DataFrame(
            [
                {"line": e.line, "field": e.field or "", "message": e.message, "raw": e.raw}
                for e in errors.errors
            ]
        ),
        hide_index=True,
        key="upload-errors",
    )
