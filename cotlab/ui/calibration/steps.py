"""The tab Calibrate, steps: versions of the probability of the first mistake, and a new fit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from cotlab.core.errors import CotlabError
from cotlab.figures.style import interval_text
from cotlab.review.release.step_hazard import SCORES_MODEL, TEXT_MODEL, fit_step_hazard
from cotlab.store.calibrators import STEP_KIND, list_calibrators
from cotlab.ui import access, cached
from cotlab.ui.calibration.runs import MESSAGE_KEY, rerun_with_message
from cotlab.ui.calibration.versions import render_version_choice
from cotlab.ui.text import escape_markdown


def render_step_models() -> None:
    """List the versions for the steps, and offer a fit on all runs whose steps were judged."""
    st.header("First mistake by step")
    versions = list_calibrators(cached.store(), STEP_KIND)
    if message := st.session_state.pop(MESSAGE_KEY, None):
        st.success(message)
    if len(versions):
        cells = [_version_cells(row) for row in versions.to_dict("records")]
        st.dataframe(pd.DataFrame(cells), hide_index=True)
    st.caption(
        "A version gives each step of a chain a probability of being the first wrong one; an item"
        " shows it under “Look here first”. PB-F1 (in percent, out of fold): harmonic mean of exact"
        " steps in chains with a mistake and of none in chains without, averaged over the domains."
        " A fit that does not beat position and length alone is not kept."
    )
    if len(versions):
        render_version_choice(versions, STEP_KIND)
    if not st.button(
        "Fit on all labelled steps",
        icon=":material/footprint:",
        key="fit-steps",
        **access.role_control("admin"),
    ):
        return
    try:
        admin = access.require_role("admin")
        with st.spinner("Fitting the steps, with cross-validation and bootstrap"):
            fit = fit_step_hazard(cached.store(), None, author=admin.name)
    except CotlabError as error:
        st.error(escape_markdown(str(error)))
        return
    if fit.refusal:
        st.warning(escape_markdown(f"No version is kept: {fit.refusal}"))
        return
    rerun_with_message(f"Version {fit.version} is fitted and in use for the steps.")


def _version_cells(row: Mapping[str, Any]) -> dict[str, Any]:
    models = json.loads(row["report"])["models"]
    model = models.get(SCORES_MODEL, models[TEXT_MODEL])
    return {
        "Version": row["version"],
        "In use": "yes" if row["current"] else "",
        "Chains": row["n"],
        "Without a mistake": row["n_positive"],
        "PB-F1": _percent_text(model["pb_f1"]),
        "Minus position and length": _percent_text(model["difference"]),
        "Domains": ", ".join(json.loads(row["report"])["domains"]),
        "Made": f"{row['made_at']:%Y-%m-%d %H:%M}",
        "By": row["made_by"],
        "Note": row["note"],
    }


def _percent_text(estimate: Mapping[str, Any]) -> str:
    return interval_text(
        *(None if estimate[key] is None else 100 * estimate[key] for key in ("point", "lo", "hi"))
    )
