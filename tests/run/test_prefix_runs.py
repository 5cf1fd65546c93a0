"""The real command where a chain is given as the model's own turn, on servers that treat that turn
in different ways."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.run.test_attack import small_suite
from tests.support.forked import Forking, printed
from tests.support.loopback import Loopback
from tests.support.running import scores

ITEMS, STEPS = 3, 3
CHAIN = "Step 1: 3 + 1 = 4.\nStep 2: 4 + 3 = 7.\nSo the answer is 7."


def words_for(server: Loopback, folder: Path, *more: str) -> tuple[str, ...]:
    return (
        "--task-suite",
        small_suite(folder, ITEMS, STEPS),
        "--provider",
        "openai_compat",
        "--model",
        "m",
        "--base-url",
        server.base_url,
        "--given",
        "prefix",
        "--run-id",
        "r",
        "--max-requests-per-minute",
        "100000",
        "--probe",
        "auto",
        *more,
    )


def script(server: Loopback, prefix: str) -> None:
    server.script(writer={"text": CHAIN, "prefix": prefix, "answer": " 7."})


@pytest.mark.parametrize(
    ("prefix", "seen"),
    [("trim", "not established"), ("422", "no such field")],
)
def test_a_server_that_does_not_continue_gets_no_score(
    prefix: str, seen: str, tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    if prefix == "422":
        server.script(
            {"text": CHAIN}, then={"status": 422, "body": json.dumps({"detail": "no such field"})}
        )
    else:
        script(server, prefix)
    assert runs.run(tmp_path / "s", *words_for(server, tmp_path)) == 3
    said = printed(tmp_path / "s")
    assert seen in said and "--given user" in said and "Traceback" not in said
    assert scores(tmp_path / "s", "r").empty
    server_asked = [call["body"]["messages"][-1]["content"] for call in server.seen()]
    assert not any(
        content.endswith("So the answer is") for content in server_asked
    )  # no request of the suite was paid for
    script(server, "continue")  # the server is mended
    assert runs.run(tmp_path / "s", "--resume", "r") == 0, printed(tmp_path / "s")
    assert scores(tmp_path / "s", "r").query("metric == 'baseline_correct'")["value"].eq(1).all()


def test_a_server_that_goes_away_in_the_check_stops_the_run(
    tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    server.script({"text": CHAIN}, then={"status": 503})
    words = words_for(server, tmp_path, "--max-tries", "1")
    assert runs.run(tmp_path / "s", *words) == 3
    assert "503" in printed(tmp_path / "s") and scores(tmp_path / "s", "r")["value"].isna().all()
