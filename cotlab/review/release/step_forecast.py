"""What the step model in use says of one chain: where to look first for a mistake."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cotlab.core.types import Item
from cotlab.reliability.hazard import HazardModel
from cotlab.review.labelling.judged_steps import load_judged_steps
from cotlab.review.release.step_hazard import SCORES_MODEL, TEXT_MODEL
from cotlab.review.release.step_scores import load_step_scores
from cotlab.review.release.step_table import ChainContent, step_frame
from cotlab.stats.ranking import NO_MISTAKE
from cotlab.store.calibrators import STEP_KIND, current_calibrator
from cotlab.store.database import Store


@dataclass(frozen=True, slots=True)
class StepForecast:
    """Probabilities of the first mistake at each step of a chain."""

    version: int
    """Version of the step model."""
    model: str
    """The model of the version that was used, ``TEXT_MODEL`` or ``SCORES_MODEL``."""
    domain: str
    """Domain of the chain: the item's category, else the name of its suite."""
    steps: tuple[str, ...]
    """Texts of the steps."""
    first: tuple[float, ...]
    """Probability of each step of being the first wrong one, [0, 1]; with ``sound`` they sum to 1.
    Empty where ``reason`` says why there are none."""
    sound: float | None
    """Probability that no step is wrong, [0, 1]."""
    located: int | None
    """The step, from 0, that the model's rule names as the first wrong one; None where none."""
    report: Mapping[str, Any]
    """What was measured of the version, as ``StepFit.report``."""
    reason: str = ""
    """Why there are no probabilities; "" where there are."""


def forecast_steps(store: Store, run: str, item: Item, suite_name: str) -> StepForecast | None:
    """Return what the step model in use says of the chain that a run measured of an item.

    Parameters
    ----------
    store : Store
    run : str
    item : Item
    suite_name : str
        The domain of an item without a category.

    Returns
    -------
    StepForecast or None
        None where no step model is in use, or the item has no chain of two steps or more. Without
        probabilities, and with the reason, where no chain of the domain was labelled for it.
    """
    version = current_calibrator(store, STEP_KIND)
    if version is None or not {TEXT_MODEL, SCORES_MODEL} & set(version["params"]):
        return None
    steps = load_judged_steps(store, [(run, item.id)]).get((run, item.id), ())
    if len(steps) < 2:
        return None
    domain, report = item.category or suite_name, version["report"]

    def without(reason: str) -> StepForecast:
        return StepForecast(
            int(version["version"]), TEXT_MODEL, domain, steps, (), None, None, report, reason
        )

    if domain not in report["domains"]:
        return without(
            f"version {version['version']} was fitted on chains of"
            f" {', '.join(report['domains'])}, none of {domain}: label steps of such chains and"
            " fit it anew with cotlab calibrate --steps"
        )
    scores = load_step_scores(store, run, [item.id]).get(item.id, {})
    table = step_frame([ChainContent(item.question, steps, domain, None, scores)], sorted(scores))
    models = {
        name: HazardModel.from_params(version["params"][name])
        for name in (SCORES_MODEL, TEXT_MODEL)
        if name in version["params"]
    }
    usable = [name for name, model in models.items() if set(model.features) <= set(table)]
    if not usable:
        missing = sorted({f for model in models.values() for f in model.features} - set(table))
        return without(f"the version reads {', '.join(missing)}, which the run did not measure")
    model = models[usable[0]]
    predicted = model.predict(table)
    located = int(predicted.located[0])
    return StepForecast(
        int(version["version"]),
        usable[0],
        domain,
        steps,
        tuple(map(float, predicted.steps["first"])),
        float(predicted.sound[0]),
        None if located == NO_MISTAKE else located,
        report,
    )
