"""What was found of the servers of a run, and a check of the server that the form names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from cotlab.core.errors import CotlabError
from cotlab.core.provider import Finding
from cotlab.core.types import ModelRef
from cotlab.providers.finding_texts import CHECK_LABELS
from cotlab.providers.keys import check_server, file_naming_server
from cotlab.run.model_check import check_model
from cotlab.run.server_check import is_checked
from cotlab.run.server_findings import run_cautions
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
        for caution in run_cautions(cached.run_plan(run_id), check):
            st.warning(escape_markdown(caution))


def render_check_button(config: Mapping[str, Any]) -> None:
    """Offer to check the server of the form; what is found serves runs of the next day."""
    model = str(config["model"]).strip()
    ref = ModelRef(config["provider"], model, base_url=config["base_url"])
    if not model or not is_checked(ref, "auto"):
        return
    hint = (
        "At most ten small requests: does it continue a prefix, give log-probabilities, cut long"
        " prompts? A run checks what it needs by itself."
    )
    if not st.button("Check the server", icon=":material/troubleshoot:", help=hint):
        return
    access.require_role("admin")
    try:
        check_server(ref.provider, ref.base_url, file_naming_server(ref.base_url))
        with st.spinner("Checking the server"):
            model_check = check_model(ref, cached.store(), config["chat_template"])
    except CotlabError as error:
        st.error(escape_markdown(str(error)))
        return
    if model_check.caution:
        st.warning(escape_markdown(model_check.caution))
    for index, check in enumerate(model_check.checks):
        _render_check(check, f"new-server-check-{index}")
    st.caption(f"Cost: {components.money_text(model_check.spent_micro)}.")


def _render_check(check: ServerCheck, key: str) -> None:
    version = check.server_version or "the server names no version"
    address = f" at {check.model.base_url}" if check.model.base_url else ""
    address += " by raw text" if check.model.endpoint == "completions" else ""
    reuse_text = "kept from an earlier check" if not check.n_requests else ""
    request_text = reuse_text or f"{check.n_requests} requests"
    st.caption(
        escape_markdown(
            f"{check.model}{address}: {version}, {check.checked_at:%Y-%m-%d %H:%M} UTC,"
            f" {request_text}"
        )
    )
    components.show_table(_findings_table(check.findings), key)


def _findings_table(findings: Mapping[str, Finding]) -> pd.DataFrame:
    rows = [
        (
            CHECK_LABELS.get(name, name),
            finding.verdict,
            "" if finding.count is None else f"{finding.count:,}",
            finding.detail,
        )
        for name, finding in findings.items()
    ]
    return pd.DataFrame(rows, columns=["check", "found", "count", "detail"])
