"""Tables of the figures of drift, from a stored check and the feature vectors behind it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from itertools import chain

import pandas as pd

from cotlab.analysis.tables.declare import FigureChoice, FigureData, NoTable, figure_table
from cotlab.analysis.view import RunView
from cotlab.figures.drift import SAMPLE_NAMES, band_half_width
from cotlab.review.release.drift import DriftCheck, drift_from_json, load_feature_values
from cotlab.store.calibrators import list_drift_checks
from cotlab.store.database import Store

MAX_FEATURE_PANELS = 12
"""Most features of one figure of distributions."""
MAX_FEATURE_LINES, MAX_CHECKS = 6, 40
"""Most features and most checks, the newest, of the figure over time."""
_ROUNDING_DIGITS = 9


def score_rows(check: DriftCheck) -> pd.DataFrame:
    """Return a row a feature, those that moved first: PSI, KS, null quantiles, limits, p-values."""
    feature_order = compared_features(check)
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
                check.features,
                key=lambda drifted: [*feature_order, drifted.name].index(drifted.name),
            )
        ]
    )


def drift_over_time_rows(checks: Sequence[DriftCheck]) -> pd.DataFrame:
    """Return PSI and KS of features over checks of one reference.

    Parameters
    ----------
    checks : sequence of DriftCheck
        Of one reference, in the order in which they were made; the last ``MAX_CHECKS`` count.

    Returns
    -------
    DataFrame
        A row for each check and each of ``charted_features``: ``place`` (index from 0), ``at`` (the
        label of the check, else its time, UTC) and the columns of ``score_rows``; PSI in nats, KS
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
    table = pd.concat([frame.astype(object) for frame in frames])
    return table.sort_values(
        "feature", key=lambda column: column.map(names.index), kind="stable", ignore_index=True
    )


def charted_features(checks: Sequence[DriftCheck]) -> list[str]:
    """Return the features of the figure over time: most alerts first, then largest KS."""
    n_alerts: Counter[str] = Counter()
    largest_ks: dict[str, float] = {}
    for feature in chain.from_iterable(check.features for check in checks):
        n_alerts[feature.name] += feature.alert
        if feature.drift.ks.value is not None:
            previous_ks = largest_ks.get(feature.name, 0.0)
            largest_ks[feature.name] = max(previous_ks, feature.drift.ks.value)
    return sorted(largest_ks, key=lambda name: (-n_alerts[name], -largest_ks[name]))[
        :MAX_FEATURE_LINES
    ]


def stored_checks(store: Store, reference: Sequence[str]) -> list[DriftCheck]:
    """Return the stored checks of a reference (run ids, in any order), the oldest first."""
    table = list_drift_checks(store, reference=reference)
    return [drift_from_json(json.loads(text)) for text in table["result"]][::-1]


def drift_over_time_note(checks: Sequence[DriftCheck]) -> str:
    """Return what the figure over time leaves out, in a sentence; "" where nothing."""
    features = chain.from_iterable(check.features for check in checks)
    compared_names = {feature.name for feature in features if feature.drift.ks.value is not None}
    omitted_names = sorted(compared_names.difference(charted_features(checks)))
    sentences = [f"Not drawn: {', '.join(omitted_names)}."] if omitted_names else []
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
        As ``cotlab.review.release.drift.load_feature_values`` gives them.
    check : DriftCheck
    features : sequence of str, optional
        By default the first ``MAX_FEATURE_PANELS`` that were tested, alerts first.
    """
    chosen_features = (
        list(features) if features is not None else compared_features(check)[:MAX_FEATURE_PANELS]
    )
    columns = ["feature", "sample", "value", "share", "band", "n", "reason"]
    frames = []
    for feature in (feature for feature in check.features if feature.name in chosen_features):
        if feature.drift.reason:
            missing_row = (feature.name, "reference", None, None, None, 0, feature.drift.reason)
            frames.append(pd.DataFrame([missing_row], columns=columns))
            continue
        for side in SAMPLE_NAMES:
            side_values = (
                values.loc[values["side"] == side, feature.name].dropna().round(_ROUNDING_DIGITS)
            )
            cumulative_share = side_values.value_counts(normalize=True).sort_index().cumsum()
            frames.append(
                pd.DataFrame(
                    {
                        "feature": feature.name,
                        "sample": side,
                        "value": cumulative_share.index,
                        "share": cumulative_share.to_numpy(),
                        "band": band_half_width(len(side_values)),
                        "n": len(side_values),
                        "reason": None,
                    }
                )
            )
    if not frames:
        return pd.DataFrame(columns=columns)
    table = pd.concat([frame.reindex(columns=columns).astype(object) for frame in frames])
    return table.sort_values(
        "feature",
        key=lambda names: names.map(chosen_features.index),
        kind="stable",
        ignore_index=True,
    )


def compared_features(check: DriftCheck) -> list[str]:
    """Return the features that could be compared: alerts first, then by how far they moved."""
    comparable = [feature for feature in check.features if not feature.drift.reason]
    comparable.sort(key=lambda feature: (not feature.alert, -(feature.drift.ks.value or 0.0)))
    return [feature.name for feature in comparable]


def printed_run(store: Store, check: DriftCheck) -> str | None:
    """Return a current run whose newest stored check has the same numbers; None without one.

    The printed figures of that run are those of the check.
    """
    for run_id in check.current:
        newest = newest_check(store, run_id)
        if newest is not None and _numbers(newest) == _numbers(check):
            return run_id
    return None


def _numbers(check: DriftCheck) -> tuple[object, ...]:
    return check.reference, check.current, check.ks, check.psi, check.features


def newest_check(store: Store, run_id: str) -> DriftCheck | None:
    """Return the newest stored check that looks at a run; None where there is none."""
    checks = list_drift_checks(store, run_id=run_id, limit=1)
    return None if checks.empty else drift_from_json(json.loads(checks["result"].iloc[0]))


def _newest_check(view: RunView) -> DriftCheck:
    check = newest_check(view.store, view.run_id)
    if check is None:
        raise NoTable(
            f"no check of drift looks at this run; type: cotlab drift REFERENCE {view.run_id}"
        )
    return check


def _samples_note(check: DriftCheck) -> str:
    return f"Reference: {', '.join(check.reference)}; current: {', '.join(check.current)}."


@figure_table(("r_raw",))
def drift_scores(view: RunView, choice: FigureChoice) -> FigureData:
    """Return PSI and KS of each feature."""
    check = _newest_check(view)
    return FigureData(score_rows(check), _samples_note(check))


@figure_table(("r_raw",))
def feature_distributions(view: RunView, choice: FigureChoice) -> FigureData:
    """Return the distribution of each feature on both sides."""
    check = _newest_check(view)
    return FigureData(
        distribution_rows(load_feature_values(view.store, check), check), _samples_note(check)
    )


@figure_table(("r_raw",))
def drift_over_time(view: RunView, choice: FigureChoice) -> FigureData:
    """Return PSI and KS of features, check by check."""
    check = _newest_check(view)
    checks = stored_checks(view.store, check.reference)
    note = f"Reference: {', '.join(check.reference)}. {drift_over_time_note(checks)}".strip()
    return FigureData(drift_over_time_rows(checks), note)
