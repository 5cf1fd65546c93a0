"""Published benchmarks in their published formats.

ProcessBench is read from real files in ``tests/published``. The records of PRM800K (MIT, OpenAI)
and PRMBench (Apache-2.0, Song et al.) are cut down from published ones; those of MR-GSM8K,
FaithCoT-Bench and BonaFide are made after their published descriptions.
"""

from __future__ import annotations

import csv
import json
import typing
from pathlib import Path
from typing import Any

import pytest

from cotlab.cli.suites import import_suite
from cotlab.core.errors import SuiteErrors
from cotlab.core.types import Item
from cotlab.suites.importers.benchmarks import BENCHMARKS
from cotlab.suites.importers.formats import IMPORT_FORMATS, import_suite_file
from cotlab.text.steps import split_steps

PRM800K_STEPS = [
    "I want to find the largest positive integer that divides both $20 !$ and $200,\\!000$.",
    "I know that $200,\\!000 = 2^5\\cdot 10^4 = 2^9\\cdot 5^4$.",
    "So the greatest common factor is $2^9\\cdot 5^4$.\n\n# Answer\n\n320,000",
]


def completion(text: str, rating: int | None) -> dict[str, Any]:
    return {"text": text, "rating": rating, "flagged": None}


PRM800K = {
    "labeler": "340d89bc",
    "generation": 9,
    "question": {
        "problem": "What is the greatest common factor of $20 !$ and $200,\\!000$?",
        "ground_truth_answer": "40,\\!000",
        "pre_generated_steps": PRM800K_STEPS,
        "pre_generated_answer": "320,000",
    },
    "label": {
        "steps": [
            {"completions": [completion(PRM800K_STEPS[0], 0)], "chosen_completion": 0},
            {
                "completions": [completion("Another.", 0), completion(PRM800K_STEPS[1], -1)],
                "chosen_completion": None,
            },
        ],
        "finish_reason": "found_error",
    },
}
PRM800K_PHASE_1 = {
    "question": {"problem": "1 + 1 + 1?", "ground_truth_answer": "3"},
    "label": {
        "steps": [
            {
                "completions": [completion("1 + 1 = 3.", -1), completion("1 + 1 = 2.", 1)],
                "chosen_completion": 1,
            },
            {
                "completions": [completion("2 + 1 = 4.", -1)],
                "human_completion": {"text": "2 + 1 = 3.", "rating": None},
                "chosen_completion": None,
            },
        ],
        "finish_reason": "solution",
    },
}
MR_GSM8K = {
    "uuid": "17d6bf9a",
    "question": "Janet has 3 bags of 4 eggs and breaks 2. How many are whole?",
    "question_type": "original",
    "ground_truth_answer": "10",
    "model_output_steps": ["Step 1: 3 * 4 = 12.", "Step 2: 12 + 2 = 14.", "#### 14"],
    "model_output_answer_correctness": "wrong",
    "model_output_solution_correctness": "wrong",
    "model_output_solution_first_error_step": "2",
    "model_output_solution_first_error_reason": "adds what was broken",
}
PRMBENCH = {
    "original_question": "What is $\\sqrt{53}$ in simplest radical form?",
    "modified_question": "What is $\\sqrt{53}$ in simplest radical form?",
    "original_process": ["Factor 53.", "$53 = 53 * 1$.", "So it is $\\sqrt{53}$."],
    "modified_process": ["Factor 53.", "$53 = 53 * 1$.", "So it is $\\sqrt{25}+\\sqrt{28}$."],
    "modified_steps": [3],
    "error_steps": [3],
    "idx": "prm_test_p1_3",
    "classification": "confidence",
}
FAITHCOT = {
    "cot_prompt": "...",
    "question": "Which is red?",
    "options": ["A. a leaf", "B. a rose"],
    "label": "B",
    "sample_0": {
        "full_response": "A rose is red. So B.",
        "step_1": "A rose is red.",
        "step_2": "So B.",
        "parsed_final_answer": "B",
        "soft_faithfulness": 0.83,
    },
    "sample_1": {"full_response": "A leaf. So A.", "step_1": "A leaf.", "parsed_final_answer": "A"},
}
BONAFIDE = {
    "id": "00ff",
    "target_model": "m",
    "src_type": "hinting",
    "prompt": "Q (hint: 4)",
    "cot": "I read it in a book. So 4.",
    "model_answer": "4",
}


def imported(name: str, tmp_path: Path, *records: Any) -> tuple[Item, ...]:
    file = tmp_path / "file.json"
    file.write_text(json.dumps(records))
    return import_suite_file(name, file, split=split_steps).items


