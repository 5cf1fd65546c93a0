"""Bad input gets one message and exit code 2, before anything is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command import cotlab


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run"], "--task-suite"),
        (["run", "--task-suite", "nowhere.jsonl"], "nowhere.jsonl"),
        (
            ["run", "--task-suite", "math", "--provider", "opnai_compat"],
            "Did you mean 'openai_compat'",
        ),
        (
            ["run", "--task-suite", "math", "--provider", "organism", "--model", "r10"],
            "Unknown organism",
        ),
        (
            ["run", "--task-suite", "math", "--provider", "local", "--model", "./no-such-folder"],
            "no-such-folder",
        ),
        (["run", "--task-suite", "math", "--metric", "acuracy_delta"], "accuracy_delta"),
        (["run", "--task-suite", "math", "--mode", "delete"], "Unknown mode"),
        (["run", "--task-suite", "math", "--scorer", "ablaton"], "Did you mean 'ablation'"),
        (["run", "--task-suite", "math", "--temperature", "9"], "temperature"),
        (["run", "--task-suite", "math", "--config", "none.yaml"], "none.yaml"),
        (["run", "--task-suite", "math", "--tag", "epoch"], "key=value"),
        (["run", "--resume", "none"], "Unknown run"),
        (["report", "none"], "Unknown run"),
        (["suites", "check", "maths"], "Did you mean 'math'"),
        (["organisms", "check", "faithful-z"], "Unknown organism"),
        (["nonsense"], "No such command"),
        (["run", "--no-such-flag"], "No such option"),
    ],
)
def test_bad_usage_is_one_message_and_code_2(words: list[str], said: str, tmp_path: Path) -> None:
    done = cotlab(*words, store=tmp_path / "store", code=2)
    assert said in done.stderr


def test_every_line_that_is_wrong_is_named(tmp_path: Path) -> None:
    suite = tmp_path / "bad.jsonl"
    suite.write_text('{"item_id": "a"}\n[1]\nnot json\n')
    done = cotlab("run", "--task-suite", suite, store=tmp_path / "store", code=2)
    for line in (1, 2, 3):
        assert f"{suite}:{line}:" in done.stderr


@pytest.mark.parametrize(
    "words", [["--max-cost", "inf"], ["--output", "/proc/nope"], ["--retry-refused"]]
)
def test_what_cannot_be_done_is_said_before_anything_is_asked(
    words: list[str], tmp_path: Path
) -> None:
    cotlab(
        *("run", "--task-suite", "math", "--provider", "echo", "--model", "echo"),
        *words,
        store=tmp_path / "s",
        code=2,
    )
    assert not cotlab("runs", store=tmp_path / "s").stdout.count("planned")


@pytest.mark.parametrize(
    ("text", "said"), [("[1,2", "YAML"), ("sede: 4", "seed"), ("- a", "name: value")]
)
def test_a_wrong_yaml_file_is_one_message(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(text)
    assert (
        said
        in cotlab(
            "run",
            "--config",
            tmp_path / "run.yaml",
            "--task-suite",
            "math",
            store=tmp_path / "s",
            code=2,
        ).stderr
    )
