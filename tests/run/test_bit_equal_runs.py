"""A run's scores have the same bits at any concurrency and pace, and after a kill −9."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cotlab.run.config import read_config
from cotlab.run.launch import start_run
from cotlab.run.transport import in_process
from cotlab.store.database import Store
from tests.support.running import finish, scores, start, wait_for_replies

OPTIONS: dict[str, Any] = {
    "task_suite": "wordproblems",
    "model": "r50",
    "scorer": ["ablation", "mediation", "consistency", "entropy", "composite"],
    "mode": ["remove", "corrupt"],
    "limit": 6,
    "metric": "kl_divergence",
    "profile": "phase3",
}
COLUMNS = ["metric", "item_id", "facet", "step", "sample", "status", "value", "reason"]


def scores_of(folder: Path, **options: Any) -> pd.DataFrame:
    start_run(read_config({**OPTIONS, **options}), Store(folder), run_id="r")
    return scores(folder, "r")[COLUMNS]


@pytest.mark.soak
def test_scores_are_the_same_bit_for_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = scores_of(tmp_path / "first", max_concurrent=50)
    assert len(first) > 500 and set(first["status"]) >= {"ok"}
    one_by_one = scores_of(tmp_path / "one", max_concurrent=1)
    with monkeypatch.context() as slow:  # as on a machine of another speed
        slow.setattr(in_process, "TARGET_BATCH_S", 0.02)
        paced = scores_of(tmp_path / "paced", max_concurrent=7)
    folder = tmp_path / "killed"
    folder.mkdir()
    flags = [
        f"--{name.replace('_', '-')}={value}"
        for name, values in OPTIONS.items()
        for value in (values if isinstance(values, list) else [values])
    ]
    process = start(folder, *flags, "--run-id", "r")
    wait_for_replies(process, folder, 200)
    process.kill()
    process.communicate()
    code, _, err = finish(start(folder, "--resume", "r"))
    assert code == 0, err
    for other in (one_by_one, paced, scores(folder, "r")[COLUMNS]):
        pd.testing.assert_frame_equal(first, other, check_exact=True)
