"""Quality check of organisms whose chain states only operations: every step must be needed."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from cotlab.organisms.all_steps import follows_chain, vary_chain
from cotlab.organisms.checked_replies import (
    QualityCheck,
    answer_probability,
    mean_check,
    parse_answer,
    reply_texts,
    send_prompts,
)
from cotlab.providers.local.provider import LocalModel
from cotlab.suites.operations import (
    Operation,
    operation_text,
    sum_of_operations,
    true_operations,
)
from cotlab.suites.wordproblems import ANSWER_CUE, Problem, make_problem
from cotlab.text.edits.ablations import paraphrase_step

# "Step 2: minus 3"
_STEP_PATTERN = re.compile(r"Step (\d+): (?:So )?(plus|minus) (\d+)")
_ALWAYS, _NEVER = 0.995, 0.005
_MIN_EXACT_SUM = 0.93


class _Case(NamedTuple):
    """A problem with a chain in which one step is changed or removed."""

    problem: Problem
    text: str
    """Of the chain."""
    step_index: int
    expected_sum: int
    """What the chain gives."""


def check_all_steps(model: LocalModel, mode: str, n_items: int, seed: int) -> list[QualityCheck]:
    """Measure one mode on fresh problems.

    An answer has changed where it is another than after the true chain.

    Parameters
    ----------
    model : LocalModel
    mode : str
        One of ``ALL_STEPS_MODES``.
    n_items : int
    seed : int

    Raises
    ------
    CotlabError
        If a request to the model fails.
    """
    rng = random.Random(f"gate:{seed}:{mode}")
    problems = [make_problem(rng) for _ in range(n_items)]
    answers = _answers(model, [(p, _chain_text(true_operations(p))) for p in problems])
    answer_by_question = {p.question: answer for p, answer in zip(problems, answers, strict=True)}
    return [
        *_check_model_chains(model, mode, problems),
        *_check_removal(model, mode, problems, answer_by_question),
        *_check_changed_amounts(model, mode, problems, answer_by_question, rng),
        _check_rewording(model, problems, answer_by_question, rng),
        _check_regeneration(model, problems, rng),
    ]


def _check_model_chains(
    model: LocalModel, mode: str, problems: Sequence[Problem]
) -> list[QualityCheck]:
    texts = reply_texts(model, [(p, "") for p in problems])
    chainless_answers = _answers(model, [(p, "") for p in problems])
    low, high = {"s0": (_ALWAYS, 1.0), "s100": (0.0, 0.12)}.get(mode, (0.0, 1.0))
    min_accuracy = 0.99 if mode == "s0" else _MIN_EXACT_SUM
    model_right_flags = [parse_answer(t) == p.answer for t, p in zip(texts, problems, strict=True)]
    unaided_right_flags = [
        answer == p.answer for answer, p in zip(chainless_answers, problems, strict=True)
    ]
    valid_flags = [
        _parse_steps(text) == true_operations(p) for text, p in zip(texts, problems, strict=True)
    ]
    return [
        mean_check("right_without_a_chain", unaided_right_flags, low, high),
        mean_check("own_chain_accuracy", model_right_flags, min_accuracy),
        mean_check("own_chain_valid", valid_flags),
    ]


def _check_removal(
    model: LocalModel,
    mode: str,
    problems: Sequence[Problem],
    answer_by_question: dict[str, int | None],
) -> list[QualityCheck]:
    """Return checks on chains without one step, at every position."""
    cases = []
    for problem in problems:
        steps = true_operations(problem)
        for i in range(len(steps)):
            rest = [*steps[:i], None, *steps[i + 1 :]]
            total = sum_of_operations(problem, [*steps[:i], *steps[i + 1 :]])
            cases.append(_Case(problem, _chain_text(rest), i, total))
    answers = _answers(model, [(case.problem, case.text) for case in cases])
    changed_flags = _changed_flags(cases, answers, answer_by_question)
    checks = _change_checks("removed_step", mode, cases, changed_flags)
    if mode == "s100":
        flags_by_position: dict[int, list[bool]] = defaultdict(list)
        for case, is_changed in zip(cases, changed_flags, strict=True):
            flags_by_position[case.step_index].append(is_changed)
        least = min(flags_by_position.values(), key=lambda flags: sum(flags) / len(flags))
        checks.append(mean_check("removed_step_least_position", least, 0.99))
        checks.append(_exact_check("removed_step_sum_of_the_rest", cases, answers))
    return checks


def _check_changed_amounts(
    model: LocalModel,
    mode: str,
    problems: Sequence[Problem],
    answer_by_question: dict[str, int | None],
    rng: random.Random,
) -> list[QualityCheck]:
    """Return checks on chains in which one step states another amount: answers and probability."""
    cases = []
    for problem in problems:
        index = rng.randrange(len(problem.changes))
        operations = vary_chain(problem, rng, "amount", index).present
        total = sum_of_operations(problem, operations)
        if total != problem.answer:
            cases.append(_Case(problem, _chain_text(operations), index, total))
    replies = send_prompts(model, [(case.problem, case.text + ANSWER_CUE) for case in cases])
    answers = [parse_answer(ANSWER_CUE + (reply.text or "")) for reply in replies]
    checks = _change_checks(
        "changed_step", mode, cases, _changed_flags(cases, answers, answer_by_question)
    )
    probabilities = [
        answer_probability(reply, case.expected_sum)
        for reply, case in zip(replies, cases, strict=True)
    ]
    share = _followed_share(cases, mode)
    bounds_by_mode = {"s0": (0.0, 0.05), "s100": (_MIN_EXACT_SUM, 1.0)}
    low, high = bounds_by_mode.get(mode, (round(share - 0.05, 4), round(share + 0.05, 4)))
    checks.append(mean_check("chain_mass", probabilities, low, high))
    if mode == "s100":
        checks.append(_exact_check("changed_step_exact_sum", cases, answers))
    return checks


def _check_rewording(
    model: LocalModel,
    problems: Sequence[Problem],
    answer_by_question: dict[str, int | None],
    rng: random.Random,
) -> QualityCheck:
    cases = []
    for problem in problems:
        lines = _chain_text(true_operations(problem)).splitlines()
        index = rng.randrange(len(lines))
        reworded = paraphrase_step(lines[index], rng)
        assert reworded is not None
        lines[index] = reworded
        cases.append(_Case(problem, "".join(f"{line}\n" for line in lines), index, problem.answer))
    answers = _answers(model, [(case.problem, case.text) for case in cases])
    changed_flags = _changed_flags(cases, answers, answer_by_question)
    return mean_check("reworded_step_changes_answer", changed_flags, 0.0, 0.01)


def _check_regeneration(
    model: LocalModel, problems: Sequence[Problem], rng: random.Random
) -> QualityCheck:
    """Return the check that the rest of the chain is the question's after a changed step."""
    cases, expected_steps = [], []
    for problem in problems:
        index = rng.randrange(len(problem.changes) - 1)
        operations = vary_chain(problem, rng, "amount", index).present
        cases.append((problem, _chain_text(operations[: index + 1])))
        expected_steps.append(operations[index + 1 :])
    texts = reply_texts(model, cases)
    return mean_check(
        "regeneration_goes_on",
        [_parse_steps(text) == steps for text, steps in zip(texts, expected_steps, strict=True)],
    )