def test_the_command_names_every_format() -> None:
    kind = typing.get_type_hints(import_suite, include_extras=True)["form"].__metadata__[0]
    assert all(name in kind.help for name in IMPORT_FORMATS)


def test_prm800k(tmp_path: Path) -> None:
    written, chosen = imported("prm800k", tmp_path, PRM800K, PRM800K_PHASE_1)
    assert [step.text for step in written.steps] == PRM800K_STEPS
    assert (written.answer, written.meta["model_answer"]) == ("40,\\!000", "320,000")
    assert (written.meta["first_mistake"], written.meta["step_labels"]) == (1, [0, -1, None])
    assert [step.text for step in chosen.steps] == ["1 + 1 = 2.", "2 + 1 = 3."]
    assert (chosen.meta["first_mistake"], chosen.meta["step_labels"]) == (None, [1, 1])
    given_up = {
        **PRM800K_PHASE_1,
        "label": {**PRM800K_PHASE_1["label"], "finish_reason": "give_up"},
    }  # type: ignore[dict-item]
    assert "first_mistake" not in imported("prm800k", tmp_path, given_up)[0].meta


def test_mr_gsm8k(tmp_path: Path) -> None:
    right = {**MR_GSM8K, "uuid": "2", "model_output_solution_correctness": "correct"}
    right["model_output_solution_first_error_step"] = "N/A"
    wrong_item, right_item = imported("mr-gsm8k", tmp_path, MR_GSM8K, right)
    assert (wrong_item.id, wrong_item.category, wrong_item.answer) == ("17d6bf9a", "original", "10")
    assert (wrong_item.meta["first_mistake"], wrong_item.meta["answer_correct"]) == (1, False)
    assert right_item.meta["first_mistake"] is None
    with pytest.raises(SuiteErrors, match="first_error_step: must be a step from 1 to 3; found 9"):
        imported("mr-gsm8k", tmp_path, {**MR_GSM8K, "model_output_solution_first_error_step": 9})


def test_prmbench(tmp_path: Path) -> None:
    whole = {**PRMBENCH, "idx": "2", "error_steps": [], "classification": "multi_solutions"}
    changed, unchanged = imported("prmbench", tmp_path, PRMBENCH, whole)
    assert (changed.meta["first_mistake"], changed.meta["step_labels"]) == (2, [1, 1, 0])
    assert (changed.id, changed.category) == ("prm_test_p1_3", "confidence")
    assert changed.steps[2].text == "So it is $\\sqrt{25}+\\sqrt{28}$."
    assert unchanged.meta["first_mistake"] is None


def test_faithcot_bench_from_a_folder_of_responses(tmp_path: Path) -> None:
    for n in range(2):
        (tmp_path / f"response_{n}.json").write_text(
            json.dumps({**FAITHCOT, "question": f"{n}?"}, indent=2)
        )
    items = import_suite_file("faithcot-bench", tmp_path, split=split_steps).items
    assert [item.id for item in items[:2]] == ["response_0-0000", "response_0-0001"]
    assert len(items) == 4 and items[0].question == "0?\nA. a leaf\nB. a rose"
    assert [item.meta["answer_correct"] for item in items[:2]] == [True, False]
    assert items[0].meta["soft_faithfulness"] == 0.83
    assert [step.text for step in items[0].steps] == ["A rose is red.", "So B."]
    assert items[1].meta["cluster"] == "response_0-0000"


def test_bonafide_joins_the_labels_of_a_chain(tmp_path: Path) -> None:
    labels = [
        {"label_type": "UNFAITHFUL_STEP", "sentence_id": "1", "reason": "made up"},
        {"label_type": "UNFAITHFUL_COT", "reason": "contains 1 unfaithful step(s)"},
    ]
    file = tmp_path / "BonaFide.csv"
    with file.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, [*BONAFIDE, "label_type", "sentence_id", "reason"])
        writer.writeheader()
        writer.writerows({**BONAFIDE, **label} for label in labels)
    (item,) = import_suite_file("bonafide", file, split=split_steps).items
    assert (item.id, item.question, item.category) == ("00ff", "Q (hint: 4)", "hinting")
    assert item.meta["faithful"] is False and item.meta["model_answer"] == "4"
    assert item.meta["labels"] == labels and item.meta["target_model"] == "m"


@pytest.mark.parametrize("name", sorted(BENCHMARKS.keys() - {"bonafide"}))
def test_another_file_is_no_benchmark(name: str, tmp_path: Path) -> None:
    with pytest.raises(SuiteErrors):
        imported(name, tmp_path, {"text": "hello"})
