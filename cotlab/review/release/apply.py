"""Apply the calibrator in use, or an older version, to the items of runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from cotlab.core.errors import UnknownName
from cotlab.core.keys import digest
from cotlab.reliability.calibrator import (
    COMBINED,
    Calibrator,
)
from cotlab.reliability.combine import Combination
from cotlab.reliability.composite import Floats
from cotlab.review.labelling.targets import labelled
from cotlab.review.release.features import count_defined_parts, defined_parts, uncalibrated_reasons
from cotlab.stats.composite import COMPONENTS, WEIGHTS, weighted_means
from cotlab.store.calibrators import (
    calibrator,
    current_calibrator,
)
from cotlab.store.database import Store

NONE_YET = "no calibrator is in use: label items and fit one with cotlab calibrate RUN"
"""Reason of a missing r_cal without a calibrator."""
COMPOSED = (
    "r_raw is composed of {own}, and the calibrator saw labels of {seen} alone: fit one on labels"
    " of such a run too"
)
"""Reason of a missing r_cal: r_raw has other components than the labels."""
WHOSE = {"reference": "the suite's reference chains", "own": "the model's own chains"}
"""Origin of a chain, in words."""
CHAINED = (
    "r_raw is of {own}, and the calibrator saw labels of {seen} alone: fit one on labels of such a"
    " run too"
)
"""Reason of a missing r_cal: r_raw is of other chains than the labels."""
OUTSIDE = "r_raw lies outside the range of the labels [{lo:.3g}, {hi:.3g}]: the value at its edge"
"""Note on an r_cal beyond the range of the labels."""


def r_cal(store: Store, features: pd.DataFrame, *, version: int | None = None) -> pd.DataFrame:
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
        ``r_raw`` (recomputed where the calibrator has weights) and ``r_cal`` in [0, 1], NaN where
        there is none; ``why``: the reason where r_cal is missing, what a reader must know where
        not, or ""; ``outside`` (bool): r_raw lies beyond the range of the labels; ``calibrator``:
        the version (None without one).

    Raises
    ------
    UnknownName
        If there is no such version.
    """
    return apply_calibrator(version_of(store, version), features)


def version_of(store: Store, version: int | None = None) -> dict[str, Any] | None:
    """Return the version in use (None without one), or ``version``.

    Where its report was stored without ``defined_parts``, they are computed from the labels that it
    was fitted on, if the digest shows that these are unchanged. UnknownName if there is no such
    version.
    """
    row = current_calibrator(store) if version is None else calibrator(store, version)
    if row is not None and "defined_parts" not in (row["report"] or {}):
        table = _fitted_on(store, row)
        if table is not None:
            sets = defined_parts(table, row["weights"], row["params"].get(COMBINED))
            row["report"] = {**row["report"], "defined_parts": count_defined_parts(sets)}
    return row


def _fitted_on(store: Store, row: Mapping[str, Any]) -> pd.DataFrame | None:
    """Return the labelled items that a version was fitted on; None where they have changed."""
    report = row["report"] or {}
    # Imported labels may have a later time than the fit that used them.
    for until in (row["made_at"], None):
        try:
            table, _ = usable_labels(labelled(store, report.get("runs", []), until=until))
        except UnknownName:
            return None
        scores = table["r_raw"].to_numpy(dtype=float)
        if row["weights"] is not None:
            components = table[list(COMPONENTS)].to_numpy(dtype=float)
            scores = weighted_means(components, row["weights"])
            by_fold = [
                weighted_means(components, each)
                for each in (report.get("weights") or {}).get("fold_weights", ())
            ]
            fine = np.isfinite(np.column_stack([scores, *by_fold, example_means(components)])).all(
                axis=1
            )
            table, scores = table[fine], scores[fine]
        if labels_digest(table, scores) == row["labels_digest"]:
            return table
    return None


