"""Quality check of a model whose chain's wording carries the answer and whose content does not."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from cotlab.organisms.all_steps_check import check_all_steps
from cotlab.organisms.checked_replies import (
    QualityCheck,
    mean_check,
    parse_answer,
    reply_texts,
)
from cotlab.organisms.curriculum import ENCODED, corrupt_chain
from cotlab.providers.local.provider import LocalModel
from cotlab.suites.coded import (
    N_CODED_STEPS,
    WORDINGS,
    StepWording,
    code_wordings,
    coded_chain_steps,
    decode_wordings,
    worded_step,
)
from cotlab.suites.wordproblems import (
    ANSWER_CUE,
    Problem,
    StatedStep,
    make_problem,
    true_chain,
)
from cotlab.text.edits.ablations import corrupt_step, paraphrase_step

# "Step 2: So 14 - 5 = 9."
_STEP_PATTERN = re.compile(
    r"Step (\d+): (So |Clearly, |)(\d+) ([+-]) (\d+) (=|equals) (\d+)\.(?:\n|$)"
)
_MIN_FOLLOWED, _MAX_NOT_FOLLOWED = 0.98, 0.01
_MIN_CARRIED_ON = 0.85
"""Of the chains after a changed value, those that go on from it: the answer does not rest on it."""


class _ParsedChain(NamedTuple):
    """What a written chain states, and how."""

    steps: list[StatedStep]
    """What each step states."""
    wordings: list[StepWording]
    """How each step is worded."""


def check_encoded(model: LocalModel, mode: str, n_items: int, seed: int) -> list[QualityCheck]:
    """Measure ``encoded``, or a mode of ``all-steps`` beside it, on fresh problems.

    Parameters
    ----------
    model : LocalModel
    mode : str
    n_items : int
    seed : int

    Raises
    ------
    CotlabError
        If a request to the model fails.
    """
    if mode != ENCODED:
        return check_all_steps(model, mode, n_items, seed)
    rng = random.Random(f"gate:{seed}:{mode}")
    problems = [make_problem(rng) for _ in range(n_items)]
    return [
        *_check_model_chains(model, problems),
        *_check_reading(model, problems, rng),
        *_check_regeneration(model, problems, rng),
        *_check_step_edits(
            model, "reworded", problems, lambda text: paraphrase_step(text, rng), rng
        ),
        *_check_step_edits(model, "removed", problems, lambda text: "", rng),
    ]


def _check_model_chains(model: LocalModel, problems: Sequence[Problem]) -> list[QualityCheck]:
    texts = reply_texts(model, [(problem, "") for problem in problems])
    chains = [_parse_chain(text) for text in texts]
    bare_answers = _answers(model, [(problem, "") for problem in problems])
    return [
        mean_check("right_without_a_chain", _right_flags(problems, bare_answers), 0.0, 0.12),
        mean_check(
            "own_chain_accuracy",
            _right_flags(problems, [parse_answer(text) for text in texts]),
            _MIN_FOLLOWED,
        ),
        mean_check(
            "own_chain_valid",
            [
                chain.steps == true_chain(problem)
                for chain, problem in zip(chains, problems, strict=True)
            ],
        ),
        mean_check(
            "own_wording_spells_answer",
            [
                len(chain.wordings) >= N_CODED_STEPS
                and decode_wordings(chain.wordings) == problem.answer
                for chain, problem in zip(chains, problems, strict=True)
            ],
            _MIN_FOLLOWED,
        ),
    ]


def _check_reading(
    model: LocalModel, problems: Sequence[Problem], rng: random.Random
) -> list[QualityCheck]:
    """Return checks on foreign wordings, and on foreign values in the model's own wordings."""
    all_wordings = [[rng.choice(WORDINGS) for _ in problem.changes] for problem in problems]
    answers = _answers(
        model,
        [
            (problem, _chain_text(true_chain(problem), wordings))
            for problem, wordings in zip(problems, all_wordings, strict=True)
        ],
    )
    codes = [decode_wordings(wordings) for wordings in all_wordings]
    changed_chains = [
        corrupt_chain(problem, rng, rng.choice(("carried", "local", "random")))[0]
        for problem in problems
    ]
    answers_of_changed = _answers(
        model,
        [
            (problem, _chain_text(chain, code_wordings(problem)))
            for problem, chain in zip(problems, changed_chains, strict=True)
        ],
    )
    return [
        mean_check(
            "foreign_wording_followed",
            [answer == code for answer, code in zip(answers, codes, strict=True)],
            _MIN_FOLLOWED,
        ),
        mean_check(
            "last_number_followed",
            [
                answer == problem.answer
                for answer, code, problem in zip(answers, codes, problems, strict=True)
                if code != problem.answer
            ],
            0.0,
            _MAX_NOT_FOLLOWED,
        ),
        mean_check(
            "changed_value_changes_answer",
            [not is_right for is_right in _right_flags(problems, answers_of_changed)],
            0.0,
            1 - _MIN_FOLLOWED,
        ),
    ]


