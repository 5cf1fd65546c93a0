"""A second construct: the chain needs its question, whose start value no step restates.

A metric that is right only where the chain alone fixes the answer tells the other organisms apart
and not these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from cotlab.core.resources import shipped_organisms
from cotlab.core.types import Suite
from cotlab.suites.operations import make_operations_suite
from cotlab.validation.discrimination import MetricRecord, estimate_model_means, organism_auroc
from cotlab.validation.findings import format_auroc, model_means_text
from cotlab.validation.models import measured_dose
from cotlab.validation.runs import Floats

RECORD_KEY = "needs_question"
"""Where a metric's record holds that of this construct; absent where it was not measured."""
PAIRS = {"a": ("s100-a", "s0-a"), "b": ("s100-b", "s0-b")}
"""A faithful and a bypassing model each, one checkpoint a pair."""
MIDDLE_MODELS = {"a": "s50-a", "b": "s50-b"}
"""Of the same checkpoints: faithful about half of the objects."""


def installed_pairs() -> dict[str, tuple[str, str]]:
    """Return the pairs of models whose weights are there."""
    organisms = shipped_organisms()
    return {seed: pair for seed, pair in PAIRS.items() if {*pair} <= organisms.keys()}


def installed_models() -> tuple[str, ...]:
    """Return the models of those pairs, and the middle one of each."""
    return tuple(
        model
        for seed, (faithful, bypass) in installed_pairs().items()
        for model in (faithful, MIDDLE_MODELS[seed], bypass)
    )


def make_needs_question_suite(n_items: int, seed: int) -> Suite:
    """Return word problems whose chains state operations only."""
    suite = make_operations_suite(n_items, seed)
    return Suite.from_items(f"validation-{seed}-{n_items}-operations", suite.items)


def evaluate_needs_question(
    name: str,
    values_by_model: Mapping[str, Floats],
    *,
    faithful_end: Literal["higher", "lower"] = "higher",
    seed: int = 0,
    is_flag: bool = False,
    reason_by_model: Mapping[str, str | None] | None = None,
) -> MetricRecord | None:
    """Return the record of one metric on the models whose chain needs its question.

    Parameters
    ----------
    name : str
    values_by_model : mapping of each of ``installed_models()`` to ndarray (n_items,)
        NaN where undefined.
    faithful_end : "higher" or "lower"
        The end of its range at which the metric puts faithful models.
    seed : int
    is_flag : bool
        Each value is a rate of yes and no.
    reason_by_model : mapping of str, optional
        For each model the most common reason why the metric is undefined there.

    Returns
    -------
    dict or None
        ``auroc`` of the faithful models against the bypassing ones, over all pairs and by pair, and
        the mean of each model. None where no model is there.
    """
    pairs = {
        seed_name: pair for seed_name, pair in PAIRS.items() if {*pair} <= values_by_model.keys()
    }
    if not pairs:
        return None
    installed = shipped_organisms()

    def compute_auroc(*chosen: tuple[str, str]) -> MetricRecord:
        return organism_auroc(
            [values_by_model[faithful] for faithful, _ in chosen],
            [values_by_model[bypass] for _, bypass in chosen],
            seed=seed,
            higher_is_faithful=faithful_end == "higher",
        )

    return {
        "auroc": compute_auroc(*pairs.values()),
        "auroc_pairs": {seed_name: compute_auroc(pair) for seed_name, pair in pairs.items()},
        "organisms": {
            model: {
                **estimate,
                "measured_dose": measured_dose(model) if model in installed else None,
            }
            for model, estimate in estimate_model_means(
                name, values_by_model, seed=seed, is_flag=is_flag, reason_by_model=reason_by_model
            ).items()
        },
    }


def needs_question_sentence(metric_record: Mapping[str, Any]) -> str | None:
    """Return what a metric says of models whose chain needs its question; None where unmeasured."""
    record = metric_record.get(RECORD_KEY)
    if not record:
        return None
    auroc = record["auroc"]
    auroc_text = (
        f"AUROC {format_auroc(auroc)}"
        if auroc["point"] is not None
        else f"no AUROC, {auroc['reason']}"
    )
    is_measured = any(organism["point"] is not None for organism in record["organisms"].values())
    means_text = f" (means: {model_means_text(record)})" if is_measured else ""
    return f"Where a chain needs its question: {auroc_text}{means_text}."
