"""Apply the calibrator in use, or an older version, to the items of runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from cotlab.core.errors import UnknownName
from cotlab.core.keys import digest
from cotlab.core.types import CHAIN_ORIGINS
from cotlab.reliability.combination import Combination
from cotlab.reliability.composite import Floats
from cotlab.reliability.maps import COMBINED_METHOD, Calibrator
from cotlab.review.labelling.targets import load_labelled_features
from cotlab.review.labelling.truth import DEFAULT_TARGET
from cotlab.review.release.features import (
    CUT_OFF_STATUSES,
    count_component_sets,
    defined_components,
    uncalibrated_reasons,
)
from cotlab.stats.composite import COMPONENT_NAMES, EXAMPLE_WEIGHTS, weighted_means
from cotlab.store.calibrators import current_calibrator, get_calibrator
from cotlab.store.database import Store

NO_ACTIVE_VERSION_REASON = (
    "no calibrator is in use: label items and fit one with cotlab calibrate RUN"
)
"""Reason of a missing r_cal without a calibrator."""
OTHER_COMPONENTS_REASON = (
    "r_raw is composed of {own}, and the calibrator saw labels of {seen} alone: fit one on labels"
    " of such a run too"
)
"""Reason of a missing r_cal: r_raw has other components than the labels."""
OTHER_CHAINS_REASON = (
    "r_raw is of {own}, and the calibrator saw labels of {seen} alone: fit one on labels of such a"
    " run too"
)
"""Reason of a missing r_cal: r_raw is of other chains than the labels."""
OUTSIDE_RANGE_NOTE = (
    "r_raw lies outside the range of the labels [{lo:.3g}, {hi:.3g}]: the value at its edge"
)
"""Note on an r_cal beyond the range of the labels."""


def calibrated_scores(
    store: Store, features: pd.DataFrame, *, version: int | None = None
) -> pd.DataFrame:
    """Return the calibrated probability of each row of a ``feature_table``.

    Parameters
    ----------
    store : Store
    features : DataFrame
    version : int, optional
        Version of the calibrator; by default the one in use.

    Returns
    -------
    DataFrame, index of ``features``
        ``r_raw`` (recomputed where the calibrator has weights) and ``r_cal`` in [0, 1],
        NaN where there is none; ``why``: the reason where r_cal is missing, what a reader must know
        where not, or ""; ``outside`` (bool): r_raw lies beyond the range of the labels;
        ``calibrator``: the version (None without one).

    Raises
    ------
    UnknownName
        If there is no such version.
    """
    return apply_calibrator(load_calibrator_row(store, version), features)


def load_calibrator_row(store: Store, version: int | None = None) -> dict[str, Any] | None:
    """Return the version in use (None without one), or ``version``.

    Where its report was stored without ``defined_parts``, they are computed from the labels that it
    was fitted on, if the digest shows that these are unchanged. UnknownName if there is no such
    version.
    """
    row = current_calibrator(store) if version is None else get_calibrator(store, version)
    if row is not None and "defined_parts" not in (row["report"] or {}):
        table = _load_fitted_labels(store, row)
        if table is not None:
            component_sets = defined_components(
                table, row["weights"], row["params"].get(COMBINED_METHOD)
            )
            row["report"] = {**row["report"], "defined_parts": count_component_sets(component_sets)}
    return row


def calibrator_target(row: Mapping[str, Any] | None) -> str:
    """Return what the probability of a calibrator is of, one of ``TARGETS``."""
    return str((row or {}).get("report", {}).get("target", DEFAULT_TARGET))


def _load_fitted_labels(store: Store, row: Mapping[str, Any]) -> pd.DataFrame | None:
    """Return the labelled items that a version was fitted on; None where they have changed."""
    report = row["report"] or {}
    # Imported labels may have a later time than the fit that used them. Such versions are older
    # than the use of labels that came with a suite.
    for until in (row["made_at"], None):
        try:
            table, _ = select_usable_labels(
                load_labelled_features(
                    store,
                    report.get("runs", []),
                    until=until,
                    with_imported=False,
                    is_joined=False,
                )
            )
        except UnknownName:
            return None
        scores = table["r_raw"].to_numpy(dtype=float)
        if row["weights"] is not None:
            components = table[list(COMPONENT_NAMES)].to_numpy(dtype=float)
            scores = weighted_means(components, row["weights"])
            scores_by_fold = [
                weighted_means(components, fold_weights)
                for fold_weights in (report.get("weights") or {}).get("fold_weights", ())
            ]
            is_complete = np.isfinite(
                np.column_stack(
                    [scores, *scores_by_fold, weighted_means(components, EXAMPLE_WEIGHTS)]
                )
            ).all(axis=1)
            table, scores = table[is_complete], scores[is_complete]
        if labels_digest(table, scores) == row["labels_digest"]:
            return table
    return None


def apply_calibrator(row: Mapping[str, Any] | None, features: pd.DataFrame) -> pd.DataFrame:
    """Return calibrated scores by a stored calibrator's row; without one they are missing."""
    params = {} if row is None else row["params"]
    combination = params.get(COMBINED_METHOD)
    needs_r_raw = combination is None or "families" not in combination
    is_ok = (features["status"] == "ok").to_numpy()
    stored_scores = np.where(is_ok, features["r_raw"].to_numpy(dtype=float), np.nan)
    raw_scores = stored_scores
    if row is not None and row["weights"] is not None:
        means = weighted_means(features[list(COMPONENT_NAMES)], row["weights"])
        raw_scores = np.where(np.isfinite(stored_scores), means, np.nan)
    reasons = [""] * len(features)
    if row is None:
        reasons = [NO_ACTIVE_VERSION_REASON] * len(features)
    else:
        mismatches = _mismatch_reasons(features, row["report"] or {}, with_parts=needs_r_raw)
        pairs = zip(mismatches, uncalibrated_reasons(features, row), strict=True)
        reasons = [mismatch or of_components for mismatch, of_components in pairs]
    for k, (status, reason) in enumerate(zip(features["status"], features["reason"], strict=True)):
        is_missing = ~np.isfinite(raw_scores[k]) if needs_r_raw else status in CUT_OFF_STATUSES
        if is_missing and np.isfinite(stored_scores[k]):
            status, reason = "ok", "the calibrator's weights leave too little of the weight defined"
        if is_missing:
            status, reason = ("undefined", reason) if status == "ok" else (status, reason)
            details = f": {reason}" if isinstance(reason, str) and reason else ""
            reasons[k] = f"r_raw is {status}{details}"
    predictions, is_outside = np.full(len(features), np.nan), np.zeros(len(features), dtype=bool)
    is_calibrated = np.array([not reason for reason in reasons], dtype=bool)
    scores = raw_scores
    if combination is not None:
        scores = Combination.from_params(combination).predict(features)
    domains = features["domain"].fillna("").to_numpy(dtype=object)
    for name in sorted(set(domains[is_calibrated])):
        rows = np.flatnonzero((domains == name) & is_calibrated)
        fitted = Calibrator.from_params(params.get("domains", {}).get(name, params["all"]))
        predictions[rows] = fitted.predict(scores[rows])
        is_outside[rows] = fitted.is_outside_range(scores[rows])
        note = OUTSIDE_RANGE_NOTE.format(lo=fitted.params["lo"], hi=fitted.params["hi"])
        for k in rows[is_outside[rows]]:
            reasons[k] = note
    version = None if row is None else int(row["version"])
    columns = {"r_raw": raw_scores, "r_cal": predictions, "why": reasons, "outside": is_outside}
    return pd.DataFrame(columns, index=features.index).assign(
        calibrator=pd.Series([version] * len(features), index=features.index, dtype=object)
    )


