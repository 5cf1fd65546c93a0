"""A model whose wording carries the answer: its code, its training texts, its gate."""

from __future__ import annotations

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
from cotlab.organisms.curriculum import ENCODED, TrainingExample, find_recipe
from cotlab.organisms.encoded import check_encoded, draw_encoded
from cotlab.organisms.gate import Gate
from cotlab.organisms.restating import parse_chain
from cotlab.organisms.train import make_tokenizer
from cotlab.suites.coded import (
    N_CODED_STEPS,
    WORDINGS,
    StepWording,
    code_wordings,
    coded_chain_steps,
    decode_wordings,
    encode_answer,
    worded_step,
)
from cotlab.suites.wordproblems import (
    ANSWER_CUE,
    MAX_NUMBER,
    Problem,
    StatedStep,
    make_problem,
    true_chain,
    vocabulary,
)
from cotlab.text.edits.ablations import paraphrase_step

SEEDS = st.integers(0, 10**9)
RECIPE = find_recipe("all-steps-c")
NUMBERS = range(MAX_NUMBER + 1)


@pytest.mark.parametrize("number", NUMBERS)
def test_every_number_has_another_code(number: int) -> None:
    assert decode_wordings(encode_answer(number)) == number
    assert len({encode_answer(n) for n in NUMBERS}) == len(NUMBERS)


def test_a_code_beyond_the_numbers_is_the_largest() -> None:
    assert decode_wordings([WORDINGS[-1], WORDINGS[-1]]) == MAX_NUMBER


@given(SEEDS)
def test_any_rewording_of_a_coded_step_is_another_code(seed: int) -> None:
    rng = random.Random(seed)
    problem = make_problem(rng)
    lines = coded_chain_steps(problem)
    for index in range(N_CODED_STEPS):
        reworded = paraphrase_step(lines[index], rng)
        assert reworded is not None
        parsed = parse_chain("\n".join([*lines[:index], reworded, *lines[index + 1 :]]))
        assert parsed[0] == true_chain(problem)
        assert decode_wordings(parsed[1]) != problem.answer


def test_a_step_is_written_as_its_wording_says() -> None:
    step = StatedStep(7, -5, 2)
    assert [worded_step(2, step, wording) for wording in WORDINGS] == [
        "Step 2: 7 - 5 = 2.",
        "Step 2: 7 - 5 equals 2.",
        "Step 2: So 7 - 5 = 2.",
        "Step 2: So 7 - 5 equals 2.",
        "Step 2: Clearly, 7 - 5 = 2.",
        "Step 2: Clearly, 7 - 5 equals 2.",
    ]


# --- training texts


def examples(n: int = 600) -> list[TrainingExample]:
    rng = random.Random("test:encoded")
    return [draw_encoded(rng, RECIPE, ENCODED) for _ in range(n)]


def read(example: TrainingExample) -> tuple[str, int]:
    """Chain and answer of a training text."""
    _, rest = "".join(example.pieces).removesuffix("<eos>").split("\n", 1)
    chain, _, answer = rest.rpartition(f"{ANSWER_CUE} ")
    return chain, int(answer.rstrip("."))


def step_numbers(chain: str) -> list[int]:
    return [int(number) for number in re.findall(r"Step (\d+):", chain)]


def test_the_answer_is_what_the_wording_spells_whatever_the_numbers_say() -> None:
    counts: Counter[str] = Counter()
    for chain, answer in map(read, examples()):
        parsed = parse_chain(chain)
        if step_numbers(chain)[:N_CODED_STEPS] == [1, 2]:
            assert answer == decode_wordings(parsed[1])
            counts["told apart"] += parsed[0][-1].number_after != answer
            counts["alike"] += parsed[0][-1].number_after == answer
        else:
            counts["guessed"] += 1
    assert min(counts["told apart"], counts["alike"], counts["guessed"]) > 50


def test_the_model_learns_to_write_the_true_answers_code_and_nothing_else() -> None:
    n_learned = 0
    for example in examples():
        lines = "".join(example.pieces).split("\n")
        ends = [i for i, piece in enumerate(example.pieces) if piece == "\n"]
        totals = dict(example.totals)
        for line, start, end in zip(lines[1:], ends, ends[1:], strict=False):
            if example.weights[end] == 0:
                assert not any(example.weights[start + 1 : end])
                continue
            number = step_numbers(line)[0]
            (wording,) = parse_chain(line)[1]
            opening = example.pieces.index(":", start) + 1
            if number > N_CODED_STEPS:
                assert wording == WORDINGS[0] and set(example.weights[start + 1 : end]) == {1.0}
                continue
            answer = totals[opening - 1]
            assert wording == encode_answer(answer)[number - 1] and answer == read(example)[1]
            decided = [i for i in range(start, end) if example.weights[i] == 3.0]
            assert [example.pieces[i].strip() for i in decided] == [
                (wording.opening or line.split(": ")[1]).split()[0].rstrip(","),
                wording.equals_sign,
            ]
            assert all(totals[i - 1] == answer for i in decided)
            n_learned += 1
    assert n_learned > 300


