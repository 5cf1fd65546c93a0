"""A fitted combination of features: what it predicts, and its weights as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from cotlab.reliability.maps import COMBINED_METHOD, Floats, beta_features, sigmoid

DOMAIN_FEATURE = "domain_or_suite"
"""Column of domains, or the suite's name where an item has none: as a feature, intercepts."""
DOMAIN_COLUMNS = (DOMAIN_FEATURE, "domain")
"""Columns of names, not numbers."""


@dataclass(frozen=True, slots=True)
class Combination:
    """A fitted combination."""

    params: Mapping[str, Any]
    """``method`` ("combined"), ``penalty``, ``intercept``, ``columns`` (``feature, kind, mean, sd,
    weight``, and ``domain`` of an intercept), ``features`` (name -> ``lo, hi``: range in the
    labels, to which values are clipped), ``clip`` (standard deviations to which a column is
    clipped; versions without it clip none), ``n, n_positive``, ``left_out`` (feature -> reason).
    JSON values.
    """

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Combination:
        """Return the combination that ``params`` describe; ValueError where they describe none."""
        required_keys = {"columns", "features", "intercept"}
        if params.get("method") != COMBINED_METHOD or not required_keys <= set(params):
            raise ValueError(f"these are no parameters of a combination: {sorted(params)}")
        return cls(dict(params))

    @property
    def features(self) -> tuple[str, ...]:
        """Return the names of the features that it reads."""
        return tuple(self.params["features"])

    def predict(self, features: pd.DataFrame) -> Floats:
        """Return the probability of each row.

        Parameters
        ----------
        features : DataFrame (n rows)

        Returns
        -------
        ndarray (n,), [0, 1]
            NaN where none of the features is defined. A domain that the labels do not have counts
            as their mean.

        Raises
        ------
        ValueError
            If a column is missing.
        """
        require_columns(features, self.features, "the combination")
        has_feature = features[list(self.features)].notna().any(axis=1)
        return np.where(has_feature, sigmoid(linear_logit(self.params, features)), np.nan)


def require_columns(table: pd.DataFrame, names: tuple[str, ...], reader: str) -> None:
    """Raise ValueError where a table lacks columns that a model reads."""
    if missing_columns := [name for name in names if name not in table]:
        raise ValueError(f"the table lacks {', '.join(missing_columns)}, which {reader} reads")


def linear_logit(params: Mapping[str, Any], table: pd.DataFrame) -> Floats:
    """Return the logit of each row; a value that is not there, or an unknown domain, is a mean."""
    domains = {column["domain"] for column in params["columns"] if column["kind"] == "domain"}
    logit = np.full(len(table), float(params["intercept"]))
    reach = params.get("clip", np.inf)
    for column in params["columns"]:
        limits = params["features"].get(column["feature"], {})
        z = (column_values(table, column, limits, domains) - column["mean"]) / column["sd"]
        logit += column["weight"] * np.where(np.isfinite(z), np.clip(z, -reach, reach), 0.0)
    return logit


def column_values(
    table: pd.DataFrame,
    column: Mapping[str, Any],
    limits: Mapping[str, float],
    domains: set[str],
) -> Floats:
    """Return the values (n,) of a column of a fit; NaN where there is none."""
    name, kind = column["feature"], column["kind"]
    if name not in table:
        return np.full(len(table), np.nan)
    if kind == "domain":
        is_known, is_own = (table[name].isin(names) for names in (domains, [column["domain"]]))
        return np.asarray(np.where(is_known, is_own, np.nan), dtype=float)
    values = table[name].to_numpy(dtype=float)
    values = values.clip(limits.get("lo", -np.inf), limits.get("hi", np.inf))
    if kind == "gap":
        return np.asarray(np.isnan(values), dtype=float)
    if kind == "log":
        return np.asarray(np.log1p(np.maximum(values, 0.0)))
    if kind == "as_is":
        return np.asarray(values)
    log_value, log_distance = beta_features(values)
    return log_distance if kind == "up" else log_value


_LISTED_COLUMNS = 12
"""Columns whose weights a text lists; further ones are counted."""
_KIND_LABELS = {
    "as_is": "",
    "up": " (towards 1)",
    "down": " (towards 0)",
    "gap": " (missing)",
    "log": " (log)",
}


def combination_text(params: Mapping[str, Any]) -> str:
    """Return the heaviest columns of a combination with their weights as text."""
    columns = sorted(params["columns"], key=lambda column: -abs(column["weight"]))
    weights_text = ", ".join(
        f"{_column_label(column)} {column['weight']:+.2f}" for column in columns[:_LISTED_COLUMNS]
    )
    if len(columns) > _LISTED_COLUMNS:
        weights_text += f" and {len(columns) - _LISTED_COLUMNS} lighter ones"
    names_by_reason: dict[str, list[str]] = {}
    for name, reason in params["left_out"].items():
        names_by_reason.setdefault(reason, []).append(name)
    left_out_text = "; ".join(
        f"{', '.join(names)} {reason}" for reason, names in names_by_reason.items()
    )
    return f"weights of standardised columns: {weights_text}; ridge {params['penalty']:g}" + (
        f"; left out: {left_out_text}" if left_out_text else ""
    )


def _column_label(column: Mapping[str, Any]) -> str:
    if column["kind"] == "domain":
        return f"domain {column['domain']}"
    return f"{column['feature']}{_KIND_LABELS[column['kind']]}"
