"""The page Robustness, perturbed questions: how often the answer follows a changed question."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from cotlab.analysis.view import RunView
from cotlab.ui import cached, components
from cotlab.ui.components import render_headline, show_cards
from cotlab.ui.robustness.suite import (
    TEXTS_COLUMN_CONFIG,
    count_undefined_reasons,
    item_address,
    load_robustness_scores,
)

CAUSAL_METRICS = (
    ("causal_stability", "Stability rate"),
    ("rename_stable", "Kept under a rename"),
    ("number_follows", "Follows a changed number"),
    ("number_moves", "Moves with a changed number"),
)


def render_causal_rates(row: RunView) -> None:
    """Show the rates of the perturbed questions, with Wilson intervals and undefined items."""
    metrics = tuple(metric for metric, _ in CAUSAL_METRICS)
    scores = load_robustness_scores(row, *metrics, with_evidence=False)
    if scores.empty:
        return
    st.header("Perturbed questions")
    estimates = cached.load_estimates(row.id, row.revision)
    estimates = estimates[estimates["metric"].isin([metric for metric, _ in CAUSAL_METRICS])]
    if estimates.empty:
        st.info("The rates are estimated when the run ends or is stopped.")
        return
    reason_counts = count_undefined_reasons(row, metrics)
    render_headline(
        estimates,
        CAUSAL_METRICS,
        {metric_name: next(iter(reasons)) for (metric_name, _), reasons in reason_counts.items()},
    )
    methods_text = ", ".join(dict.fromkeys(estimates["method"]))
    st.caption(
        f"Share of n items, with {100 * float(estimates['confidence'].iloc[0]):g} % intervals"
        f" ({methods_text}). A rename must keep the answer; a changed number must move it to the"
        " value recomputed through the reference chain."
    )
    lines = [
        f"{label}: n/a in {k} item{'s' * (k > 1)}, {text}."
        for metric, label in CAUSAL_METRICS
        for text, k in reason_counts.get((metric, ""), {}).items()
    ]
    if lines:
        with st.expander("Why scores are undefined"):
            components.show_escaped_lines(lines)
    show_cards(*(metric for metric, _ in CAUSAL_METRICS))
    failed_scores = scores[(scores["value"] == 0) & (scores["metric"] != "causal_stability")]
    if not failed_scores.empty:
        _render_failures(row, failed_scores)


def _render_failures(row: RunView, failed_scores: pd.DataFrame) -> None:
    failed_scores = failed_scores.assign(metric=failed_scores["metric"].map(dict(CAUSAL_METRICS)))
    failed_metrics = failed_scores.groupby("item_id", sort=True)["metric"].agg(
        lambda labels: ", ".join(dict.fromkeys(labels))
    )
    page_rows = failed_metrics.iloc[components.page_slice(len(failed_metrics), "failures-page")]
    with st.expander(f"Items that fail ({len(failed_metrics)})"):
        st.dataframe(
            pd.DataFrame(
                {
                    "texts": [item_address(row, i) for i in page_rows.index],
                    "item": page_rows.index,
                    "fails": page_rows.to_numpy(),
                }
            ),
            hide_index=True,
            key="failures",
            column_config=TEXTS_COLUMN_CONFIG,
        )
