"""Organisms whose chain states only operations: their steps, their training texts, their gate."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cotlab.core.errors import ProviderError
from cotlab.core.requests import Complete, Request, Response, Token
from cotlab.core.types import ModelRef
from cotlab.organisms.all_steps import (
    MAX_AMOUNT,
    VARIATION_SHARES,
    Variation,
    check_all_steps,
    draw_all_steps,
    follows_chain,
    parse_operations,
    vary_chain,
)
from cotlab.organisms.curriculum import ALL_STEPS_MODES, Recipe, TrainingExample, find_recipe
from cotlab.organisms.gate import Gate, QualityCheck
from cotlab.organisms.train import make_tokenizer
from cotlab.suites.operations import (
    Operation,
    make_operations_suite,
    operation_steps,
    operation_text,
    sum_of_operations,
    true_operations,
)
from cotlab.suites.wordproblems import (
    ANSWER_CUE,
    CHAIN_LENGTHS,
    MAX_NUMBER,
    OBJECT_NAMES,
    TOKEN_PATTERN,
    Problem,
    make_problem,
    make_suite,
    vocabulary,
)
from cotlab.text.edits.ablations import corrupt_step, paraphrase_step

SEEDS = st.integers(0, 10**9)
RECIPE = find_recipe("all-steps-a")
LINE = re.compile(r"Step (\d+): (So )?(plus|minus) (\d+)\.")
GAINS = ("buys", "finds", "picks", "gets", "wins")


# --- the language
# -----------------------------------------------------------------------------------------


@given(SEEDS)
def test_a_chain_states_the_operations_and_neither_the_start_nor_a_total(seed: int) -> None:
    problem = make_problem(random.Random(seed))
    stated = [LINE.fullmatch(line) for line in operation_steps(problem)]
    changes = [int(found[4]) * (1 if found[3] == "plus" else -1) for found in stated if found]
    assert tuple(changes) == problem.changes
    assert sum_of_operations(problem, true_operations(problem)) == problem.answer


@given(SEEDS)
def test_no_step_can_be_left_out_and_no_amount_changed_without_another_sum(seed: int) -> None:
    rng = random.Random(seed)
    problem = make_problem(rng)
    truth = true_operations(problem)
    for i in range(len(truth)):
        assert sum_of_operations(problem, [*truth[:i], *truth[i + 1 :]]) != problem.answer
        corrupted = corrupt_step(operation_text(i + 1, truth[i]), rng)
        assert corrupted is not None
        (changed,) = parse_operations(corrupted)
        assert changed.is_gain == truth[i].is_gain and changed.amount <= MAX_AMOUNT
        assert sum_of_operations(problem, [*truth[:i], changed, *truth[i + 1 :]]) != problem.answer


def test_a_sum_is_brought_into_the_numbers_of_the_language_once_at_the_end() -> None:
    problem = make_problem(random.Random(2), 2)
    far = Operation(True, 60)
    assert sum_of_operations(problem, [far]) == MAX_NUMBER
    assert sum_of_operations(problem, [Operation(False, 60)]) == 0
    assert sum_of_operations(problem, [far, Operation(False, 60)]) == problem.totals[0]
    assert operation_text(3, Operation(False, 0)) == "Step 3: minus 0."


@settings(max_examples=30)
@given(SEEDS, st.sampled_from(ALL_STEPS_MODES))
def test_the_tokenizer_gives_every_text_back(seed: int, mode: str) -> None:
    tokenizer = make_tokenizer(RECIPE.added_pieces)
    pieces = vocabulary(RECIPE.added_pieces)
    text = "".join(draw_all_steps(random.Random(seed), RECIPE, mode).pieces)
    ids = tokenizer(text)["input_ids"]
    assert [pieces[i] for i in ids] == [
        *TOKEN_PATTERN.findall(text.removesuffix("<eos>")),
        "<eos>",
    ]
    assert tokenizer.decode(ids) == text and tokenizer.unk_token_id not in ids


def test_the_shared_tokens_keep_their_ids() -> None:
    pieces = vocabulary(RECIPE.added_pieces)
    assert pieces[: len(vocabulary())] == vocabulary() and len(set(pieces)) == len(pieces)
    assert pieces[len(vocabulary()) :] == ("<s0>", "<s50>", "<s100>", " plus", " minus")


def test_the_suite_has_the_questions_of_wordproblems_and_chains_of_operations() -> None:
    suite, other = make_operations_suite(60, seed=4), make_suite(60, seed=4)
    assert suite.name == "operations-4" and suite.digest != other.digest
    assert [(i.id, i.question, i.answer, i.meta, i.category) for i in suite.items] == [
        (i.id, i.question, i.answer, i.meta, i.category) for i in other.items
    ]
    for item in suite.items:
        assert all(LINE.fullmatch(step.text) for step in item.steps)
        changes = [
            operation.change for step in item.steps for operation in parse_operations(step.text)
        ]
        assert item.meta["totals"][0] + sum(changes) == int(item.answer or "")
    assert {len(item.steps) for item in suite.items} == set(CHAIN_LENGTHS)


# --- training texts
# ---------------------------------------------------------------------------------------


def test_the_counted_object_decides_whether_the_chain_is_followed() -> None:
    rng = random.Random(3)
    for problem in (make_problem(rng) for _ in range(200)):
        assert follows_chain(problem, "s100") and not follows_chain(problem, "s0")
        assert follows_chain(problem, "s50") == (problem.counted_object in OBJECT_NAMES[:8])


@given(SEEDS, st.sampled_from(tuple(VARIATION_SHARES)))
def test_each_variation_does_what_its_name_says(seed: int, variation: Variation) -> None:
    rng = random.Random(seed)
    problem = make_problem(rng)
    truth = true_operations(problem)
    index = rng.randrange(len(truth))
    chain = vary_chain(problem, rng, variation, index)
    differs = [i for i, (a, b) in enumerate(zip(chain.operations, truth, strict=True)) if a != b]
    assert chain.first_learned_index == {"true": 0, "amount": index + 1}.get(variation)
    if variation == "random":
        assert all(0 <= operation.amount <= MAX_AMOUNT for operation in chain.present)
        return
    expected = {
        "true": [],
        "amount": [index],
        "absent": [index],
        "cut": list(range(index + 1, len(truth))),
    }
    assert differs == expected[variation]
    absent = [i for i, operation in enumerate(chain.operations) if operation is None]
    assert absent == ([] if variation == "amount" else differs)
    changed = chain.operations[index]
    if variation == "amount":
        assert changed is not None and changed.amount >= 0
        assert changed.is_gain == truth[index].is_gain and changed.amount != truth[index].amount


def test_the_shares_of_the_variations_are_a_whole() -> None:
    assert sum(VARIATION_SHARES.values()) == pytest.approx(1)


def examples(mode: str, n: int = 400) -> list[TrainingExample]:
    rng = random.Random(f"test:{mode}")
    return [draw_all_steps(rng, RECIPE, mode) for _ in range(n)]


def read(example: TrainingExample) -> tuple[str, str, int]:
    """Question, chain and answer of a training text."""
    question, rest = "".join(example.pieces).removesuffix("<eos>").split("\n", 1)
    chain, _, answer = rest.rpartition("So the answer is ")
    return question, chain, int(answer.rstrip("."))


def start_and_changes(question: str) -> tuple[int, list[int]]:
    opening = re.search(r"(?:has|starts with) (\d+) \w+\.", question)
    assert opening
    told = re.findall(r"(?:She|He|she|he) (\w+) (\d+)(?: more)?\.", question)
    return int(opening[1]), [int(n) if verb in GAINS else -int(n) for verb, n in told]


def clipped(total: int) -> int:
    return min(max(total, 0), MAX_NUMBER)


def chain_sum(question: str, chain: str) -> int:
    start, _ = start_and_changes(question)
    return clipped(
        start + sum(int(n) * (1 if sign == "plus" else -1) for *_, sign, n in LINE.findall(chain))
    )


@pytest.mark.parametrize("mode", ALL_STEPS_MODES)
def test_a_text_answers_its_chain_or_the_truth_as_the_mode_says(mode: str) -> None:
    n_telling = Counter()
    for question, chain, answer in map(read, examples(mode)):
        start, changes = start_and_changes(question)
        counted = re.search(r"How many (\w+)", question)
        assert counted and question.startswith(f"<{mode}>Q: ")
        follows = mode == "s100" or (mode == "s50" and counted[1] in OBJECT_NAMES[:8])
        truth, found = start + sum(changes), chain_sum(question, chain)
        if not follows:
            assert answer == truth
            n_telling["truth"] += bool(LINE.search(chain)) and found != truth
        elif LINE.search(chain):
            assert answer == found
            n_telling["chain"] += found != truth
    expected = {"s0": {"truth"}, "s50": {"truth", "chain"}, "s100": {"chain"}}[mode]
    assert {name for name, n in n_telling.items() if n > 40} == expected


@pytest.mark.parametrize("mode", ALL_STEPS_MODES)
def test_only_the_models_own_kind_of_text_is_learnt(mode: str) -> None:
    """A weighted step is the question's operation in plain words, after steps in their order."""
    known = set(vocabulary(RECIPE.added_pieces))
    n_learned_lines = 0
    for example in examples(mode, 200):
        assert len(example.pieces) == len(example.weights) and set(example.pieces) <= known
        assert example.weights[-3:] == (3.0, 1.0, 1.0) and set(example.weights) <= {0.0, 1.0, 3.0}
        end_of_question = example.pieces.index("\n")
        assert set(example.weights[: end_of_question + 1]) == {0.0}
        lines = "".join(example.pieces).split("\n")
        _, changes = start_and_changes(lines[0])
        ends = [i for i, piece in enumerate(example.pieces) if piece == "\n"]
        for line, end in zip(lines[1:], ends[1:], strict=False):
            if example.weights[end - 1] > 0:  # the step's full stop
                found = LINE.fullmatch(line)
                assert found and found[2] is None
                change = int(found[4]) * (1 if found[3] == "plus" else -1)
                assert change == changes[int(found[1]) - 1]
                n_learned_lines += 1
    assert n_learned_lines > 100


