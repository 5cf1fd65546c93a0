"""With --redact-prompts no word of a suite, a reply or a server, and no key ever, is in a file, on
a screen or on a page."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.run.test_attack import PROVIDERS, quick
from tests.support.forked import Forking, printed
from tests.support.loopback import Loopback
from tests.support.pages import app_at, titles
from tests.support.running import report, scores

KEYS = {
    "OPENAI_API_KEY": "sk-planted-openai-7c1",
    "ANTHROPIC_API_KEY": "sk-ant-planted-5d2",
    "GOOGLE_API_KEY": "AIza-planted-9e3",
    "OPENAI_COMPAT_API_KEY": "tok-planted-1f4",
}
WORDS = (
    "plantedquestion",
    "plantedstep",
    "plantedanswer",
    "plantedreply",
    "plantedmeta",
    "plantederror",
    "plantedthought",
)


def planted_suite(folder: Path) -> str:
    """Outside the store: a file of four items whose every text is planted."""
    steps = [{"index": i, "text": f"plantedstep {i} is {i + 1}."} for i in range(3)]
    rows = [
        {
            "item_id": f"i{k}",
            "prompt": f"plantedquestion {k}?",
            "reference_cot": steps,
            "ground_truth": "plantedanswer",
            "source": "plantedmeta",
        }
        for k in range(4)
    ]
    path = folder / "suite.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def words_for(provider: str, server: Loopback, suite: str, *more: str) -> tuple[str, ...]:
    base = server.root if provider in ("anthropic", "google") else server.base_url
    return (
        "--task-suite",
        suite,
        "--provider",
        provider,
        "--model",
        PROVIDERS[provider],
        "--base-url",
        base,
        "--run-id",
        "r",
        "--max-requests-per-minute",
        "100000",
        "--max-concurrent",
        "2",
        *more,
    )


def found_in(folder: Path, needles: tuple[str, ...]) -> list[str]:
    """Files below ``folder`` that hold one of ``needles``, with which."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert any(path.name == "log.sqlite" for path in files) and any(
        path.name == "run.log" for path in files
    )
    return [
        f"{path.name}: {n}" for path in files for n in needles if n.encode() in path.read_bytes()
    ]


def shown_on(store: Path, page: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Everything that a page sends to the browser."""
    monkeypatch.setenv("COTLAB_STORE", str(store))
    app = app_at(page, run="r", item="i0").run()
    assert not app.exception and titles(app)
    frames = "".join(frame.value.to_csv() for frame in app.dataframe)
    return (
        frames
        + "".join(str(element.proto) for element in app.main)
        + str([e.value for e in app.error])
    )


@pytest.mark.parametrize("provider", quick())
def test_a_redacted_run_leaves_no_word_behind(
    provider: str, tmp_path: Path, runs: Forking, server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, key in KEYS.items():
        monkeypatch.setenv(name, key)
    store, suite = tmp_path / "store", planted_suite(tmp_path)
    leak = f"plantederror {' '.join(KEYS.values())}"
    server.script(
        *(
            {"text": "So the answer is plantedanswer.", "reasoning": "plantedthought"}
            for _ in range(6)
        ),
        {"status": 400, "error": {"message": leak}},
        {"status": 500, "error": {"message": leak}},
        then={
            "text": "plantedreply. So the answer is plantedanswer.",
            "reasoning": "plantedthought",
            "latency_s": 0.1,
        },
    )
    pid = runs.start(store, *words_for(provider, server, suite, "--redact-prompts"), **KEYS)
    until = time.monotonic() + 120
    while server.count() < 11 and time.monotonic() < until:
        time.sleep(0.01)
    runs.kill(pid)
    assert runs.run(store, "--resume", "r", **KEYS) == 0, printed(store)
    assert found_in(tmp_path / "store", (*WORDS, *KEYS.values())) == []
    table = scores(store, "r")
    assert (
        "ok" in set(table["status"]) <= {"ok", "undefined"}
    )  # scores work; what got the 400 has none
    again = report(store, "r")["requests"]["asked_again"]
    assert again >= 1 and f"{again} unfinished items were asked again" in printed(store)
    assert report(store, "r")["items"][0]["baseline_output"].startswith("sha256:")
    for page in ("run", "item", "steps", "runs", "settings"):
        shown = shown_on(store, page, monkeypatch)
        assert [word for word in (*WORDS, *KEYS.values()) if word in shown] == [], page


@pytest.mark.parametrize("provider", quick("google"))
def test_a_plain_run_keeps_words_and_never_a_key(
    provider: str, tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    store, suite = tmp_path / "store", planted_suite(tmp_path)
    server.script({"status": 401, "error": {"message": f"bad key {' '.join(KEYS.values())}"}})
    assert runs.run(store, *words_for(provider, server, suite), **KEYS) == 3
    server.script(
        {"status": 400, "error": {"message": f"no {' '.join(KEYS.values())}"}},
        then={"text": "So the answer is plantedanswer."},
    )
    assert runs.run(store, "--resume", "r", **KEYS) == 0, printed(store)
    assert any("plantedquestion" in hit for hit in found_in(store, WORDS))
    assert found_in(store, tuple(KEYS.values())) == []