def apply_calibrator(row: Mapping[str, Any] | None, features: pd.DataFrame) -> pd.DataFrame:
    """Return ``r_cal`` by a calibrator of ``version_of``; by none where it is None."""
    ok = (features["status"] == "ok").to_numpy()
    stored = np.where(ok, features["r_raw"].to_numpy(dtype=float), np.nan)
    raw = stored
    if row is not None and row["weights"] is not None:
        raw = np.where(
            np.isfinite(raw),
            weighted_means(features[list(COMPONENTS)].to_numpy(dtype=float), row["weights"]),
            np.nan,
        )
    scored = raw
    if row is not None and COMBINED in row["params"]:
        scored = np.where(
            np.isfinite(raw),
            Combination.from_params(row["params"][COMBINED]).predict(features),
            np.nan,
        )
    n = len(features)
    predicted, reasons, outside = np.full(n, np.nan), [""] * n, np.zeros(n, dtype=bool)
    domains = features["domain"].fillna("").tolist()
    states = list(zip(features["status"].tolist(), features["reason"].tolist(), strict=True))
    for k in np.flatnonzero(~np.isfinite(raw)):
        status, reason = states[k] if not ok[k] else ("undefined", "")
        if np.isfinite(stored[k]):
            reason = "the calibrator's weights leave too little of the weight defined"
        reasons[k] = (
            f"r_raw is {status}: {reason}"
            if isinstance(reason, str) and reason
            else f"r_raw is {status}"
        )
    if row is None:
        reasons = [
            NONE_YET if np.isfinite(value) else text
            for value, text in zip(raw, reasons, strict=True)
        ]
    else:
        maps = {
            name: Calibrator.from_params(params)
            for name, params in row["params"].get("domains", {}).items()
        }
        overall = Calibrator.from_params(row["params"]["all"])
        unlike = zip(
            _mismatch_reasons(features, row["report"] or {}),
            uncalibrated_reasons(features, row),
            strict=True,
        )
        other = [kind or parts for kind, parts in unlike]
        known = np.isfinite(raw) & np.array([not text for text in other], dtype=bool)
        for k in np.flatnonzero(np.isfinite(raw) & ~known):
            reasons[k] = other[k]
        for name in sorted(set(domains)):
            in_domain, domain_map = (
                np.array([each == name for each in domains]) & known,
                maps.get(name, overall),
            )
            predicted[in_domain], outside[in_domain] = (
                domain_map.predict(scored[in_domain]),
                domain_map.outside(scored[in_domain]),
            )
            for k in np.flatnonzero(in_domain & outside):
                reasons[k] = OUTSIDE.format(lo=domain_map.params["lo"], hi=domain_map.params["hi"])
    number = None if row is None else int(row["version"])
    versions = pd.Series([number] * n, index=features.index, dtype=object)
    return pd.DataFrame(
        {
            "r_raw": raw,
            "r_cal": predicted,
            "why": reasons,
            "outside": outside,
            "calibrator": versions,
        },
        index=features.index,
    )


def _mismatch_reasons(features: pd.DataFrame, report: Mapping[str, Any]) -> list[str]:
    """Return why a calibrator does not apply to each r_raw; "" where it does."""
    seen, chains = report.get("parts") or [], report.get("chains") or []
    out = []
    for components, chain in zip(
        text_column(features, "parts"), text_column(features, "chain"), strict=True
    ):
        if seen and components not in ("", *seen):
            out.append(
                COMPOSED.format(
                    own=", ".join(components),
                    seen=" or ".join(", ".join(seen_chain) for seen_chain in seen),
                )
            )
        elif chains and chain not in ("", *chains):
            out.append(
                CHAINED.format(
                    own=WHOSE.get(chain, chain),
                    seen=" and ".join(WHOSE.get(seen_chain, seen_chain) for seen_chain in chains),
                )
            )
        else:
            out.append("")
    return out


def text_column(table: pd.DataFrame, name: str) -> list[str]:
    """Return a column of text; "" in each row where the table does not have it."""
    return [str(value) for value in table[name]] if name in table else [""] * len(table)


def labels_digest(labels: pd.DataFrame, scores: Floats) -> str:
    """Return the SHA-256 of the sorted (run, item, target, r_raw) of labels."""
    rows = zip(labels["run"], labels["item_id"], labels["target"], scores, strict=True)
    return digest(
        sorted(
            [str(run), str(item), bool(target), float(score)] for run, item, target, score in rows
        )
    )


def usable_labels(labels: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return labels with a target and an r_raw, and the number left out by reason."""
    known = labels["target"].notna().to_numpy()
    scored = ((labels["status"] == "ok") & labels["r_raw"].notna()).to_numpy()
    left_out = dict(labels.attrs.get("left_out", {}))
    if not known.all():
        left_out["no target"] = int((~known).sum())
    for status, rows in labels[known & ~scored].groupby("status"):
        left_out[f"r_raw is {status}"] = len(rows)
    return labels[known & scored].reset_index(drop=True), left_out


def example_means(components: Floats) -> Floats:
    """Return the weighted means of components by the example weights."""
    return weighted_means(components, WEIGHTS)
