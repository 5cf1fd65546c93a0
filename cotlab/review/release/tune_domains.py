"""Tune the composite's weights on the labels of each domain."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cotlab.reliability.combination import DOMAIN_FEATURE
from cotlab.reliability.composite import TunedWeights, tune_weights
from cotlab.reliability.maps import NotCalibrated
from cotlab.review.labelling.targets import load_labelled_features
from cotlab.review.labelling.truth import DEFAULT_TARGET
from cotlab.review.release.apply import select_usable_labels
from cotlab.review.release.combined_fit import require_labels
from cotlab.stats.composite import COMPONENT_NAMES
from cotlab.store.database import Store


def tune_weights_by_domain(
    store: Store,
    runs: Sequence[str] | None,
    *,
    objective: str = "auc",
    target: str = DEFAULT_TARGET,
    seed: int = 0,
) -> dict[str, TunedWeights | str]:
    """Tune weights on the labels of each domain.

    Parameters
    ----------
    store, runs, objective, target, seed
        As ``cotlab.review.release.calibrate.tune_weights_on_runs``.

    Returns
    -------
    dict
        Domain (the suite's name for items without one) → its weights, or why it has none.

    Raises
    ------
    UnknownName
        If there is no such run or target.
    """
    labels = load_labelled_features(store, runs, target=target)
    result: dict[str, TunedWeights | str] = {}
    for name, domain_labels in labels.groupby(DOMAIN_FEATURE, sort=True):
        domain_labels.attrs = {}
        usable_rows, left_out = select_usable_labels(domain_labels)
        y = usable_rows["target"].to_numpy(dtype=bool)
        try:
            require_labels(len(domain_labels), y, left_out, "an r_raw")
            result[str(name)] = tune_weights(
                usable_rows[list(COMPONENT_NAMES)].to_numpy(dtype=float),
                np.asarray(y, dtype=float),
                usable_rows["question"].tolist(),
                objective=objective,
                seed=seed,
            )
        except NotCalibrated as error:
            result[str(name)] = str(error)
    return result
