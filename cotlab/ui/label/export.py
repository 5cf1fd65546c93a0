"""Labels as files: a label a line, or chains in ProcessBench's form."""

from __future__ import annotations

import streamlit as st

from cotlab.core.errors import ConfigError
from cotlab.review.labelling.files import labels_as_text
from cotlab.review.labelling.processbench import ProcessBenchLabels, processbench_labels
from cotlab.review.labelling.readable_chains import left_out_text
from cotlab.store import labels as label_store
from cotlab.store.pending import labelled_runs, last_label_number
from cotlab.ui import access, cached, components
from cotlab.ui.label import items as label_items
from cotlab.ui.pickers import run_labels
from cotlab.ui.text import escape_markdown


def render_export(queue: str | None) -> None:
    """Offer the labels as JSONL and CSV, and the settled chains of a run in ProcessBench's form.

    Labels by others of items that a queue may still ask the current user for are left out.
    """
    table = label_store.list_labels(cached.store(), queue=queue)
    hidden_keys = label_items.hidden_item_keys()
    user_name = access.current_person().name
    is_visible = [
        rater == user_name or (run, item) not in hidden_keys
        for run, item, rater in zip(table["run"], table["item_id"], table["rater"], strict=True)
    ]
    labels = label_store.labels_from_table(table[is_visible])
    kinds = cached.read_once(label_store.kinds_by_queue)
    with st.container(horizontal=True, vertical_alignment="center"):
        for file_format in ("jsonl", "csv"):
            components.download_button(
                f"{len(labels)} labels ({file_format.upper()})",
                labels_as_text(labels, file_format, kinds),
                f"labels.{file_format}",
                f"labels-{file_format}",
            )
    if n_hidden := len(table) - len(labels):
        st.caption(label_items.hidden_notice_text(n_hidden, "label", "labels"))
    _render_processbench({run for run, _ in hidden_keys})


def _render_processbench(hidden_runs: set[str]) -> None:
    runs = cached.read_once(labelled_runs) - hidden_runs
    rows = [run for run in cached.stored_runs() if run.id in runs]
    if not rows:
        return
    run_options = run_labels(rows)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        run = st.selectbox(
            "Chains in ProcessBench's form, of the run",
            list(run_options),
            format_func=run_options.__getitem__,
            key="export-run",
        )
        try:
            chains = _cached_chains(run, last_label_number(cached.store()))
        except ConfigError as error:
            st.caption(escape_markdown(str(error)))
            return
        components.download_button(
            f"{chains.n_chains} chains (JSONL)", chains.text, f"{run}-processbench.jsonl", "chains"
        )
    left_out = left_out_text(chains.n_left_out_by_reason)
    st.caption(
        "A line a chain: id, generator, problem, steps, final_answer_correct, and label, the first"
        " wrong step that raters settled on, from 0, or -1 where no step is wrong."
        + (f" Left out: {left_out}." if left_out else "")
    )


@cached.cache_by_store(4, "Reading chains")
def _cached_chains(run: str, last_label: int) -> ProcessBenchLabels:
    return processbench_labels(cached.store(), run)
