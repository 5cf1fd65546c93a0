"""A real model from a folder (``COTLAB_REAL_MODEL``) on 50 GSM8K questions: corruption, mediation,
a critic and step rewards. Its table is written to ``COTLAB_REAL_MODEL_TABLE`` (default
``benchmarks/REAL_MODEL.md``), with what is undefined counted."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import cotlab
from tests.support.running import report

GSM8K = Path(__file__).parents[3] / "shared" / "data" / "gsm8k" / "test.jsonl"
MODEL = os.environ.get("COTLAB_REAL_MODEL", "")
TABLE = os.environ.get(
    "COTLAB_REAL_MODEL_TABLE", str(Path(__file__).parents[2] / "benchmarks" / "REAL_MODEL.md")
)
N_ITEMS = 50
REWARD_LAYOUT = {
    "question": "After each ? stands + for a right step, - for a wrong one.\nQ: {question}\n",
    "step_end": "?",
    "right": "+",
    "wrong": "-",
}
pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not MODEL, reason="COTLAB_REAL_MODEL names no folder of a model"),
    pytest.mark.skipif(not GSM8K.is_file(), reason="../shared/data/gsm8k is not there"),
]


def step_reward_folder(folder: Path) -> Path:
    """The same weights as a process reward model that answers + or - after each step."""
    folder.mkdir()
    for file in Path(MODEL).iterdir():
        (folder / file.name).symlink_to(file.resolve())
    (folder / "process_reward.json").unlink(missing_ok=True)
    (folder / "process_reward.json").write_text(json.dumps(REWARD_LAYOUT))
    return folder


def table_rows(name: str, told: dict[str, Any]) -> list[str]:
    """One row a metric and facet: mean, interval, items with a value and without."""
    rows = []
    for row in told["estimates"]:
        value = "n/a" if row["point"] is None else f"{row['point']:.3f}"
        bounds = "n/a" if row["lo"] is None else f"[{row['lo']:.3f}, {row['hi']:.3f}]"
        facet = ", ".join(f"{key}={said}" for key, said in sorted(row["facet"].items()))
        cells = (name, row["metric"], facet, value, bounds, row["n"], row["n_undefined"])
        rows.append(f"| {' | '.join(map(str, cells))} |")
    return rows


def test_a_real_model_is_measured_and_its_table_written(tmp_path: Path) -> None:
    suite, store = tmp_path / "gsm8k.jsonl", tmp_path / "store"
    cotlab("suites", "import", "gsm8k", GSM8K, "--output", suite, store=store)
    judged = f"prm:{step_reward_folder(tmp_path / 'rewards')}"
    words_by_run = {
        "corrupt": ("--scorer", "ablation", "--mode", "corrupt"),
        "mediation": ("--scorer", "mediation"),
        "critic": ("--scorer", "critic", "--verifier", "critic:subject"),
        "step rewards": ("--scorer", "process_reward", "--verifier", judged),
    }
    rows: list[str] = []
    for name, words in words_by_run.items():
        run_id = name.replace(" ", "-")
        model = ("--provider", "local", "--model", MODEL)
        size = ("--sample", str(N_ITEMS), "--seed", "1")
        many = ("--allow-empty", *model, *size)  # a model that answers nothing is a finding too
        cotlab("run", "--task-suite", suite, "--run-id", run_id, *many, *words, store=store)
        told = report(store, run_id)
        assert told["status"] == "done" and told["items_done"] == N_ITEMS
        assert told["error_scores"] == 0
        rows += table_rows(name, told)
    assert len(rows) > len(words_by_run)
    names = ("run", "metric", "facet", "mean", "95 %", "n", "undefined")
    heading = f"| {' | '.join(names)} |\n{'|---' * len(names)}|"
    title = f"# {Path(MODEL).name} on {N_ITEMS} GSM8K questions"
    Path(TABLE).write_text(f"{title}\n\n{heading}\n" + "\n".join(rows) + "\n")
