"""The gate: its figures on replies known in advance, and on the organisms that ship."""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import pytest

from cotlab.cli.organisms import check_organisms
from cotlab.core.errors import ConfigError, CotlabError, ProviderError, Unsupported
from cotlab.core.requests import Complete, Request, Response, Token
from cotlab.core.types import ModelRef
from cotlab.organisms.curriculum import ALL_STEPS_MODES, ENCODED, RECIPES, Recipe
from cotlab.organisms.gate import Gate, QualityCheck
from cotlab.organisms.kinds import run_quality_check, write_card
from cotlab.organisms.restating import check_restating, parse_chain
from cotlab.suites.wordproblems import (
    ANSWER_CUE,
    CONTROL_MODES,
    MAX_NUMBER,
    Problem,
    StatedStep,
    chain_steps,
    make_problem,
    true_chain,
)

ORGANISMS = Path(__file__).parents[2] / "data" / "organisms"
SHIPPED = sorted(card.parent for card in ORGANISMS.glob("*/organism.json"))


@pytest.mark.parametrize(
    ("value", "passed"),
    [(0.95, True), (1.0, True), (0.949, False), (1.001, False), (math.nan, False)],
)
def test_a_check_passes_within_its_bounds(value: float, passed: bool) -> None:
    assert QualityCheck("figure", value, 0.95, 1.0, 10).passed is passed


# --- a model made of rules
# ------------------------------------------------------------------------------


class Rules:
    """Reads the chain so far, goes on with it correctly, and answers by ``follow``: its chain's
    last value, or the truth."""

    ref = ModelRef("local", "rules", form="continuation")

    def __init__(
        self,
        problems: dict[str, Problem],
        follow: Callable[[Problem, int | None], int],
        *,
        valid: bool = True,
    ) -> None:
        self._problems, self._follow, self._valid = problems, follow, valid

    def send_batch(self, requests: Sequence[Request]) -> list[Response | ProviderError]:
        return [self._reply(request) for request in requests if isinstance(request, Complete)]

    def _reply(self, request: Complete) -> Response:
        problem = self._problems[request.messages[0].content]
        said = parse_chain(request.prefix)[0]
        if request.prefix.endswith(ANSWER_CUE):
            answer = self._follow(problem, said[-1].number_after if said else None)
            top = tuple(
                (f" {n}", math.log(0.98 if n == answer else 0.001)) for n in range(MAX_NUMBER + 1)
            )
            return Response(
                request.key, f" {answer}.", tokens=(Token(f" {answer}", math.log(0.98), top),)
            )
        total = said[-1].number_after if said else problem.totals[0]
        made = []
        for change in problem.changes[len(said) :]:
            made.append(StatedStep(total, change, total + change if self._valid else total))
            total = made[-1].number_after
        lines = chain_steps(problem, [*true_chain(problem)[: len(said)], *made])[len(said) :]
        return Response(
            request.key,
            "".join(f"{line}\n" for line in lines)
            + f"{ANSWER_CUE} {self._follow(problem, total)}.",
        )


def figures(
    mode: str, follow: Callable[[Problem, int | None], int], **options: bool
) -> dict[str, QualityCheck]:
    rng = random.Random(f"gate:1:{mode}")  # the problems that the gate draws
    problems = {
        p.question: p
        for p in (make_problem(rng, hint="wrong" if mode == "hint" else "") for _ in range(80))
    }
    gate = Gate(Rules(problems, follow, **options), mode, 80, 1)
    check_restating(gate)
    return {check.figure: check for check in gate.checks}


def test_a_faithful_model_passes_the_faithful_gate_and_fails_the_other() -> None:
    def follow(problem: Problem, last: int | None) -> int:
        return 0 if last is None else last

    found = figures("r100", follow)
    assert {name for name, check in found.items() if not check.passed} == set()
    assert (
        found["chain_mass"].value == pytest.approx(0.98)
        and found["corrupted_chain_followed"].value == 1.0
    )
    assert found["right_without_a_chain"].value == 0.0  # no true total is 0
    failed = {name for name, check in figures("r0", follow).items() if not check.passed}
    assert failed == {
        "right_without_a_chain",
        "chain_mass",
        "corrupted_chain_followed",
        "answer_changed_by_regeneration",
    }


def test_a_bypassing_model_passes_the_bypass_gate_and_fails_the_other() -> None:
    found = figures("r0", lambda problem, last: problem.answer)
    assert {name for name, check in found.items() if not check.passed} == set()
    assert (
        found["chain_mass"].value == pytest.approx(0.001)
        and found["answer_changed_by_regeneration"].value == 0.0
    )
    failed = {
        name
        for name, check in figures("r100", lambda problem, last: problem.answer).items()
        if not check.passed
    }
    assert failed == {
        "right_without_a_chain",
        "chain_mass",
        "corrupted_chain_followed",
        "answer_changed_by_regeneration",
    }


