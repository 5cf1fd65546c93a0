"""What the dry run counts is what the run asks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import cotlab
from cotlab.run.config import read_config
from cotlab.run.launch import dry_run, load_configured_suite
from cotlab.store import read
from cotlab.store.database import Store

CHOICES = [
    {"scorer": ["mediation"]},
    {"scorer": ["consistency"], "chain": "own"},
    {"scorer": ["ablation"], "chain": "own", "mode": ["remove", "corrupt"]},
    {"scorer": ["mediation"], "chain": "own"},
    {"scorer": ["composite"], "chain": "own", "temperature": 0.7},
    {"scorer": ["composite"], "model": "faithful-a"},
    {"scorer": ["composite", "ablation"], "profile": "phase2"},
    {"scorer": ["repair"], "chain": "own"},
    {"scorer": ["diversity", "causal"], "temperature": 0.7},
]


@pytest.mark.soak
@pytest.mark.parametrize("options", CHOICES, ids=str)
def test_the_dry_run_counts_what_the_run_asks(options: dict[str, Any], tmp_path: Path) -> None:
    options = {"model": "r50", "limit": 12, **options}
    config = read_config({**options, "task_suite": "wordproblems"})
    _, count = dry_run(config, load_configured_suite(config)[0])
    made = cotlab.run_suite("wordproblems", store=tmp_path, **options)
    asked = int(read.get_run(Store(tmp_path), made.run_id)["asked"])
    assert (
        count.n_exact_requests <= asked
        and 0.8 * count.n_requests <= asked <= 1.25 * count.n_requests
    )
    assert sum(count.requests_by_model.values()) == count.n_requests
