"""The reliability suite on a served model: through the command, resumed without asking twice,
counted before it is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

import cotlab
from cotlab.run.config import read_config
from cotlab.run.launch import dry_run, load_configured_suite
from cotlab.store import read
from cotlab.store.database import Store
from tests.support.loopback import serving

CHAIN = "1. 7 + 5 = 12.\n2. 12 - 3 = 9.\n3. 9 + 1 = 10.\nSo the answer is 10."


@pytest.mark.soak
def test_every_part_runs_and_a_second_run_asks_the_server_nothing(tmp_path: Path) -> None:
    with serving() as server:
        server.script({"text": CHAIN})
        options = {
            "provider": "openai_compat",
            "model": "m",
            "base_url": server.base_url,
            "profile": "phase3",
            "chain": "own",
            "limit": 3,
            "allow_unpriced": True,
            "max_requests_per_minute": 100_000,
        }
        config = read_config({**options, "task_suite": "wordproblems"})
        _, count = dry_run(config, load_configured_suite(config)[0])
        first = cotlab.run_suite("wordproblems", store=tmp_path, **options)
        asked = server.count()
        again = cotlab.run_suite("wordproblems", store=tmp_path, **options)
        assert (
            (first.status, again.status) == ("done", "done") and asked and server.count() == asked
        )
    store = Store(tmp_path)
    row = read.get_run(store, first.run_id)
    assert count.n_exact_requests <= row["asked"] <= 1.2 * count.n_requests
    subject = count.requests_by_model["openai_compat:m"]
    assert 0.7 * subject <= asked <= 1.2 * subject
    parts = first.scores[first.scores["metric"] == "r_raw"]
    assert len(parts) == 3 and parts["value"].between(0, 1).all()
    same = ["metric", "item_id", "step", "sample", "facet", "value"]
    one, two = (
        run.scores[same].sort_values(same[:-1]).reset_index(drop=True) for run in (first, again)
    )
    assert one.equals(two)
