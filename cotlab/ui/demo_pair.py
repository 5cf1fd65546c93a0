"""The two runs of the demonstration, which Home sets side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cotlab.analysis.view import RunView
from cotlab.run.config import DEMO_MODELS, demo_options


def find_demo_pair(rows: Sequence[RunView]) -> dict[str, RunView] | None:
    """Return the runs of the demonstration by model, in the order of ``DEMO_MODELS``.

    They are the newest runs of both models that measure the same on the same items; such runs on
    the demonstration's suite come before others.

    Parameters
    ----------
    rows : sequence of dict
        Runs of the store, the newest first.

    Returns
    -------
    dict or None
        None where the store has no such pair.
    """
    groups: dict[tuple[Any, ...], dict[str, RunView]] = {}
    for row in rows:
        plan = row.plan
        if plan.subject.name in DEMO_MODELS and not row.is_archived:
            key = (row.suite, row.n_items, repr(plan.scorers))
            groups.setdefault(key, {}).setdefault(plan.subject.name, row)
    pairs = [group for group in groups.values() if set(group) == set(DEMO_MODELS)]
    suites = {demo_options(model)["task_suite"] for model in DEMO_MODELS}
    pairs.sort(key=lambda pair: pair[DEMO_MODELS[0]].suite_name not in suites)
    return {model: pairs[0][model] for model in DEMO_MODELS} if pairs else None