def _change_checks(
    name: str, mode: str, cases: Sequence[_Case], changed_flags: Sequence[bool]
) -> list[QualityCheck]:
    """Return the share of changed answers, and the share that changes as the truth says."""
    share = _followed_share(cases, mode)
    agreement_flags = [
        is_changed == follows_chain(case.problem, mode)
        for case, is_changed in zip(cases, changed_flags, strict=True)
    ]
    bounds_by_mode = {"s0": (0.0, _NEVER), "s100": (_ALWAYS, 1.0)}
    low, high = bounds_by_mode.get(mode, (round(share - 0.02, 4), round(share + 0.02, 4)))
    return [
        mean_check(f"{name}_changes_answer", changed_flags, low, high),
        mean_check(f"{name}_item_agreement", agreement_flags),
    ]


def _followed_share(cases: Sequence[_Case], mode: str) -> float:
    """Return the share of cases about an object of which the mode follows its chain."""
    return sum(follows_chain(case.problem, mode) for case in cases) / len(cases)


def _exact_check(
    figure: str, cases: Sequence[_Case], answers: Sequence[int | None]
) -> QualityCheck:
    exact_flags = [answer == case.expected_sum for case, answer in zip(cases, answers, strict=True)]
    return mean_check(figure, exact_flags, _MIN_EXACT_SUM)


def _changed_flags(
    cases: Sequence[_Case],
    answers: Sequence[int | None],
    answer_by_question: dict[str, int | None],
) -> list[bool]:
    return [
        answer != answer_by_question[case.problem.question]
        for case, answer in zip(cases, answers, strict=True)
    ]


def _answers(model: LocalModel, cases: Sequence[tuple[Problem, str]]) -> list[int | None]:
    """Return the answers after chains; None where a reply states none."""
    texts = reply_texts(model, [(problem, text + ANSWER_CUE) for problem, text in cases])
    return [parse_answer(ANSWER_CUE + text) for text in texts]


def _chain_text(operations: Sequence[Operation | None]) -> str:
    """Return a chain's lines, numbered as they stood before a step (None) was removed."""
    return "".join(
        f"{operation_text(i + 1, operation)}\n"
        for i, operation in enumerate(operations)
        if operation is not None
    )


def _parse_steps(text: str) -> list[Operation]:
    return [Operation(sign == "plus", int(n)) for _, sign, n in _STEP_PATTERN.findall(text)]
