"""The tables of the figures of drift, from a check as it is kept and the feature vectors that it looked at."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pandas as pd

from cotlab.analysis.tables.source import Absent, Choice, Drawn, FigureTable, Source
from cotlab.figures.drift import SAMPLES, band_of
from cotlab.review.release.drift import DriftCheck, feature_values, from_json
from cotlab.store.database import Store
from cotlab.store.drift import drift_checks

MOST_PANELS = 12
"""So many features' distributions stand in one figure."""
MOST_LINES, MOST_CHECKS = 6, 40
"""So many features and so many checks, the newest, stand in the figure over time."""
_DIGITS = 9


def score_rows(check: DriftCheck) -> pd.DataFrame:
    """A row for each feature of a check, those that moved first: PSI and KS, their nulls' 95 % points, set points, p-values."""
    order = {name: place for place, name in enumerate(tested(check))}
    return pd.DataFrame(
        [
            {
                "feature": one.name, "psi": one.drift.psi.value, "psi_hi": one.drift.psi.null_hi, "psi_limit": check.psi,
                "psi_p": one.psi_adjusted, "ks": one.drift.ks.value, "ks_hi": one.drift.ks.null_hi, "ks_limit": check.ks,
                "ks_p": one.ks_adjusted, "kl": one.drift.kl.value, "kl_hi": one.drift.kl.null_hi, "kl_p": one.drift.kl.p,
                "alert": one.alert, "n_reference": one.drift.n_reference, "n_current": one.drift.n_current,
                "reason": one.drift.reason or None,
            }
            for one in sorted(check.features, key=lambda one: order.get(one.name, len(order)))
        ]
    )  # fmt: skip


def time_rows(checks: Sequence[DriftCheck]) -> pd.DataFrame:
    """PSI and KS of features over checks of one reference.

    Parameters
    ----------
    checks : sequence of DriftCheck
        Of one reference, in the order in which they were made; the last ``MOST_CHECKS`` count.

    Returns
    -------
    DataFrame
        A row for each check and each of ``lines``: ``place`` (from 0)``, at`` (what part of a series it is, else when it was
        made, UTC) and the columns of ``score_rows``; PSI in nats, KS in [0, 1], None where a feature could not be compared.
    """
    checks = list(checks)[-MOST_CHECKS:]
    names = lines(checks)
    parts = []
    for place, check in enumerate(checks):
        rows = score_rows(check)
        rows = rows[rows["feature"].isin(names)]
        parts.append(rows.assign(place=place, at=check.label or f"{check.at:%Y-%m-%d %H:%M}"))
    if not parts:
        return pd.DataFrame(columns=["place", "at", "feature", "reason"])
    whole = pd.concat([part.astype(object) for part in parts])
    order = {name: k for k, name in enumerate(names)}
    return whole.sort_values("feature", key=lambda own: own.map(order), kind="stable").reset_index(drop=True)


def lines(checks: Sequence[DriftCheck]) -> list[str]:
    """The features that stand in the figure over time: those that raised most alerts, then by how far they ever moved."""
    alerts: dict[str, int] = {}
    far: dict[str, float] = {}
    for check in checks:
        for one in check.features:
            alerts[one.name] = alerts.get(one.name, 0) + int(one.alert)
            far[one.name] = max(far.get(one.name, -1.0), -1.0 if one.drift.ks.value is None else one.drift.ks.value)
    known = [name for name in far if far[name] >= 0]
    return sorted(known, key=lambda name: (-alerts[name], -far[name]))[:MOST_LINES]


def checks_of(store: Store, reference: Sequence[str]) -> list[DriftCheck]:
    """The kept checks of this reference (run ids, in any order), the oldest first."""
    table = drift_checks(store)
    same = [set(runs) == set(reference) for runs in table["reference"]]
    return [from_json(json.loads(text)) for text in table.loc[same, "result"]][::-1]


