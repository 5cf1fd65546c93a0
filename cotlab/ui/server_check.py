"""What was found of the servers of a run, and a check of the server that the form names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from cotlab.core.errors import CotlabError
from cotlab.core.provider import Finding
from cotlab.core.types import ModelRef
from cotlab.providers.keys import check_server, file_naming_server
from cotlab.providers.probe import MAX_REQUESTS, QUESTION_LABELS
from cotlab.run.server_check import check_model, is_checked, server_limits
from cotlab.store.server_checks import ServerCheck, list_server_checks
from cotlab.ui import access, cached, components
from cotlab.ui.text import escape_markdown


def render_run_checks(run_id: str) -> None:
    """Show what the check of each server found before the run's first request."""
    checks = cached.read_once(list_server_checks, run_id)
    if not checks:
        return
    st.header("Server check")
    for index, check in enumerate(checks):
        _render_check(check, f"server-check-{index}")
        for limit in server_limits(cached.stored_run(run_id).plan, check):
            st.warning(escape_markdown(limit.text))


def render_check_button(config: Mapping[str, Any]) -> None:
    """Offer to check the server of the form before a run does."""
    model = str(config["model"]).strip()
    ref = ModelRef(config["provider"], model, base_url=config["base_url"])
    if not model or not is_checked(ref, "auto"):
        return
    hint = (
        f"At most {MAX_REQUESTS} small requests: does it continue a prefix, give log-probabilities,"
        " cut long prompts? How does it return reasoning? A run asks what it needs by itself."
    )
    if not st.button("Check the server", icon=":material/troubleshoot:", help=hint):
        return
    access.require_role("admin")
    try:
        check_server(ref.provider, ref.base_url, file_naming_server(ref.base_url))
        with st.spinner("Checking the server"):
            model_check = check_model(ref)
    except CotlabError as error:
        st.error(escape_markdown(str(error)))
        return
    _render_check(model_check.check, "new-server-check")
    st.caption(f"Cost: {components.money_text(model_check.spent_micro)}.")


def _render_check(check: ServerCheck, key: str) -> None:
    address = f" at {check.model.base_url}" if check.model.base_url else ""
    address += " by raw text" if check.model.endpoint == "completions" else ""
    time_text = f"{check.checked_at:%Y-%m-%d %H:%M} UTC"
    text = f"{check.model}{address}: {time_text}, {check.n_requests} requests"
    st.caption(escape_markdown(text))
    components.show_table(_findings_table(check.findings), key)


def _findings_table(findings: Mapping[str, Finding]) -> pd.DataFrame:
    rows = [
        (
            QUESTION_LABELS.get(name, name),
            finding.verdict,
            "" if finding.count is None else f"{finding.count:,}",
            finding.detail,
        )
        for name, finding in findings.items()
    ]
    return pd.DataFrame(rows, columns=["check", "found", "count", "detail"])