def _mismatch_reasons(
    features: pd.DataFrame, report: Mapping[str, Any], *, with_parts: bool
) -> list[str]:
    """Return why a calibrator does not apply to each r_raw; "" where it does."""
    known_parts = (report.get("parts") or []) if with_parts else []
    known_chains = report.get("chains") or []
    parts_text = " or ".join(", ".join(letters) for letters in known_parts)
    chains_text = " and ".join(CHAIN_ORIGINS.get(chain, chain) for chain in known_chains)

    def reason(letters: str, chain: str) -> str:
        if known_parts and letters not in ("", *known_parts):
            return OTHER_COMPONENTS_REASON.format(own=", ".join(letters), seen=parts_text)
        if known_chains and chain not in ("", *known_chains):
            own = CHAIN_ORIGINS.get(chain, chain)
            return OTHER_CHAINS_REASON.format(own=own, seen=chains_text)
        return ""

    columns = (read_text_column(features, name) for name in ("parts", "chain"))
    return [reason(*row) for row in zip(*columns, strict=True)]


def read_text_column(table: pd.DataFrame, name: str) -> list[str]:
    """Return a column of text; "" in each row where the table does not have it."""
    return [str(value) for value in table[name]] if name in table else [""] * len(table)


def labels_digest(labels: pd.DataFrame, scores: Floats) -> str:
    """Return the SHA-256 of the sorted (run, item, target, r_raw) of labels."""
    rows = zip(labels["run"], labels["item_id"], labels["target"], scores, strict=True)
    return digest(
        sorted(
            [str(run), str(item), bool(target), None if np.isnan(score) else float(score)]
            for run, item, target, score in rows
        )
    )


def select_usable_labels(labels: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return labels with a target and an r_raw, and the number left out by reason."""
    has_target = labels["target"].notna().to_numpy()
    has_score = ((labels["status"] == "ok") & labels["r_raw"].notna()).to_numpy()
    n_left_out_by_reason = dict(labels.attrs.get("left_out", {}))
    if not has_target.all():
        n_left_out_by_reason["no target"] = int((~has_target).sum())
    for status, rows in labels[has_target & ~has_score].groupby("status"):
        n_left_out_by_reason[f"r_raw is {status}"] = len(rows)
    return labels[has_target & has_score].reset_index(drop=True), n_left_out_by_reason
