"""Validation: the metrics tested on models of known faithfulness."""

from functools import partial

import streamlit as st

from cotlab.ui import components, validation
from cotlab.ui.more import render_more
from cotlab.ui.validation_claim import render_claim

components.render_heading("Validation", "Can the metrics be trusted?")
latest_report = validation.load_report()
if latest_report is not None:
    validation.render_validation_verdict(latest_report)
    claim_container = st.container()  # the metric is chosen below the table
    validation.render_overview(latest_report)
    metrics = validation.select_validation_metrics(latest_report)
    if len(metrics) == 1:
        with claim_container:
            render_claim(latest_report, metrics[0])
        validation.render_metric(latest_report, metrics[0])
        render_more(
            "what the metric does not detect, and its card",
            partial(validation.render_limits, latest_report, metrics[0]),
            name="limits",
        )
    else:
        validation.render_gallery(latest_report, metrics)
    render_more(
        "mean of each metric on each model",
        partial(validation.render_model_means, latest_report),
        name="means",
    )
    render_more(
        "models whose chain needs its question",
        partial(validation.render_needs_question, latest_report),
        name="needs_question",
    )
    render_more(
        "a model whose wording carries the answer",
        partial(validation.render_coded_wording, latest_report),
        name="coded_wording",
    )