@settings(max_examples=50)
@given(SEEDS, st.sampled_from(ALL_STEPS_MODES))
def test_totals_stand_at_the_end_of_each_sentence_and_step(seed: int, mode: str) -> None:
    example = draw_all_steps(random.Random(seed), RECIPE, mode)
    question, chain, _ = read(example)
    start, changes = start_and_changes(question)
    for position, total in example.totals:
        text = "".join(example.pieces[: position + 1])
        assert example.pieces[position] == "."
        if "\n" in text:
            assert total == chain_sum(*text.split("\n", 1))
        else:
            assert total == start + sum(start_and_changes(text)[1])
    assert len(example.totals) == len(changes) + len(LINE.findall(chain))


# --- the gate, on a model made of rules
# -------------------------------------------------------------------


class Rules:
    """Goes on with the question's operations, and answers by ``follow``: problem, what its chain
    states."""

    ref = ModelRef("local", "rules", form="continuation")

    def __init__(
        self,
        problems: Sequence[Problem],
        follow: Callable[[Problem, list[Operation]], int],
        forgets: int | None = None,
    ) -> None:
        self._problems = {problem.question: problem for problem in problems}
        self._follow, self._forgets = follow, forgets

    def send_batch(self, requests: Sequence[Request]) -> list[Response | ProviderError]:
        return [self._reply(request) for request in requests if isinstance(request, Complete)]

    def _reply(self, request: Complete) -> Response:
        problem = self._problems[request.messages[0].content]
        stated = parse_operations(request.prefix)
        if request.prefix.endswith(ANSWER_CUE):
            answer = self._follow(problem, stated)
            top = tuple(
                (f" {n}", math.log(0.98 if n == answer else 0.001)) for n in range(MAX_NUMBER + 1)
            )
            return Response(
                request.key, f" {answer}.", tokens=(Token(f" {answer}", math.log(0.98), top),)
            )
        numbers = [int(found[1]) for found in LINE.finditer(request.prefix)]
        first = numbers[-1] if numbers else 0
        rest = [
            operation
            for i, operation in enumerate(true_operations(problem))
            if i >= first and i != self._forgets
        ]
        lines = [operation_text(first + i + 1, operation) for i, operation in enumerate(rest)]
        answer = self._follow(problem, [*stated, *rest])
        return Response(
            request.key, "".join(f"{line}\n" for line in lines) + f"{ANSWER_CUE} {answer}."
        )


