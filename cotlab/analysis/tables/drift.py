"""Tables of the figures of drift, from a stored check and the feature vectors behind it."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pandas as pd

from cotlab.analysis.tables.declare import Choice, FigureData, FigureTable, NoFigure
from cotlab.analysis.view import RunView
from cotlab.figures.drift import SAMPLES, band_half_width
from cotlab.review.release.drift import feature_values
from cotlab.review.release.drift_check import DriftCheck, drift_from_json
from cotlab.store.calibrators import drift_checks
from cotlab.store.database import Store

MAX_PANELS = 12
"""So many features' distributions stand in one figure."""
MAX_LINES, MAX_CHECKS = 6, 40
"""So many features and so many checks, the newest, stand in the figure over time."""
_DIGITS = 9


def score_rows(check: DriftCheck) -> pd.DataFrame:
    """Return a row a feature, those that moved first: PSI, KS, null quantiles, limits, p-values."""
    order = {name: index for index, name in enumerate(compared_features(check))}
    return pd.DataFrame(
        [
            {
                "feature": feature.name,
                "psi": feature.drift.psi.value,
                "psi_hi": feature.drift.psi.null_hi,
                "psi_limit": check.psi,
                "psi_p": feature.psi_adjusted,
                "ks": feature.drift.ks.value,
                "ks_hi": feature.drift.ks.null_hi,
                "ks_limit": check.ks,
                "ks_p": feature.ks_adjusted,
                "kl": feature.drift.kl.value,
                "kl_hi": feature.drift.kl.null_hi,
                "kl_p": feature.drift.kl.p,
                "alert": feature.alert,
                "n_reference": feature.drift.n_reference,
                "n_current": feature.drift.n_current,
                "reason": feature.drift.reason or None,
            }
            for feature in sorted(
                check.features, key=lambda feature: order.get(feature.name, len(order))
            )
        ]
    )


def time_rows(checks: Sequence[DriftCheck]) -> pd.DataFrame:
    """Return PSI and KS of features over checks of one reference.

    Parameters
    ----------
    checks : sequence of DriftCheck
        Of one reference, in the order in which they were made; the last ``MOST_CHECKS`` count.

    Returns
    -------
    DataFrame
        A row for each check and each of ``lines``: ``place`` (from 0)``, at`` (what part of a
        series it is, else when it was made, UTC) and the columns of ``score_rows``; PSI in nats, KS
        in [0, 1], None where a feature could not be compared.
    """
    checks = list(checks)[-MAX_CHECKS:]
    names = charted_features(checks)
    frames = []
    for index, check in enumerate(checks):
        rows = score_rows(check)
        rows = rows[rows["feature"].isin(names)]
        frames.append(rows.assign(place=index, at=check.label or f"{check.at:%Y-%m-%d %H:%M}"))
    if not frames:
        return pd.DataFrame(columns=["place", "at", "feature", "reason"])
    table = pd.concat([part.astype(object) for part in frames])
    order = {name: k for k, name in enumerate(names)}
    return table.sort_values(
        "feature", key=lambda column: column.map(order), kind="stable"
    ).reset_index(drop=True)


def charted_features(checks: Sequence[DriftCheck]) -> list[str]:
    """Return the features of the figure over time: most alerts first, then largest KS."""
    alerts: dict[str, int] = {}
    far: dict[str, float] = {}
    for check in checks:
        for feature in check.features:
            alerts[feature.name] = alerts.get(feature.name, 0) + int(feature.alert)
            far[feature.name] = max(
                far.get(feature.name, -1.0),
                -1.0 if feature.drift.ks.value is None else feature.drift.ks.value,
            )
    known = [name for name in far if far[name] >= 0]
    return sorted(known, key=lambda name: (-alerts[name], -far[name]))[:MAX_LINES]


def stored_checks(store: Store, reference: Sequence[str]) -> list[DriftCheck]:
    """Return the stored checks of a reference (run ids, in any order), the oldest first."""
    table = drift_checks(store)
    same = [set(runs) == set(reference) for runs in table["reference"]]
    return [drift_from_json(json.loads(text)) for text in table.loc[same, "result"]][::-1]


