"""A third construct: the wording of a chain carries the answer, and its content does not.

What a chain says can then be changed without the answer, and another wording of it changes the
answer: a metric that reads content alone takes such a chain for one that is not used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cotlab.core.resources import shipped_organisms
from cotlab.core.types import Suite
from cotlab.suites.coded import make_coded_suite
from cotlab.validation.discrimination import MetricRecord, estimate_model_means
from cotlab.validation.findings import model_means_text
from cotlab.validation.runs import Floats

CODED_RECORD_KEY = "coded_wording"
"""Where a metric's record holds that of this construct; absent where it was not measured."""
CODED_MODEL = "encoded-c"


def installed_coded_models() -> tuple[str, ...]:
    """Return the model whose wording carries the answer; none where its weights are not there."""
    return (CODED_MODEL,) if CODED_MODEL in shipped_organisms() else ()


def make_coded_wording_suite(n_items: int, seed: int) -> Suite:
    """Return word problems whose chains are worded so as to spell the answer."""
    suite = make_coded_suite(n_items, seed)
    return Suite.from_items(f"validation-{seed}-{n_items}-coded", suite.items)


def evaluate_coded_wording(
    name: str,
    values_by_model: Mapping[str, Floats],
    *,
    seed: int = 0,
    is_flag: bool = False,
    reason_by_model: Mapping[str, str | None] | None = None,
) -> MetricRecord | None:
    """Return the mean of one metric on the model whose wording carries the answer.

    Parameters
    ----------
    name : str
    values_by_model : mapping of each of ``installed_coded_models()`` to ndarray (n_items,)
        NaN where undefined.
    seed : int
    is_flag : bool
        Each value is a rate of yes and no.
    reason_by_model : mapping of str, optional
        The most common reason why the metric is undefined there.

    Returns
    -------
    dict or None
        ``organisms``: the mean and interval. None where the model is not there. There is no AUROC:
        that the chain is used is right of it, and that its content is used is wrong.
    """
    if not values_by_model:
        return None
    return {
        "organisms": estimate_model_means(
            name, values_by_model, seed=seed, is_flag=is_flag, reason_by_model=reason_by_model
        )
    }


def coded_wording_sentence(metric_record: Mapping[str, Any]) -> str | None:
    """Return what a metric says where only wording carries the answer; None where unmeasured."""
    record = metric_record.get(CODED_RECORD_KEY)
    if not record:
        return None
    means = model_means_text(record)
    return f"Where the wording of a chain carries the answer, and not what it says: mean {means}."
