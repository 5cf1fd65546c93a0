"""Print what is trivial to know beside a combined fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def baseline_lines(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is trivial to know beside a combined fit, and what it predicts elsewhere."""
    for name, entry in report["baselines"].items():
        if entry["reason"]:
            yield f"Beside it, {name} alone: {entry['reason']}."
            continue
        yield (
            f"Beside it, {name} alone: AUROC {stored_estimate_text(entry['auroc'])}, Brier"
            f" {stored_estimate_text(entry['brier'])}; combined minus {name}: AUROC"
            f" {stored_estimate_text(entry['auroc_difference'])}, Brier"
            f" {stored_estimate_text(entry['brier_difference'])}"
            + ("." if entry["is_bar"] else "; no bar, as the fit leaves the answer out.")
        )
    unseen = report["unseen_domains"]
    if not unseen:
        yield "Leave one domain out: the labels are of one domain."
        return
    for name, entry in {"all": unseen["all"], **unseen["domains"]}.items():
        label = "Leave one domain out, all" if name == "all" else f"Without labels of {name!r}"
        counts_text = f"{entry['n']} labels, {entry['n_positive']} acceptable"
        if entry["auroc"] is None:
            yield f"{label} ({counts_text}): {entry.get('reason') or 'none can be predicted'}."
            continue
        length_text = (
            f"; length alone {stored_estimate_text(entry['auroc_length'])}"
            if entry["auroc_length"]
            else ""
        )
        yield (
            f"{label} ({counts_text}): AUROC {stored_estimate_text(entry['auroc'])}, Brier"
            f" {stored_estimate_text(entry['brier'])}{length_text}."
        )


def stored_estimate_text(estimate: Mapping[str, Any]) -> str:
    """Return a stored estimate with its interval as text."""
    from cotlab.figures.style import interval_text

    return interval_text(estimate["point"], estimate["lo"], estimate["hi"])
