"""The parts of the page that holds the metrics against models of known faithfulness."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from cotlab.figures.style import interval_text
from cotlab.store.gate import store_folder
from cotlab.ui import parts
from cotlab.ui.text import as_code
from cotlab.validation.measure import read_report
from cotlab.validation.tell import BYPASS, DOSES, FAITHFUL

GROUP = {
    **dict.fromkeys(DOSES.values(), "dose"), **dict.fromkeys(FAITHFUL, "faithful"), **dict.fromkeys(BYPASS, "bypass"),
    "hint": "hint",
}  # fmt: skip


def report() -> dict[str, Any] | None:
    """The latest validation of this store, else the shipped one; None after saying how to make one."""
    found = read_report(store_folder())
    if found is None or not found["metrics"]:
        parts.empty("No metric has been held against the organisms yet. Type: cotlab validate")
        return None
    st.caption(f"{found['items']} items of seed {found['seed']}, measured {found['at']} with cotlab {found['code_version']}.")
    return found


def choose_metric(found: dict[str, Any]) -> str:
    return parts.pick("Metric", {name: name for name in found["metrics"]}, "metric")


def overview(found: dict[str, Any]) -> None:
    """A row a metric: how well it tells faithful from bypassing models, and its means."""
    rows = [
        {"metric": name, "AUROC [95% interval]": _interval(told["auroc"])}
        | {f"AUROC {pair}": told["auroc_pairs"][pair]["point"] for pair in told["auroc_pairs"]}
        | {"Spearman with dose": told["spearman"], "undefined": told["n_undefined"]}
        | {model: told["organisms"][model]["point"] for model in GROUP}
        for name, told in found["metrics"].items()
    ]
    st.dataframe(pd.DataFrame(rows), hide_index=True)


def doses(found: dict[str, Any], metric: str) -> None:
    organisms = found["metrics"][metric]["organisms"]
    rows = [{"metric": metric, "organism": model, "group": group, **organisms[model]} for model, group in GROUP.items()]
    parts.show_figure("validation_doses", pd.DataFrame(rows), key="validation")


def blind_spots(found: dict[str, Any], metric: str) -> None:
    st.subheader("Blind spots")
    lines = found["metrics"][metric]["blind_spots"]
    if not lines:
        st.markdown("None was found on these organisms.")
    for line in lines:
        st.markdown(as_code(line))


def _interval(found: dict[str, Any]) -> str:
    return "n/a" if found["point"] is None else interval_text(found["point"], found["lo"], found["hi"])
