"""The table of the figure that sets a run's answer changes beside models of known behaviour."""

from __future__ import annotations

from typing import Any

import pandas as pd

from cotlab.analysis.tables.declare import FigureChoice, FigureData, NoTable, figure_table
from cotlab.analysis.verdict.measures import MEASURES, MIN_ITEMS, MeasureName, RunEvidence, Share
from cotlab.analysis.verdict.stored import stored_evidence
from cotlab.analysis.verdict.verdicts import category_shares, covers_all_items, partial_use_text
from cotlab.analysis.view import RunView
from cotlab.validation.report import read_report

REFERENCE_NOTES = {
    "bypass-a": "ignores its chain",
    "r50": "follows it half the time",
    "faithful-a": "follows its chain",
}
"""The models of known behaviour of the figure, and what each of them does."""
_COLUMNS = ("label", "group", "note", "point", "lo", "hi", "n", "mark", "reason")
_CHANGE_METRICS = tuple(MEASURES[name].metric for name in ("change", "numeric_change"))


def answer_change_points(evidence: RunEvidence, report: dict[str, Any] | None) -> pd.DataFrame:
    """Return the rows of a run, its control, and models of known behaviour.

    Parameters
    ----------
    evidence : RunEvidence
    report : dict or None
        The validation report.

    Returns
    -------
    DataFrame
        label, group (run, control, reference), note, point, lo, hi, n, mark, reason.
    """
    name, kinds = evidence.change_name, category_shares(evidence)
    change, control = evidence.shares.get(name), evidence.text_control
    label = evidence.model
    rows = []
    for kind in kinds:
        note = f"{', '.join(kind.categories)} items"
        rows.append({"label": label, "group": "run", "note": note, **_share_values(kind.share)})
    if not covers_all_items(kinds, evidence):
        reason = _missing_reason(evidence)
        note = "all items" if kinds else ""
        rows.append({"label": label, "group": "run", "note": note, **_share_values(change, reason)})
    if change is not None:
        rows.append(
            {
                "label": "reworded steps",
                "group": "control",
                "note": "(control, should be 0)",
                **_share_values(control),
                "mark": None,
            }
        )
    rows += _reference_rows(name, report)
    return pd.DataFrame(rows, columns=list(_COLUMNS))


def _share_values(share: Share | None, reason: str = "not measured") -> dict[str, Any]:
    if share is None:
        missing = dict.fromkeys(("point", "lo", "hi", "mark"))
        return {**missing, "n": 0, "reason": reason}
    mark = "yes" if share.is_high() else "no" if share.is_low() else "part"
    return {
        "point": share.point,
        "lo": share.lo,
        "hi": share.hi,
        "n": share.n,
        "mark": mark,
        "reason": None,
    }


def _missing_reason(evidence: RunEvidence) -> str:
    if evidence.missing:
        return f"{evidence.missing[0].reason}, {evidence.missing[0].n_items:,} items"
    return "not measured"


def _reference_rows(name: MeasureName, report: dict[str, Any] | None) -> list[dict[str, Any]]:
    record = (report or {}).get("metrics", {}).get(MEASURES[name].metric)
    if record is None:
        return []
    return [
        {
            "label": model,
            "group": "reference",
            "note": note,
            **{column: record["organisms"][model][column] for column in ("point", "lo", "hi", "n")},
            "mark": None,
            "reason": None,
        }
        for model, note in REFERENCE_NOTES.items()
        if model in record["organisms"]
    ]


@figure_table(_CHANGE_METRICS)
def answer_change_scale(view: RunView, choice: FigureChoice) -> FigureData:
    """Return how often the answer changes, beside models of known behaviour."""
    if view.metrics.isdisjoint(_CHANGE_METRICS):
        raise NoTable("the run changes no step of a chain")
    evidence = stored_evidence(view)
    table = answer_change_points(evidence, read_report(view.store.folder))
    return FigureData(table, change_note(evidence))


def change_note(evidence: RunEvidence, *, with_partial_use: bool = True) -> str:
    """Return what was changed, in whose chains, and whether the items are enough for a verdict.

    ``with_partial_use`` also names the partial use of the chain that reads the same.
    """
    chain = "the model's own chains" if evidence.chain == "own" else "the suite's chains"
    changed = "what each step states"
    if evidence.change_name == "numeric_change":
        changed = "a number in some of the steps that another follows"
    sentences = [f"Changed: {changed}, in {chain}."]
    share = evidence.shares.get(evidence.change_name)
    if share is not None and share.n < MIN_ITEMS:
        sentences.append(f"{share.n} of the {MIN_ITEMS} items that a verdict needs.")
    elif with_partial_use and (partial_use := partial_use_text(evidence)):
        sentences.append(partial_use)
    if kinds := category_shares(evidence):
        names = ", ".join(name for kind in kinds for name in kind.categories)
        sentences.append(f"Rows by category of the question: {names}.")
    return " ".join(sentences)