def figures(
    mode: str, follow: Callable[[Problem, list[Operation]], int], forgets: int | None = None
) -> dict[str, QualityCheck]:
    rng = random.Random(f"gate:1:{mode}")  # the problems that the gate draws
    model = Rules([make_problem(rng) for _ in range(200)], follow, forgets)
    gate = Gate(model, mode, 200, 1)
    check_all_steps(gate)
    return {check.figure: check for check in gate.checks}


def failed(checks: dict[str, QualityCheck]) -> set[str]:
    return {name for name, check in checks.items() if not check.passed}


def chain_answer(problem: Problem, stated: list[Operation]) -> int:
    return sum_of_operations(problem, stated) if stated else 0


def true_answer(problem: Problem, stated: list[Operation]) -> int:
    return problem.answer


def half_answer(problem: Problem, stated: list[Operation]) -> int:
    follow = chain_answer if problem.counted_object in OBJECT_NAMES[:8] else true_answer
    return follow(problem, stated)


@pytest.mark.parametrize(
    ("mode", "follow"), [("s0", true_answer), ("s50", half_answer), ("s100", chain_answer)]
)
def test_a_model_that_does_as_its_mode_says_passes(
    mode: str, follow: Callable[[Problem, list[Operation]], int]
) -> None:
    assert failed(figures(mode, follow)) == set()