def time_note(checks: Sequence[DriftCheck]) -> str:
    """Return what the figure over time leaves out, in a sentence; "" where nothing."""
    every = {
        feature.name
        for check in checks
        for feature in check.features
        if feature.drift.ks.value is not None
    }
    gone = sorted(every - set(charted_features(checks)))
    sentences = [f"Not drawn: {', '.join(gone)}."] if gone else []
    if len(checks) > MAX_CHECKS:
        sentences.append(f"The last {MAX_CHECKS} of {len(checks)} checks.")
    return " ".join(sentences)


def distribution_rows(
    values: pd.DataFrame, check: DriftCheck, features: Sequence[str] | None = None
) -> pd.DataFrame:
    """Return the distribution function of each feature on each side, a row a distinct value.

    Parameters
    ----------
    values : DataFrame
        As ``cotlab.review.release.drift.feature_values`` gives them.
    check : DriftCheck
    features : sequence of str, optional
        The first ``MOST_PANELS`` that were tested where none are named, those that raise the alert
        first.
    """
    chosen = list(features) if features is not None else compared_features(check)[:MAX_PANELS]
    frames = []
    for feature in (feature for feature in check.features if feature.name in chosen):
        if feature.drift.reason:
            frames.append(
                pd.DataFrame(
                    [
                        {
                            "feature": feature.name,
                            "sample": "reference",
                            "n": 0,
                            "reason": feature.drift.reason,
                        }
                    ]
                )
            )
            continue
        for side in SAMPLES:
            side_values = values.loc[values["side"] == side, feature.name].dropna().round(_DIGITS)
            share = side_values.value_counts(normalize=True).sort_index().cumsum()
            frames.append(
                pd.DataFrame(
                    {
                        "feature": feature.name,
                        "sample": side,
                        "value": share.index,
                        "share": share.to_numpy(),
                        "band": band_half_width(len(side_values)),
                        "n": len(side_values),
                        "reason": None,
                    }
                )
            )
    order = {name: index for index, name in enumerate(chosen)}
    columns = ["feature", "sample", "value", "share", "band", "n", "reason"]
    if not frames:
        return pd.DataFrame(columns=columns)
    table = pd.concat([part.reindex(columns=columns).astype(object) for part in frames])
    return table.sort_values(
        "feature", key=lambda names: names.map(order), kind="stable"
    ).reset_index(drop=True)


def compared_features(check: DriftCheck) -> list[str]:
    """Return the features that could be compared: alerts first, then by how far they moved."""
    known = [feature for feature in check.features if not feature.drift.reason]
    known.sort(key=lambda feature: (not feature.alert, -(feature.drift.ks.value or 0.0)))
    return [feature.name for feature in known]


def _check(view: RunView) -> DriftCheck | NoFigure:
    checks = drift_checks(view.store, current=view.run_id)
    if checks.empty:
        return NoFigure(
            f"no check of drift looks at this run; type: cotlab drift REFERENCE {view.run_id}"
        )
    return drift_from_json(json.loads(checks["result"].iloc[0]))


def _against(check: DriftCheck) -> str:
    return f"Reference: {', '.join(check.reference)}; current: {', '.join(check.current)}."


def _scores(view: RunView, choice: Choice) -> FigureData | NoFigure:
    check = _check(view)
    return check if isinstance(check, NoFigure) else FigureData(score_rows(check), _against(check))


def _distributions(view: RunView, choice: Choice) -> FigureData | NoFigure:
    check = _check(view)
    if isinstance(check, NoFigure):
        return check
    return FigureData(distribution_rows(feature_values(view.store, check), check), _against(check))


def _over_time(view: RunView, choice: Choice) -> FigureData | NoFigure:
    check = _check(view)
    if isinstance(check, NoFigure):
        return check
    every = stored_checks(view.store, check.reference)
    return FigureData(
        time_rows(every), f"Reference: {', '.join(check.reference)}. {time_note(every)}".strip()
    )


DRIFT_OVER_TIME = FigureTable("drift_over_time", "run", _over_time, ("r_raw",))
DRIFT_SCORES = FigureTable("drift_scores", "run", _scores, ("r_raw",))
FEATURE_DISTRIBUTIONS = FigureTable("feature_distributions", "run", _distributions, ("r_raw",))
