"""The versions of the calibrator on the page Calibration: what each saw, who put which into use, and the way back."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from cotlab.analysis.tables import calibration as tables
from cotlab.core.errors import CotlabError
from cotlab.figures.calibration import CALIBRATORS
from cotlab.reliability.calibrator import COMBINED
from cotlab.review.release.calibrate import rollback
from cotlab.store import calibrators as calibrator_store
from cotlab.ui import access
from cotlab.ui import cached as data
from cotlab.ui.calibration.fit import CalibrationView
from cotlab.ui.text import as_code

RESTORED = "calibration-back"


def render_versions(view: CalibrationView) -> None:
    """Every version with the digest of the labels it saw; another one can be put into use, with a reason."""
    if view.version is None:
        return
    st.subheader("Versions")
    every = calibrator_store.calibrators(data.store())
    st.dataframe(
        pd.DataFrame(
            [
                {
                    "Version": row["version"],
                    "In use": "yes" if row["current"] else "",
                    "Method": CALIBRATORS[row["method"]][0],
                    "Labels": row["n"],
                    "Acceptable": row["n_positive"],
                    "Weights": (
                        "combined"
                        if row["method"] == COMBINED
                        else "example"
                        if pd.isna(row["weights"])
                        else "tuned"
                    ),
                    "Labels digest": str(row["labels_digest"])[:12],
                    "Made": f"{row['made_at']:%Y-%m-%d %H:%M}",
                    "By": row["made_by"],
                    "Why": row["note"],
                }
                for row in every.to_dict("records")
            ]
        ),
        hide_index=True,
    )
    change_note = "One of its runs is no longer in the store."
    if view.seen is not None:
        change_note = tables.describe_changes(view.seen, view.version)
    st.caption(
        f"Labels digest of version {view.version['version']}: {view.version['labels_digest']}."
        f" {change_note}"
    )
    done = st.session_state.pop(RESTORED, None)
    if done is not None:
        st.success(f"Version {done} is in use.")
    with st.expander("Put another version into use"):
        _render_rollback(every)
    with st.expander("Which version was in use when"):
        choices = calibrator_store.calibrator_choices(data.store())
        st.dataframe(
            pd.DataFrame(
                [
                    {
                        "From": f"{row['at_']:%Y-%m-%d %H:%M:%S}",
                        "Version": row["version"],
                        "By": row["by_"],
                        "Reason": row["reason"],
                    }
                    for row in choices.to_dict("records")
                ]
            ),
            hide_index=True,
        )


def _render_rollback(every: pd.DataFrame) -> None:
    others = [int(row["version"]) for row in every.to_dict("records") if not row["current"]]
    if not others:
        st.caption("There is no other version.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        version = st.selectbox("Version", others, key="back-version")
        reason = st.text_input(
            "Reason", key="back-reason", max_chars=300, placeholder="kept in the audit log"
        )
    if not st.button(
        "Use this version", icon=":material/undo:", key="back", **access.only("admin")
    ):
        return
    try:
        who = access.need("admin")
        rollback(data.store(), version, by=who.name, reason=reason)
    except CotlabError as error:
        st.error(as_code(str(error)))
        return
    st.session_state[RESTORED] = version
    st.query_params.pop("version", None)
    st.rerun()