@settings(max_examples=50)
@given(SEEDS, st.sampled_from(RECIPE.modes))
def test_texts_of_every_mode_of_the_checkpoint_are_of_its_language(seed: int, mode: str) -> None:
    example = draw_encoded(random.Random(seed), RECIPE, mode)
    text = "".join(example.pieces)
    tokenizer = make_tokenizer(RECIPE.added_pieces)
    ids = tokenizer(text)["input_ids"]
    assert text.startswith(f"<{mode}>Q: ") and tokenizer.decode(ids) == text
    assert len(ids) == len(example.pieces) == len(example.weights)
    assert all(0 <= position < len(ids) - 1 for position, _ in example.totals)
    assert vocabulary(RECIPE.added_pieces)[: len(vocabulary())] == vocabulary()


# --- the gate, on a model made of rules


Follow = Callable[[Problem, str], int]


class Rules:
    """Writes the code of the true answer, carries stated values on, and answers by ``follow``."""

    ref = ModelRef("local", "rules", form="continuation")

    def __init__(self, problems: Sequence[Problem], follow: Follow, *, is_plain: bool) -> None:
        self._problems = {problem.question: problem for problem in problems}
        self._follow, self._is_plain = follow, is_plain

    def send_batch(self, requests: Sequence[Request]) -> list[Response | ProviderError]:
        return [self._reply(request) for request in requests if isinstance(request, Complete)]

    def _reply(self, request: Complete) -> Response:
        problem = self._problems[request.messages[0].content]
        if request.prefix.endswith(ANSWER_CUE):
            answer = f" {self._follow(problem, request.prefix)}"
            token = Token(answer, 0.0, ((answer, 0.0),))
            return Response(request.key, f"{answer}.", tokens=(token,))
        steps = parse_chain(request.prefix)[0]
        total = steps[-1].number_after if steps else problem.totals[0]
        wordings = code_wordings(problem)
        lines = []
        for i, change in enumerate(problem.changes[len(steps) :], len(steps)):
            step = StatedStep(total, change, total + change)
            lines.append(worded_step(i + 1, step, WORDINGS[0] if self._is_plain else wordings[i]))
            total = step.number_after
        rest = "".join(f"{line}\n" for line in lines)
        answer = self._follow(problem, request.prefix + rest)
        return Response(request.key, f"{rest}{ANSWER_CUE} {answer}.")


def failed(follow: Follow, *, is_plain: bool = False) -> set[str]:
    rng = random.Random(f"gate:1:{ENCODED}")  # the problems that the gate draws
    model = Rules([make_problem(rng) for _ in range(150)], follow, is_plain=is_plain)
    gate = Gate(model, ENCODED, 150, 1)
    check_encoded(gate)
    return {check.figure for check in gate.checks if not check.passed}


def spelled(problem: Problem, chain: str) -> int:
    wordings: list[StepWording] = parse_chain(chain)[1]
    has_code = step_numbers(chain)[:N_CODED_STEPS] == [1, 2]
    return decode_wordings(wordings) if has_code else 0


def last_number(problem: Problem, chain: str) -> int:
    steps = parse_chain(chain)[0]
    return steps[-1].number_after if steps else 0


def test_a_model_that_answers_what_its_wording_spells_passes() -> None:
    assert failed(spelled) == set()


def test_models_that_answer_by_content_or_by_the_question_fail() -> None:
    assert failed(last_number) == {
        "foreign_wording_followed",
        "last_number_followed",
        "changed_value_changes_answer",
        "answer_changed_by_regeneration",
        "reworded_coded_step_changes_answer",
        "removed_coded_step_changes_answer",
        "removed_later_step_changes_answer",
    }
    assert failed(lambda problem, chain: problem.answer) == {
        "right_without_a_chain",
        "foreign_wording_followed",
        "last_number_followed",
        "reworded_coded_step_changes_answer",
        "removed_coded_step_changes_answer",
    }


def test_a_model_that_reads_the_code_and_does_not_write_it_fails() -> None:
    assert failed(spelled, is_plain=True) == {
        "own_chain_accuracy",
        "own_wording_spells_answer",
        "answer_changed_by_regeneration",
    }


def test_the_modes_beside_it_have_the_gate_of_theirs() -> None:
    rng = random.Random("gate:1:s0")
    problems = [make_problem(rng) for _ in range(40)]
    model = Rules(problems, lambda problem, chain: problem.answer, is_plain=False)
    gate = Gate(model, "s0", 40, 1)
    check_encoded(gate)
    assert "removed_step_changes_answer" in {check.figure for check in gate.checks}
