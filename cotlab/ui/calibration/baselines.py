"""The page Calibration: what is trivial to know beside a combined fit, and unseen domains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from cotlab.figures.style import interval_text


def render_baselines(report: Mapping[str, Any]) -> None:
    """Show a combined fit beside length, answer correctness and both, and on unseen domains."""
    st.header("Beside what is trivial to know")
    st.dataframe(pd.DataFrame(baseline_rows(report)), hide_index=True)
    st.caption(
        "Each is fitted in the same folds; differences are paired, 95 % intervals by bootstrap over"
        " questions. A version is kept only where the whole interval of its Brier score minus that"
        " of the best baseline lies below 0; one with the answer counts where the fit reads it."
    )
    unseen = report["unseen_domains"]
    if not unseen:
        st.caption("The labels are of one domain: how the fit does on others is not known.")
        return
    st.dataframe(pd.DataFrame(unseen_domain_rows(unseen)), hide_index=True)
    st.caption("Each domain (suite, where items have none) is predicted by a fit on the others.")


def baseline_rows(report: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return one row a baseline, with intervals as text; where it is not measured, why not."""
    return [
        {
            "Alone": name,
            "AUROC": _cell(entry["auroc"]),
            "Brier": _cell(entry["brier"]),
            "Combined minus it, AUROC": _cell(entry["auroc_difference"]),
            "Combined minus it, Brier": _cell(entry["brier_difference"]),
            "To beat": "yes" if entry["is_bar"] else "",
            "Note": entry["reason"],
        }
        for name, entry in report["baselines"].items()
    ]


def unseen_domain_rows(unseen: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return one row a domain that the fit did not see, after all of them together."""
    return [
        {
            "Domain": name,
            "Labels": entry["n"],
            "Acceptable": entry["n_positive"],
            "AUROC": _cell(entry["auroc"]),
            "Brier": _cell(entry["brier"]),
            "AUROC, length alone": _cell(entry["auroc_length"]),
            "Note": entry.get("reason", ""),
        }
        for name, entry in (("All", unseen["all"]), *unseen["domains"].items())
    ]


def _cell(estimate: Mapping[str, Any] | None) -> str:
    if estimate is None:
        return "n/a"
    return interval_text(estimate["point"], estimate["lo"], estimate["hi"])