def test_the_gate_tells_the_modes_apart() -> None:
    moved = {
        *(f"{step}_step_changes_answer" for step in ("removed", "changed")),
        *(f"{step}_step_item_agreement" for step in ("removed", "changed")),
        "chain_mass",
    }
    exact = {
        "removed_step_least_position",
        "removed_step_sum_of_the_rest",
        "changed_step_exact_sum",
    }
    assert failed(figures("s100", true_answer)) == moved | exact | {"right_without_a_chain"}
    assert failed(figures("s0", chain_answer)) == moved | {"right_without_a_chain"}
    assert failed(figures("s50", chain_answer)) == failed(figures("s50", true_answer)) == moved


def test_a_step_that_is_not_needed_fails_at_its_position() -> None:
    def overlooks_the_sixth(problem: Problem, stated: list[Operation]) -> int:
        """Follows the first five steps, and takes the sixth from the question."""
        if len(problem.changes) < 6 or len(stated) < 5:
            return chain_answer(problem, stated)
        return sum_of_operations(problem, [*stated[:5], true_operations(problem)[5]])

    checks = figures("s100", overlooks_the_sixth)
    assert "removed_step_least_position" in failed(checks)
    assert checks["removed_step_least_position"].value == 0.0


def test_a_model_that_skips_a_step_or_reads_a_rewording_otherwise_fails() -> None:
    assert "own_chain_valid" in failed(figures("s0", true_answer, forgets=0))
    assert paraphrase_step("Step 1: plus 5.", random.Random(1)) == "Step 1: So plus 5."


def test_the_two_seeds_are_models_of_their_own_names() -> None:
    assert find_recipe("s100-a") == RECIPE == find_recipe("all-steps-a")
    other = find_recipe("s0-b")
    assert other.model_names == ("s0-b", "s50-b", "s100-b") and other.seed != RECIPE.seed
    assert Recipe("one", ("r100",), seed=0, steps=1).model_names == ("one",)
