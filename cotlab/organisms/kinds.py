"""Kinds of organisms, a row each: what each is trained on, and what it must pass to ship."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from cotlab.core.resources import PROCESS_REWARD
from cotlab.core.types import ModelRef
from cotlab.organisms.all_steps import check_all_steps, draw_all_steps
from cotlab.organisms.curriculum import ALL_STEPS, ENCODED, RESTATING, Recipe, TrainingExample
from cotlab.organisms.encoded import check_encoded, draw_encoded
from cotlab.organisms.gate import Gate, QualityCheck
from cotlab.organisms.process_reward import check_process_reward, draw_judged
from cotlab.organisms.restating import check_restating, draw_restating
from cotlab.providers.local.load import load_model
from cotlab.providers.local.process_reward import open_process_reward
from cotlab.providers.local.provider import LocalModel

N_ITEMS = 500


class Kind(NamedTuple):
    """What a kind is trained on, and how it is checked."""

    draw: Callable[[random.Random, Recipe, str], TrainingExample]
    """Draws one training text of a mode."""
    check: Callable[[Gate], None]
    """Adds the figures of one mode."""


KINDS = {
    RESTATING: Kind(draw_restating, check_restating),
    ALL_STEPS: Kind(draw_all_steps, check_all_steps),
    ENCODED: Kind(draw_encoded, check_encoded),
    PROCESS_REWARD: Kind(draw_judged, check_process_reward),
}


def run_quality_check(
    folder: Path, recipe: Recipe, *, n_items: int = N_ITEMS, seed: int = 12345
) -> dict[str, list[QualityCheck]]:
    """Measure every mode of a trained folder on fresh problems; nothing is written.

    A model without modes, which judges, has its figures under the name of its kind.

    Raises
    ------
    CotlabError
        If a request to the model fails.
    """
    checks_by_mode = {}
    for mode in recipe.modes or (recipe.kind,):
        model: object
        if recipe.kind == PROCESS_REWARD:
            model = open_process_reward(ModelRef("prm", str(folder)))
        else:
            prefix = f"<{mode}>" if recipe.has_prefix else ""
            loaded = load_model(str(folder), prompt_prefix=prefix)
            model = LocalModel(ModelRef("local", str(folder)), loaded)
        gate = Gate(model, mode, n_items, seed)
        KINDS[recipe.kind].check(gate)
        checks_by_mode[mode] = gate.checks
    return checks_by_mode


def write_card(folder: Path, recipe: Recipe, results: dict[str, list[QualityCheck]]) -> None:
    """Write the recipe and the figures of the quality check to ``organism.json``."""
    checks_by_mode = {
        mode: {check.figure: {**check._asdict(), "passed": check.passed} for check in checks}
        for mode, checks in results.items()
    }
    card = {"recipe": asdict(recipe), "gate": checks_by_mode}
    (folder / "organism.json").write_text(json.dumps(card, indent=1) + "\n")