def time_note(checks: Sequence[DriftCheck]) -> str:
    """What the figure over time leaves out, in a sentence; "" where it leaves out nothing."""
    every = {one.name for check in checks for one in check.features if one.drift.ks.value is not None}
    gone = sorted(every - set(lines(checks)))
    told = [f"Not drawn: {', '.join(gone)}."] if gone else []
    if len(checks) > MOST_CHECKS:
        told.append(f"The last {MOST_CHECKS} of {len(checks)} checks.")
    return " ".join(told)


def distribution_rows(values: pd.DataFrame, check: DriftCheck, features: Sequence[str] | None = None) -> pd.DataFrame:
    """The distribution function of each feature on each side, a row for each distinct value.

    Parameters
    ----------
    values : DataFrame
        As ``cotlab.review.release.drift.feature_values`` gives them.
    check : DriftCheck
    features : sequence of str, optional
        The first ``MOST_PANELS`` that were tested where none are named, those that raise the alert first.
    """
    chosen = list(features) if features is not None else tested(check)[:MOST_PANELS]
    parts = []
    for one in (one for one in check.features if one.name in chosen):
        if one.drift.reason:
            parts.append(pd.DataFrame([{"feature": one.name, "sample": "reference", "n": 0, "reason": one.drift.reason}]))
            continue
        for side in SAMPLES:
            own = values.loc[values["side"] == side, one.name].dropna().round(_DIGITS)
            share = own.value_counts(normalize=True).sort_index().cumsum()
            parts.append(
                pd.DataFrame(
                    {"feature": one.name, "sample": side, "value": share.index, "share": share.to_numpy(),
                     "band": band_of(len(own)), "n": len(own), "reason": None}
                )
            )  # fmt: skip
    order = {name: place for place, name in enumerate(chosen)}
    columns = ["feature", "sample", "value", "share", "band", "n", "reason"]
    if not parts:
        return pd.DataFrame(columns=columns)
    whole = pd.concat([part.reindex(columns=columns).astype(object) for part in parts])
    return whole.sort_values("feature", key=lambda names: names.map(order), kind="stable").reset_index(drop=True)


def tested(check: DriftCheck) -> list[str]:
    """The features that could be compared: those that raise the alert first, then by how far they moved."""
    known = [one for one in check.features if not one.drift.reason]
    known.sort(key=lambda one: (not one.alert, -(one.drift.ks.value or 0.0)))
    return [one.name for one in known]


def _check(source: Source) -> DriftCheck | Absent:
    found = drift_checks(source.store, current=source.run_id)
    if found.empty:
        return Absent(f"no check of drift looks at this run; type: cotlab drift REFERENCE {source.run_id}")
    return from_json(json.loads(found["result"].iloc[0]))


def _against(check: DriftCheck) -> str:
    return f"Reference: {', '.join(check.reference)}; current: {', '.join(check.current)}."


def _scores(source: Source, choice: Choice) -> Drawn | Absent:
    check = _check(source)
    return check if isinstance(check, Absent) else Drawn(score_rows(check), _against(check))


def _distributions(source: Source, choice: Choice) -> Drawn | Absent:
    check = _check(source)
    if isinstance(check, Absent):
        return check
    return Drawn(distribution_rows(feature_values(source.store, check), check), _against(check))


def _over_time(source: Source, choice: Choice) -> Drawn | Absent:
    check = _check(source)
    if isinstance(check, Absent):
        return check
    every = checks_of(source.store, check.reference)
    return Drawn(time_rows(every), f"Reference: {', '.join(check.reference)}. {time_note(every)}".strip())


DRIFT_OVER_TIME = FigureTable("drift_over_time", "run", _over_time, ("r_raw",))
DRIFT_SCORES = FigureTable("drift_scores", "run", _scores, ("r_raw",))
FEATURE_DISTRIBUTIONS = FigureTable("feature_distributions", "run", _distributions, ("r_raw",))
