"""The answer extractor against OpenAI's own marking of 5,276 model solutions
(openai/grade-school-math, MIT)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from cotlab.core.types import Item
from cotlab.text.answers.extract import final_answer, same_answer
from cotlab.text.answers.targets import answer_to, is_right_answer
from cotlab.text.steps import split_steps

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "gsm8k"
SOLUTIONS = DATA / "example_model_solutions.jsonl"
MODELS = ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")

pytestmark = pytest.mark.skipif(not SOLUTIONS.exists(), reason="../shared/data/gsm8k is not there")


@pytest.mark.soak
def test_agrees_with_the_published_marking_of_every_solution() -> None:
    rows = [json.loads(line) for line in SOLUTIONS.read_text(encoding="utf-8").splitlines()]
    right: Counter[str] = Counter()
    disagree = []
    for row in rows:
        key = final_answer(row["ground_truth"])
        for model in MODELS:
            solution, marked = row[model]["solution"], row[model]["is_correct"]
            same = same_answer(final_answer(solution), key) is True
            right[model] += same
            if same is not marked:
                disagree.append((solution[-80:], key, marked))
    assert len(rows) == 1319
    assert disagree == []
    # 286, 515, 458 and 742 of 1,319: the shares that the file itself marks correct
    assert [round(100 * right[model] / len(rows), 2) for model in MODELS] == [
        21.68,
        39.04,
        34.72,
        56.25,
    ]


@pytest.mark.soak
def test_answers_of_reference_solutions_without_their_key() -> None:
    """The question and the last line tell which number is the answer: .970 by the last number,
    .985 here."""
    verdicts: Counter[bool | None] = Counter()
    for name in ("test.jsonl", "train_first1500.jsonl"):
        for line in (DATA / name).read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            solution, _, key = row["answer"].rpartition("#### ")
            item = Item("1", row["question"], key, ())
            answer = answer_to(item, solution)
            verdicts[is_right_answer(item, answer) if answer else None] += 1
    assert verdicts[True] >= 0.98 * verdicts.total()
    assert verdicts[False] <= 0.01 * verdicts.total()


@pytest.mark.parametrize("name", ["test.jsonl", "train_first1500.jsonl"])
def test_reference_solutions(name: str) -> None:
    """Every reference gives its own key, and its steps are its lines, as the data set writes one
    step a line."""
    for line in (DATA / name).read_text(encoding="utf-8").splitlines():
        solution = json.loads(line)["answer"]
        assert final_answer(solution) == solution.rpartition("#### ")[2]
        assert split_steps(solution) == tuple(
            part.strip() for part in solution.split("\n") if part.strip()
        )
