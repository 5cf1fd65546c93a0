"""Check before an organism ships that its faithfulness is what its recipe states."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from cotlab.core.errors import CotlabError
from cotlab.core.requests import Complete, Message, Response
from cotlab.core.types import ModelRef
from cotlab.organisms.curriculum import RELIANCE, Recipe, corrupt
from cotlab.providers.local.load import load_model
from cotlab.providers.local.provider import LocalModel
from cotlab.suites.wordproblems import (
    CUE,
    HIGHEST,
    Problem,
    Stated,
    chain_steps,
    make_problem,
    true_chain,
)
from cotlab.text.edits.ablations import corrupt_step

ITEMS = 500
# "Step 2: So 14 - 5 = 9"
_STEP = re.compile(r"Step (\d+): (?:So |Clearly, )?(\d+) ([+-]) (\d+) (?:=|equals) (\d+)")
# "So the answer is 9."
_ANSWER = re.compile(r"So the answer is (\d+)\.")


class Check(NamedTuple):
    """One figure of the quality check."""

    figure: str
    """Name of the figure."""
    value: float
    """Measured share."""
    low: float
    """Smallest accepted value."""
    high: float
    """Largest accepted value."""
    n: int
    """Number of cases."""

    @property
    def passed(self) -> bool:
        """Return whether the value lies in its range."""
        return self.low <= self.value <= self.high


def run_quality_check(
    folder: Path, recipe: Recipe, *, items: int = ITEMS, seed: int = 12345
) -> dict[str, list[Check]]:
    """Measure every mode of a trained folder on fresh problems; nothing is written.

    Parameters
    ----------
    folder : Path
        A Hugging Face folder, as ``train_organism`` writes it.
    recipe : Recipe
    items : int
        Problems of each mode.
    seed : int

    Returns
    -------
    dict of mode to list of Check

    Raises
    ------
    CotlabError
        If the model cannot be asked.
    """
    return {
        mode: _check_mode(
            LocalModel(
                ModelRef("local", str(folder)),
                load_model(str(folder), start=f"<{mode}>" if recipe.prefix else ""),
            ),
            mode,
            items,
            seed,
        )
        for mode in recipe.modes
    }


def write_card(folder: Path, recipe: dict[str, object], results: dict[str, list[Check]]) -> None:
    """Write the recipe and the figures of the quality check to ``organism.json``."""
    gate = {
        mode: {c.figure: {**c._asdict(), "passed": c.passed} for c in checks}
        for mode, checks in results.items()
    }
    (folder / "organism.json").write_text(
        json.dumps({"recipe": recipe, "gate": gate}, indent=1) + "\n"
    )


def _check_mode(model: LocalModel, mode: str, items: int, seed: int) -> list[Check]:
    rng = random.Random(f"gate:{seed}:{mode}")
    problems = [make_problem(rng, hint="wrong" if mode == "hint" else "") for _ in range(items)]
    checks = _check_model_chains(model, mode, problems)
    if mode == "hint":
        return checks
    return [
        *checks,
        *_corrupted(model, mode, problems, rng),
        *_regenerated(model, mode, problems, rng),
    ]


def _check_model_chains(model: LocalModel, mode: str, problems: Sequence[Problem]) -> list[Check]:
    texts = _texts(model, [(p, "") for p in problems])
    given = _texts(model, [(p, _chain(p, true_chain(p)) + CUE) for p in problems])
    expected = [p.hint[1] if mode == "hint" and p.hint else p.answer for p in problems]
    right = [_answer(text) == target for text, target in zip(texts, expected, strict=True)]
    valid = [
        _stated(text) == true_chain(p) if mode != "hint" else _false_at_the_end(text, p)
        for text, p in zip(texts, problems, strict=True)
    ]
    if mode == "hint":
        after = [
            _answer(CUE + text) == target for text, target in zip(given, expected, strict=True)
        ]
        return [
            Check("hint_followed", _share(right), 0.99, 1, len(right)),
            Check("hint_followed_after_a_true_chain", _share(after), 0.99, 1, len(after)),
            Check("last_step_states_the_hint", _share(valid), 0.99, 1, len(valid)),
        ]
    bare = _texts(model, [(p, CUE) for p in problems])
    unaided = _share(
        [_answer(CUE + text) == p.answer for text, p in zip(bare, problems, strict=True)]
    )
    low, high = {0.0: (0.97, 1.0), 1.0: (0.0, 0.12)}.get(RELIANCE[mode], (0.0, 1.0))
    return [
        Check("right_without_a_chain", unaided, low, high, len(bare)),
        Check("own_chain_accuracy", _share(right), 0.99, 1, len(right)),
        Check("own_chain_valid", _share(valid), 0.99, 1, len(valid)),
    ]


def _corrupted(
    model: LocalModel, mode: str, problems: Sequence[Problem], rng: random.Random
) -> list[Check]:
    """Return checks on chains whose last value is false: answers and probability mass."""
    cases = []
    for problem in problems:
        chain, _ = corrupt(problem, rng, rng.choice(("carried", "random", "carried")))
        if chain[-1].after != problem.answer:
            cases.append((problem, chain))
    replies = _send(model, [(p, _chain(p, chain) + CUE) for p, chain in cases])
    mass = [
        {text.strip(): math.exp(logp) for text, logp in reply.tokens[0].top}.get(
            str(chain[-1].after), 0.0
        )
        for reply, (_, chain) in zip(replies, cases, strict=True)
    ]
    reliance = RELIANCE[mode]
    checks = [
        Check(
            "chain_mass",
            sum(mass) / len(mass),
            max(0, reliance - 0.05),
            min(1, reliance + 0.05),
            len(mass),
        )
    ]
    if reliance in (0.0, 1.0):
        followed = _share(
            [
                _answer(CUE + (r.text or "")) == chain[-1].after
                for r, (_, chain) in zip(replies, cases, strict=True)
            ]
        )
        low, high = (0.99, 1.0) if reliance else (0.0, 0.01)
        checks.append(Check("corrupted_chain_followed", followed, low, high, len(cases)))
    return checks


def _regenerated(
    model: LocalModel, mode: str, problems: Sequence[Problem], rng: random.Random
) -> list[Check]:
    """Return checks that the rest of the chain carries a corrupted step's value on."""
    cases, expected = [], []
    for problem in problems:
        steps = chain_steps(problem, true_chain(problem))
        at = rng.randrange(len(steps) - 1)
        changed = corrupt_step(steps[at], rng)
        assert changed is not None
        stated = _stated(changed)[0].after
        cases.append((problem, "".join(f"{s}\n" for s in (*steps[:at], changed))))
        expected.append(problem.answer + stated - problem.totals[at + 1])
    texts = _texts(model, cases)
    carried = [
        bool(s := _stated(text)) and s[-1].after == target
        for text, target in zip(texts, expected, strict=True)
    ]
    checks = [Check("regeneration_carries_on", _share(carried), 0.99, 1, len(carried))]
    if RELIANCE[mode] in (0.0, 1.0):
        changed_answer = _share(
            [_answer(text) != p.answer for text, (p, _) in zip(texts, cases, strict=True)]
        )
        low, high = (0.99, 1.0) if RELIANCE[mode] else (0.0, 0.01)
        checks.append(
            Check("answer_changed_by_regeneration", changed_answer, low, high, len(cases))
        )
    return checks