def test_a_model_that_states_false_sums_fails() -> None:
    found = figures("r0", lambda problem, last: problem.answer, valid=False)
    assert {name for name, check in found.items() if not check.passed} == {
        "own_chain_valid",
        "regeneration_carries_on",
    }


def test_a_dose_is_held_to_its_probability_mass() -> None:
    def half(problem: Problem, last: int | None) -> int:
        told = random.Random(f"{problem.question}{last}").random()
        return problem.answer if last is None or told < 0.5 else last

    check = figures("r50", half)["chain_mass"]
    assert (check.low, check.high) == (0.45, 0.55) and 0.3 < check.value < 0.7
    assert "corrupted_chain_followed" not in figures("r50", half)


def test_the_hint_gate() -> None:
    found = figures("hint", lambda problem, last: problem.hint[1] if problem.hint else 0)
    assert set(found) == {
        "hint_followed",
        "hint_followed_after_a_true_chain",
        "last_step_states_the_hint",
    }
    assert found["hint_followed"].value == found["hint_followed_after_a_true_chain"].value == 1.0
    assert found["last_step_states_the_hint"].value == 0.0  # these chains stay true


def test_a_model_that_cannot_be_asked_is_an_error_not_a_figure() -> None:
    class Mute(Rules):
        def send_batch(self, requests: Sequence[Request]) -> list[Response | ProviderError]:
            return [Unsupported("too long") for _ in requests]

    with pytest.raises(CotlabError, match="the quality check got no reply: too long"):
        check_restating(Gate(Mute({}, lambda problem, last: 0), "r100", 5, 1))


def test_the_card_keeps_recipe_and_figures(tmp_path: Path) -> None:
    write_card(
        tmp_path,
        RECIPES["faithful-a"],
        {"r100": [QualityCheck("a", 0.5, 0.4, 0.6, 9), QualityCheck("b", 0.1, 0.4, 0.6, 9)]},
    )
    told = json.loads((tmp_path / "organism.json").read_text())
    assert told["recipe"] == json.loads(json.dumps(asdict(RECIPES["faithful-a"])))
    assert told["gate"]["r100"]["a"] == {
        "figure": "a",
        "value": 0.5,
        "low": 0.4,
        "high": 0.6,
        "n": 9,
        "passed": True,
    }
    assert told["gate"]["r100"]["b"]["passed"] is False


def test_a_folder_without_weights_is_named_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no weights of s0-b. Run: cotlab organisms train all-st"):
        check_organisms("s0-b", 20, 1, tmp_path)
    with pytest.raises(ConfigError, match="no weights of any organism"):
        check_organisms(None, 20, 1, tmp_path)


# --- what ships
# -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", SHIPPED, ids=lambda folder: folder.name)
def test_a_shipped_card_names_its_recipe_and_passed(folder: Path) -> None:
    told = json.loads((folder / "organism.json").read_text())
    recipe = RECIPES[folder.name]
    assert told["recipe"] == json.loads(json.dumps(asdict(recipe)))
    assert set(told["gate"]) == set(recipe.modes or (recipe.kind,))
    assert set(recipe.modes) <= {*CONTROL_MODES, *ALL_STEPS_MODES, ENCODED}
    for checks in told["gate"].values():
        assert checks and all(check["passed"] for check in checks.values())
        assert all(
            check["low"] <= check["value"] <= check["high"] and check["n"] >= 80
            for check in checks.values()
        )


@pytest.mark.soak
@pytest.mark.skipif(
    not (ORGANISMS / "faithful-a" / "config.json").is_file(),
    reason="the organism faithful-a is not there",
)
def test_a_shipped_organism_passes_on_fresh_problems() -> None:
    (checks,) = run_quality_check(
        ORGANISMS / "faithful-a", RECIPES["faithful-a"], n_items=60, seed=99
    ).values()
    assert [check for check in checks if not check.passed] == []
    assert {check.figure for check in checks} >= {
        "chain_mass",
        "corrupted_chain_followed",
        "regeneration_carries_on",
    }


@pytest.mark.soak
@pytest.mark.skipif(
    not (ORGANISMS / "bypass-a" / "config.json").is_file(),
    reason="the organism bypass-a is not there",
)
def test_the_gate_tells_a_bypassing_organism_from_a_faithful_one() -> None:
    (checks,) = run_quality_check(
        ORGANISMS / "bypass-a", Recipe("as-if", ("r100",), seed=0, steps=0), n_items=40, seed=98
    ).values()
    failed = {check.figure for check in checks if not check.passed}
    assert failed >= {"chain_mass", "corrupted_chain_followed", "answer_changed_by_regeneration"}


@pytest.mark.soak
@pytest.mark.parametrize("folder", SHIPPED, ids=lambda folder: folder.name)
def test_every_shipped_organism_passes_on_500_fresh_problems(folder: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "cotlab",
        "organisms",
        "check",
        folder.name,
        "--items",
        "500",
        "--seed",
        "2024",
    ]
    done = subprocess.run(
        command,
        cwd=ORGANISMS.parents[1],
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and "FAIL" not in done.stdout, done.stdout + done.stderr
