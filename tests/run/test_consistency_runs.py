"""Consistency end to end: an organism, the embedder, the store; and no text is embedded or asked
for twice."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from cotlab.core.requests import Complete, Embed, Message
from cotlab.core.types import ModelRef
from cotlab.run.transport.in_process import _request_tokens
from cotlab.store import read
from cotlab.store.database import Store
from tests.support.running import report, row, run, scores

FLAGS = (
    "--task-suite",
    "wordproblems",
    "--provider",
    "organism",
    "--model",
    "r100",
    "--limit",
    "6",
    "--scorer",
    "consistency",
)


@pytest.mark.soak
def test_an_organism_reasons_alike_whatever_the_words_and_a_second_run_asks_nothing(
    tmp_path: Path,
) -> None:
    code, out, err = run(tmp_path, *FLAGS, "--run-id", "r")
    assert code == 0, out + err
    found = scores(tmp_path, "r").set_index(["metric", "item_id"])["value"]
    assert found["consistency"].min() > 0.99 and found["answer_agreement"].tolist() == [1.0] * 6
    assert (
        found["consistency_chains"].tolist() == [5.0] * 6
        and found["paraphrases_rejected"].tolist() == [0.0] * 6
    )
    floor = read.list_constants(Store(tmp_path), "r")["consistency"]
    assert 0.5 < floor["floor"] < 0.95 and len(floor["floor_items"]) == 40
    with closing(sqlite3.connect(tmp_path / "log.sqlite")) as log:
        asked = log.execute(
            "SELECT json_extract(request, '$.texts[0]') FROM replies WHERE kind = 'embed'"
        ).fetchall()
        size = log.execute(
            "SELECT avg(length(response)) FROM replies WHERE kind = 'embed'"
        ).fetchone()[0]
    assert len(asked) == len(set(asked)) > 100 and size < 2600
    metrics = set(read.run_estimates(Store(tmp_path), "r")["metric"])
    assert "holdout_gap" in metrics and "holdout_difference" not in metrics
    assert "holdout_difference" not in str(report(tmp_path, "r"))

    code, out, err = run(tmp_path, *FLAGS, "--run-id", "again")
    assert code == 0, out + err
    assert row(tmp_path, "again")["asked"] == 0 and row(tmp_path, "again")["hits"] > 200
    assert scores(tmp_path, "again")["value"].tolist() == scores(tmp_path, "r")["value"].tolist()


def test_what_an_embedding_takes_grows_with_its_text() -> None:
    ref = ModelRef("embedder", "e")
    assert (
        _request_tokens(Embed(ref, ("abcd",))) == 2
        and _request_tokens(Embed(ref, ("a" * 400,))) == 101
    )
    assert _request_tokens(Complete(ref, (Message("user", "x"),), max_tokens=9)) == 9
