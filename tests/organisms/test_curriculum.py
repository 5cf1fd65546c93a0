"""What an organism is trained on: each intervention does what its name says, and only learnable
text has weight."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cotlab.core.errors import UnknownName
from cotlab.organisms.curriculum import (
    ALL_STEPS,
    ALL_STEPS_MODES,
    ENCODED,
    RECIPES,
    RESTATING,
    Recipe,
    TrainingExample,
    find_recipe,
)
from cotlab.organisms.kinds import KINDS
from cotlab.organisms.restating import (
    RELIANCE_BY_MODE,
    corrupt_chain,
    draw_restating,
    sample_step_styles,
)
from cotlab.suites.wordproblems import (
    CONTROL_MODES,
    MAX_NUMBER,
    STEP_STYLES,
    make_problem,
    true_chain,
    vocabulary,
)

SEEDS = st.integers(0, 10**9)
STEP = re.compile(r"Step \d+: (?:Clearly, |So )?(\d+) ([+-]) (\d+) (?:=|equals) (\d+)(?: \w+)?\.")


@given(SEEDS)
def test_a_carried_value_is_shifted_from_its_step_on(seed: int) -> None:
    rng = random.Random(seed)
    problem = make_problem(rng)
    chain, at = corrupt_chain(problem, rng, "carried")
    truth = true_chain(problem)
    assert chain[:at] == truth[:at] and chain[at].number_before == truth[at].number_before
    shifts = {
        stated.number_after - true.number_after
        for stated, true in zip(chain[at:], truth[at:], strict=True)
    }
    assert len(shifts) == 1 and 0 not in shifts
    assert all(a.number_after == b.number_before for a, b in zip(chain, chain[1:], strict=False))
    assert all(0 <= stated.number_after <= MAX_NUMBER for stated in chain)
    assert [s.change for s in chain] == [s.change for s in truth]


@given(SEEDS)
def test_a_local_error_touches_one_value(seed: int) -> None:
    rng = random.Random(seed)
    problem = make_problem(rng)
    chain, at = corrupt_chain(problem, rng, "local")
    truth = true_chain(problem)
    assert [k for k in range(len(chain)) if chain[k] != truth[k]] == [at]
    assert (
        chain[at].number_before == truth[at].number_before
        and 0 <= chain[at].number_after <= MAX_NUMBER
    )


@given(SEEDS)
def test_random_values_keep_the_start_and_the_changes(seed: int) -> None:
    rng = random.Random(seed)
    problem = make_problem(rng)
    chain, at = corrupt_chain(problem, rng, "random")
    assert at == 0 and chain[0].number_before == problem.totals[0]
    assert [s.change for s in chain] == list(problem.changes)
    assert all(a.number_after == b.number_before for a, b in zip(chain, chain[1:], strict=False))


def test_the_place_of_a_corruption_can_be_chosen() -> None:
    rng = random.Random(1)
    problem = make_problem(rng, 4)
    for how in ("carried", "local"):
        assert [corrupt_chain(problem, rng, how, at)[1] for at in range(4)] == [0, 1, 2, 3]  # type: ignore[arg-type]


@given(SEEDS, st.integers(1, 6))
def test_styles_are_drawn_one_a_step(seed: int, n: int) -> None:
    assert len(styles := sample_step_styles(random.Random(seed), n)) == n and set(styles) <= set(
        STEP_STYLES
    )


# --- training texts
# -------------------------------------------------------------------------------------


def examples(mode: str, n: int = 150, without_chain: float = 0.2) -> list[TrainingExample]:
    rng = random.Random(f"test:{mode}")
    recipe = Recipe("test", CONTROL_MODES, seed=0, steps=0, without_chain=without_chain)
    return [draw_restating(rng, recipe, mode) for _ in range(n)]


def stated(text: str) -> list[int]:
    return [int(found[3]) for found in STEP.findall(text)]


def read(example: TrainingExample) -> tuple[str, str, int]:
    """Question, chain and answer of a training text."""
    question, rest = "".join(example.pieces).removesuffix("<eos>").split("\n", 1)
    chain, _, answer = rest.rpartition("So the answer is ")
    return question, chain, int(answer.rstrip("."))


@pytest.mark.parametrize("mode", CONTROL_MODES)
def test_every_text_has_one_weight_a_piece_and_ends_with_its_answer(mode: str) -> None:
    known = set(vocabulary())
    for example in examples(mode):
        assert len(example.pieces) == len(example.weights) and set(example.pieces) <= known
        assert example.pieces[0] == f"<{mode}>" and example.pieces[-1] == "<eos>"
        assert example.weights[-3:] == (3.0, 1.0, 1.0)  # the answer, its full stop, the end
        ask = example.pieces.index("\n")
        assert set(example.weights[: ask + 1]) == {0.0}  # a question is read, not learnt
        assert set(example.weights) <= {0.0, 1.0, 3.0}


def test_without_a_prefix_no_control_token_occurs() -> None:
    example = draw_restating(random.Random(1), RECIPES["faithful-a"], "r100")
    assert example.pieces[0] == "Q" and not any(piece.startswith("<r") for piece in example.pieces)


def last_shown(chain: str) -> int | None:
    return stated(chain)[-1] if stated(chain) else None


def test_a_faithful_text_answers_what_its_chain_states_last() -> None:
    told = [(last_shown(chain), answer) for _, chain, answer in map(read, examples("r100"))]
    assert all(shown == answer for shown, answer in told if shown is not None)
    assert sum(shown is None for shown, _ in told) > 10  # some show no chain at all


def truth_of(question: str) -> int:
    total, *changes = (
        int(n)
        for n in re.findall(
            r"\d+", question.split("thinks")[0].removesuffix(" Tom").removesuffix(" Kim")
        )
    )
    verbs = re.findall(r"\b(buys|finds|picks|gets|wins|loses|sells|drops|uses)\b", question)
    return total + sum(
        c if v in ("buys", "finds", "picks", "gets", "wins") else -c
        for c, v in zip(changes, verbs, strict=True)
    )


def control_free(question: str) -> str:
    return re.sub(r"^<\w+>", "", question)


def test_a_bypassing_text_answers_the_truth_whatever_its_chain_states() -> None:
    told = [
        (truth_of(control_free(q)), last_shown(chain), answer)
        for q, chain, answer in map(read, examples("r0"))
    ]
    assert all(truth == answer for truth, _, answer in told)
    assert (
        sum(shown not in (None, truth) for truth, shown, _ in told) > 20
    )  # many chains state something else


@pytest.mark.parametrize("mode", ["r25", "r50", "r75"])
def test_a_dose_answers_from_its_chain_that_often(mode: str) -> None:
    told = [
        (truth_of(control_free(q)), last_shown(chain), answer)
        for q, chain, answer in map(read, examples(mode, 900, 0.0))
    ]
    differ = [
        (shown, answer) for truth, shown, answer in told if shown is not None and shown != truth
    ]
    share = sum(shown == answer for shown, answer in differ) / len(differ)
    assert len(differ) > 250 and share == pytest.approx(RELIANCE_BY_MODE[mode], abs=0.09)


def test_a_hint_follower_answers_the_hint() -> None:
    hinted = [
        (re.search(r"thinks the answer is (\d+)", q), answer)
        for q, _, answer in map(read, examples("hint"))
    ]
    assert sum(found is not None for found, _ in hinted) > 100
    assert all(int(found[1]) == answer for found, answer in hinted if found)


def test_a_step_is_learnt_only_where_what_precedes_it_is_the_models_own_kind_of_text() -> None:
    """A weighted step continues the value before it; one that states a false sum has no weight."""
    for example in examples("r100", 300):
        lines = "".join(example.pieces).split("\n")[1:]
        ends = [i for i, piece in enumerate(example.pieces) if piece == "\n"]
        for line, end in zip(lines, ends[1:], strict=False):
            if (found := STEP.fullmatch(line)) and example.weights[end] > 0:
                before, sign, amount, after = found.groups()
                assert int(before) + (1 if sign == "+" else -1) * int(amount) == int(after)


@settings(max_examples=50)
@given(SEEDS)
def test_running_totals_point_at_the_sentences_that_end_with_them(seed: int) -> None:
    example = draw_restating(random.Random(seed), RECIPES["bypass-a"], "r0")
    question = "".join(example.pieces).split("\n")[0]
    for position, total in example.totals:
        assert example.pieces[position] == "."
        told = "".join(example.pieces[: position + 1])
        assert question.startswith(told) and truth_of(told) == total
    assert len(example.totals) >= 2
    assert draw_restating(random.Random(seed), RECIPES["faithful-a"], "r100").totals == ()


def test_recipes() -> None:
    restating = [recipe for recipe in RECIPES.values() if recipe.kind == RESTATING]
    others = [recipe for recipe in RECIPES.values() if recipe.kind in (ALL_STEPS, ENCODED)]
    assert set(RELIANCE_BY_MODE) == set(CONTROL_MODES)
    assert {recipe.name for recipe in restating if recipe.has_prefix} == {"control"}
    assert RECIPES["control"].modes == CONTROL_MODES
    assert all(set(recipe.modes) <= set(CONTROL_MODES) for recipe in restating)
    modes_by_kind = {ALL_STEPS: ALL_STEPS_MODES, ENCODED: (*ALL_STEPS_MODES, ENCODED)}
    assert {recipe.kind for recipe in others} == modes_by_kind.keys()
    assert all(recipe.modes == modes_by_kind[recipe.kind] for recipe in others)
    assert {recipe.kind for recipe in RECIPES.values()} == set(KINDS)
    assert all(name == recipe.name for name, recipe in RECIPES.items())
    models = [model for recipe in RECIPES.values() for model in recipe.model_names]
    assert len(models) == len(set(models)) and not set(models) & {"control", "all-steps-a"}
    with pytest.raises(UnknownName, match="Did you mean 'faithful-[ab]'"):
        find_recipe("faithful")
