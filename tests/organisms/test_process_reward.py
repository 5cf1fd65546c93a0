"""Chains with one known mistake, and the process reward model that is trained on them."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pytest

from cotlab.core.resources import shipped_organisms, shipped_reward_models
from cotlab.organisms.curriculum import RECIPES, ProcessRewardRecipe, Recipe
from cotlab.organisms.gate import QualityCheck
from cotlab.organisms.kinds import run_quality_check
from cotlab.organisms.process_reward import (
    LAYOUT,
    MISTAKE_KINDS,
    JudgedChain,
    label_chain,
    make_judged_chain,
)
from cotlab.organisms.train import make_tokenizer, train_organism

SHIPPED = Path(__file__).parents[2] / "data" / "organisms" / "prm-a"
# "Step 2: So 14 - 5 = 9"
STEP = re.compile(r"Step \d+: (?:So |Clearly, )?(\d+) ([+-]) (\d+) (?:=|equals) (\d+)")
# "She loses 3 more."
CHANGE = re.compile(r"(?:She|He|Then she|Then he) (\w+) (\d+)")
LOSSES = ("loses", "sells", "drops", "uses")


def measure(folder: Path, recipe: Recipe, **options: int) -> list[QualityCheck]:
    return run_quality_check(folder, recipe, **options)["process_reward"]


def draw(n: int, seed: int = 0) -> list[JudgedChain]:
    rng = random.Random(seed)
    return [make_judged_chain(rng) for _ in range(n)]


def first_wrong(chain: JudgedChain) -> int | None:
    """Read the question and the steps again, and compare."""
    question = chain.problem.question
    total = int(re.findall(r"\d+", question)[0])
    changes = [(-1 if verb in LOSSES else 1) * int(n) for verb, n in CHANGE.findall(question)]
    for index, (step, change) in enumerate(zip(chain.steps, changes, strict=True)):
        found = STEP.match(step)
        assert found is not None, step
        before, sign, amount, after = found.groups()
        stated = (int(before), int(f"{sign}{amount}"), int(after))
        if stated != (total, change, total + change):
            return index
        total += change
    return None


def test_the_first_wrong_step_is_the_first_that_differs_from_the_question() -> None:
    chains = draw(400)
    assert [chain.first_wrong for chain in chains] == [first_wrong(chain) for chain in chains]
    kinds = Counter(chain.kind for chain in chains)
    assert set(kinds) == {None, *MISTAKE_KINDS} and min(kinds.values()) > 20
    carried = [chain.is_carried for chain in chains if chain.first_wrong is not None]
    assert 0.3 < sum(carried) / len(carried) < 0.7
    assert chains == draw(400) != draw(400, 1)


def test_a_wrong_equation_is_only_that_of_a_wrong_sum() -> None:
    for chain in draw(200):
        if chain.first_wrong is None:
            continue
        before, sign, amount, after = STEP.findall(chain.steps[chain.first_wrong])[0]
        holds = int(before) + int(f"{sign}{amount}") == int(after)
        assert holds is (chain.kind != "sum")


def test_labels_stand_at_the_tokens_of_the_steps() -> None:
    tokenizer = make_tokenizer()
    for chain in draw(50):
        example = label_chain(chain)
        pieces = example.pieces[:-1]  # what stands last is read by nothing
        text = LAYOUT["question"].replace("{question}", chain.problem.question)
        assert "".join(pieces) == text + "".join(f"{s}\n" for s in chain.steps)
        assert len(example.weights) == len(example.pieces)
        n_question = len(tokenizer.encode(text))
        assert [i for i, *_ in example.labels] == list(range(n_question, len(pieces)))
        assert not any(example.weights[:n_question])
        ends = [label for label in example.labels if pieces[label[0]] == "\n"]
        first_wrong = len(chain.steps) if chain.first_wrong is None else chain.first_wrong
        assert [label for _, label, _ in ends] == [i < first_wrong for i in range(len(ends))]
        assert all(weight >= 1 for *_, weight in ends)


def test_a_recipe_trains_to_a_folder_that_is_read_as_it_is(tmp_path: Path) -> None:
    recipe = ProcessRewardRecipe("tiny", (), seed=1, steps=2, layers=4, batch=4)
    train_organism(recipe, tmp_path / "a")
    train_organism(recipe, tmp_path / "b")
    first, second = (
        [(check.figure, check.value) for check in measure(tmp_path / name, recipe, n_items=80)]
        for name in ("a", "b")
    )
    assert first == second
    assert dict(first)["step_auroc"] < 0.9  # two steps teach nothing: the gate would fail


def test_the_shipped_model_is_of_its_recipe_and_passed() -> None:
    card = json.loads((SHIPPED / "organism.json").read_text())
    assert card["recipe"] == json.loads(json.dumps(asdict(RECIPES["prm-a"])))
    assert all(check["passed"] for check in card["gate"]["process_reward"].values())
    assert shipped_reward_models() == {"prm-a": SHIPPED} and "prm-a" not in shipped_organisms()
    assert sum(path.stat().st_size for path in SHIPPED.iterdir()) < 1_200_000


def test_the_shipped_model_judges_fresh_chains() -> None:
    checks = measure(SHIPPED, RECIPES["prm-a"], n_items=200, seed=7)
    values = {check.figure: check.value for check in checks}
    assert values["step_auroc"] >= 0.99 and values["chain_auroc"] >= 0.99
    assert values["first_mistake_located"] >= 0.9 and values["false_alarms"] <= 0.05


@pytest.mark.soak
@pytest.mark.parametrize("seed", [99, 100])
def test_the_shipped_model_passes_its_gate_on_1000_fresh_chains(seed: int) -> None:
    checks = measure(SHIPPED, RECIPES["prm-a"], n_items=1000, seed=seed)
    assert [check for check in checks if not check.passed] == []
