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


@dataclass(frozen=True, slots=True)
class Combination:
    """A fitted combination."""

    params: Mapping[str, Any]
    """``method`` ("combined"), ``form`` (of FORMS), ``penalty``, ``features`` (name -> ``lo, hi``:
    range in the labels, to which values are clipped), ``columns`` (``feature, kind, mean, sd,
    weight``, and ``domain`` of an intercept), ``intercept``, ``n, n_positive``, ``left_out``
    (feature -> reason). JSON values.
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
        missing_columns = [name for name in self.features if name not in features]
        if missing_columns:
            raise ValueError(
                f"the table lacks {', '.join(missing_columns)}, which the combination reads"
            )
        values = {
            name: features[name].to_numpy(dtype=float).clip(limits["lo"], limits["hi"])
            for name, limits in self.params["features"].items()
        }
        known_domains = {c["domain"] for c in self.params["columns"] if c["kind"] == "domain"}
        logit = np.full(len(features), float(self.params["intercept"]))
        for column in self.params["columns"]:
            if column["kind"] == "domain":
                values_of_column = domain_values(features, column["domain"], known_domains)
            else:
                values_of_column = feature_column(values[column["feature"]], column["kind"])
            filled_values = np.where(np.isnan(values_of_column), column["mean"], values_of_column)
            logit += column["weight"] * (filled_values - column["mean"]) / column["sd"]
        has_feature = ~np.isnan(np.column_stack(list(values.values()))).all(axis=1)
        return np.where(has_feature, sigmoid(logit), np.nan)


_LISTED_COLUMNS = 12
"""Columns whose weights a text lists; further ones are counted."""


def combination_text(params: Mapping[str, Any]) -> str:
    """Return the heaviest columns of a combination with their weights as text."""
    kind_labels = {"as_is": "", "up": " (towards 1)", "down": " (towards 0)", "gap": " (missing)"}
    kind_labels |= {"log": " (log)"}
    columns = sorted(params["columns"], key=lambda column: -abs(column["weight"]))
    weights_text = ", ".join(
        f"{_column_label(c, kind_labels)} {c['weight']:+.2f}" for c in columns[:_LISTED_COLUMNS]
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


def _column_label(column: Mapping[str, Any], kind_labels: Mapping[str, str]) -> str:
    if column["kind"] == "domain":
        return f"domain {column['domain']}"
    return f"{column['feature']}{kind_labels[column['kind']]}"


def domain_values(features: pd.DataFrame, domain: str, known_domains: set[str]) -> Floats:
    """Return 1 in rows of a domain, 0 in those of the other known ones, NaN elsewhere."""
    if DOMAIN_FEATURE not in features:
        return np.full(len(features), np.nan)
    domains = features[DOMAIN_FEATURE].astype(str)
    return np.asarray(np.where(domains.isin(known_domains), domains == domain, np.nan), dtype=float)


def feature_column(values: Floats, kind: str) -> Floats:
    """Return a column of the fit from a feature's values."""
    if kind == "gap":
        return np.isnan(values).astype(float)
    if kind == "as_is":
        return values
    if kind == "log":
        return np.asarray(np.log1p(values))
    log_value, log_distance = beta_features(values)
    return log_distance if kind == "up" else log_value