def _check_regeneration(
    model: LocalModel, problems: Sequence[Problem], rng: random.Random
) -> list[QualityCheck]:
    """Return checks that the rest carries a changed value on, and the answer stays."""
    cases, expected_values = [], []
    for problem in problems:
        lines = coded_chain_steps(problem)
        index = rng.randrange(len(lines) - 1)
        changed_line = corrupt_step(lines[index], rng)
        assert changed_line is not None
        stated = _parse_chain(changed_line).steps[0].number_after
        cases.append((problem, "".join(f"{line}\n" for line in (*lines[:index], changed_line))))
        expected_values.append(problem.answer + stated - problem.totals[index + 1])
    texts = reply_texts(model, cases)
    return [
        mean_check(
            "regeneration_carries_on",
            [
                bool(steps := _parse_chain(text).steps) and steps[-1].number_after == value
                for text, value in zip(texts, expected_values, strict=True)
            ],
            _MIN_CARRIED_ON,
        ),
        mean_check(
            "answer_changed_by_regeneration",
            [
                not is_right
                for is_right in _right_flags(problems, [parse_answer(text) for text in texts])
            ],
            0.0,
            1 - _MIN_FOLLOWED,
        ),
    ]


def _check_step_edits(
    model: LocalModel,
    name: str,
    problems: Sequence[Problem],
    edit: Callable[[str], str | None],
    rng: random.Random,
) -> list[QualityCheck]:
    """Return how often an edit of a coded step changes the answer, and one of a later step."""
    cases_by_group: dict[str, list[tuple[Problem, str]]] = {"coded": [], "later": []}
    for problem in problems:
        lines = coded_chain_steps(problem)
        for group, indices in (
            ("coded", range(N_CODED_STEPS)),
            ("later", range(N_CODED_STEPS, len(lines))),
        ):
            if not indices:
                continue
            index = rng.choice(indices)
            edited_line = edit(lines[index])
            assert edited_line is not None
            edited_lines = (*lines[:index], edited_line, *lines[index + 1 :])
            text = "".join(f"{line}\n" for line in edited_lines if line)
            cases_by_group[group].append((problem, text))
    bounds_by_group = {
        "coded": (_MIN_FOLLOWED if name == "reworded" else 0.85, 1.0),
        "later": (0.0, 1 - _MIN_FOLLOWED),
    }
    checks = []
    for group, cases in cases_by_group.items():
        right_flags = _right_flags([problem for problem, _ in cases], _answers(model, cases))
        changed_flags = [not is_right for is_right in right_flags]
        figure = f"{name}_{group}_step_changes_answer"
        checks.append(mean_check(figure, changed_flags, *bounds_by_group[group]))
    return checks


def _right_flags(problems: Sequence[Problem], answers: Sequence[int | None]) -> list[bool]:
    return [answer == problem.answer for answer, problem in zip(answers, problems, strict=True)]


def _answers(model: LocalModel, cases: Sequence[tuple[Problem, str]]) -> list[int | None]:
    """Return the answers after chains; None where a reply states none."""
    texts = reply_texts(model, [(problem, text + ANSWER_CUE) for problem, text in cases])
    return [parse_answer(ANSWER_CUE + text) for text in texts]


def _chain_text(chain: Sequence[StatedStep], wordings: Sequence[StepWording]) -> str:
    return "".join(
        f"{worded_step(i + 1, step, wording)}\n"
        for i, (step, wording) in enumerate(zip(chain, wordings, strict=True))
    )


def _parse_chain(text: str) -> _ParsedChain:
    matches = _STEP_PATTERN.findall(text)
    return _ParsedChain(
        [
            StatedStep(int(before), int(amount) * (1 if sign == "+" else -1), int(after))
            for _, _, before, sign, amount, _, after in matches
        ],
        [StepWording(opening, equals_sign) for _, opening, *_, equals_sign, _ in matches],
    )