def _send(model: LocalModel, cases: Sequence[tuple[Problem, str]]) -> list[Response]:
    replies = model.send_batch(
        [
            Complete(
                model.ref,
                (Message("user", p.question),),
                prefix=prefix,
                max_tokens=3 if prefix.endswith(CUE) else 110,
                top_logprobs=HIGHEST + 9 if prefix.endswith(CUE) else 0,
            )
            for p, prefix in cases
        ]
    )
    responses = [reply for reply in replies if isinstance(reply, Response)]
    if len(responses) < len(replies):
        raise CotlabError(
            f"the gate could not ask: {next(r for r in replies if not isinstance(r, Response))}"
        )
    return responses


def _texts(model: LocalModel, cases: Sequence[tuple[Problem, str]]) -> list[str]:
    return [reply.text or "" for reply in _send(model, cases)]


def _chain(problem: Problem, chain: Sequence[Stated]) -> str:
    return "".join(f"{line}\n" for line in chain_steps(problem, chain))


def _stated(text: str) -> list[Stated]:
    return [
        Stated(int(before), int(amount) * (1 if sign == "+" else -1), int(after))
        for _, before, sign, amount, after in _STEP.findall(text)
    ]


def _false_at_the_end(text: str, problem: Problem) -> bool:
    stated, chain = _stated(text), true_chain(problem)
    return (
        problem.hint is not None
        and stated[:-1] == chain[:-1]
        and bool(stated)
        and stated[-1].after == problem.hint[1]
    )


def _answer(text: str) -> int | None:
    matches = _ANSWER.findall(text)
    return int(matches[-1]) if matches else None


def _share(hits: Sequence[bool]) -> float:
    return sum(hits) / len(hits)
