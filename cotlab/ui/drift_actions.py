"""What the page Drift offers to do: store the check, queue a re-audit, fit again."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from cotlab.review.release.drift import DriftCheck, drift_state, store_drift_check
from cotlab.review.release.reaudit import find_released_items, queue_reaudit
from cotlab.ui import access, cached, components
from cotlab.ui.drift import DriftView
from cotlab.ui.text import escape_markdown

_NOTICE_KEY = "drift-said"


def render_drift_actions(view: DriftView) -> None:
    """Offer what to do: store the check, queue a re-audit, fit a new calibrator."""
    check = view.check
    st.header("What to do")
    if notice := st.session_state.pop(_NOTICE_KEY, None):
        st.success(escape_markdown(notice))
    if check.suggestion and not view.has_calibrator:
        st.caption("There is no calibrator yet that could be fitted again.")
        components.page_link("calibration", "Calibration", "query_stats")
    elif check.suggestion:
        st.warning(escape_markdown(check.suggestion))
        with st.container(horizontal=True):
            components.page_link("calibration", "Fit again", "query_stats")
            components.page_link("label", "Label", "edit_note")
    elif drift_state(check) == "unclear":
        st.caption("Whether the calibrator should be fitted again cannot be told from these runs.")
    else:
        st.caption("These runs give no reason to fit the calibrator again.")
    released_items = find_released_items(cached.store(), check.current)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        n_requested_items = int(
            st.number_input("Released items to audit", 1, 1000, 20, key="reaudit-n", width=190)
        )
        button_state = access.role_control(
            "admin",
            disabled=not released_items,
            help=None if released_items else "No item of the current runs is released.",
        )
        if st.button(
            f"Queue a re-audit (of {len(released_items)})",
            key="reaudit",
            icon=":material/rule:",
            **button_state,
        ):
            _queue_reaudit(check, n_requested_items)
        if st.button(
            "Store this check",
            key="keep-check",
            icon=":material/save:",
            **access.role_control("admin"),
        ):
            _store_check(check)
    st.caption(
        "The re-audit is a random sample, so its findings apply to all released items."
        " From a terminal:"
    )
    sides_text = f"{','.join(check.reference)} {' '.join(check.current)}"
    command = f"cotlab drift {sides_text} --ks {check.ks:g} --psi {check.psi:g}"
    st.code(command, language="text", wrap_lines=True)


def _queue_reaudit(check: DriftCheck, n_requested_items: int) -> None:
    user = access.require_role("admin")
    queue, n_queued_items = queue_reaudit(
        cached.store(), check.current, n_requested_items, author=user.name
    )
    st.session_state[_NOTICE_KEY] = (
        f"{n_queued_items} released items were added to the queue {queue}."
    )
    st.rerun()


def _store_check(check: DriftCheck) -> None:
    user = access.require_role("admin")
    is_new = store_drift_check(cached.store(), replace(check, by=user.name))
    st.session_state[_NOTICE_KEY] = (
        "The check was stored." if is_new else ("This check was already stored.")
    )
    st.rerun()
