"""Inspect logs, written by Inspect itself with its mock model, in a process of its own (it is slow
and warns at its end)."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from cotlab.core.errors import MissingExtra, SuiteErrors
from cotlab.core.types import Step
from cotlab.suites import import_inspect, load_suite, write_suite
from cotlab.suites.importers.logs import read_inspect_log

WRITE_LOG = """
import sys, zipfile
from inspect_ai import Task, eval as run
from inspect_ai.dataset import Sample
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.model import (
    ChatMessageAssistant, ChatMessageSystem, ChatMessageUser, ContentReasoning, ContentText,
    ModelOutput, ModelUsage, get_model,
)

def answer(messages, tools, tool_choice, config):
    asked = messages[-1].text
    content = {
        "How many?": [
            ContentReasoning(reasoning="2 + 3 = 5.\\nSo 5. " + "x" * 200),
            ContentText(text="ANSWER: 5"),
        ],
        "Two?": "1 + 1 = 2.\\nTwo it is.\\nANSWER: 2",
        "Hidden?": [
            ContentReasoning(reasoning="c2VjcmV0", redacted=True, summary="It thought."),
            ContentText(text="5"),
        ],
        "Third?": "Half.\\nWhole.",
        "Silent?": "ANSWER: 5",
        "Tagged?": "<think>\\n2 + 3 = 5.\\n\\nSo 5.\\n</think>\\n\\nIt is 5.",
    }[asked]
    output = ModelOutput.from_content("mockllm/model", content)
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return output

user = lambda text: ChatMessageUser(content=text)
assistant = lambda text: ChatMessageAssistant(content=text)
samples = [
    Sample(id="a", input="How many?", target="5"),
    Sample(
        id="b", input=[ChatMessageSystem(content="Be brief."), user("Two?")], target=["2", "two"],
        choices=["one", "two"],
    ),
    Sample(id=3, input=[user("First?"), assistant("Yes."), user("Third?")], target=""),
    Sample(id="hidden", input="Hidden?", target="5"),
    Sample(id="silent", input="Silent?", target="5"),
    Sample(id="tagged", input="Tagged?", target="5"),
]
(log,) = run(
    Task(dataset=samples, name="demo"), model=get_model("mockllm/model", custom_outputs=answer),
    epochs=2, log_dir=sys.argv[1], display="none", log_format="eval",
)
assert log.status == "success", log.error
write_eval_log(read_eval_log(log.location), sys.argv[1] + "/again.json")
plain = zipfile.ZipFile(sys.argv[1] + "/plain.zip", "w")
with zipfile.ZipFile(log.location) as packed, plain:
    for name in packed.namelist():
        plain.writestr(name, packed.read(name))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")
    made = tmp_path_factory.mktemp("logs")
    done = subprocess.run(
        [sys.executable, "-c", WRITE_LOG, str(made)],
        capture_output=True,
        check=False,
        text=True,
        timeout=600,
        cwd=made,
    )
    assert done.returncode == 0, done.stderr
    next(made.glob("*.eval")).rename(made / "demo.eval")
    (made / "plain.zip").rename(made / "plain.eval")
    return made


@pytest.mark.soak
@pytest.mark.parametrize("name", ["demo.eval", "again.json"])
def test_a_real_log(folder: Path, name: str) -> None:
    suite = import_inspect(folder / name, str.splitlines)
    assert suite.name == name.partition(".")[0]
    items = {item.id: item for item in suite.items}
    assert sorted(items) == [
        f"{i}-epoch{e}" for i in ("3", "a", "b", "hidden", "silent", "tagged") for e in (1, 2)
    ]
    reasoned, written, turns = items["a-epoch1"], items["b-epoch2"], items["3-epoch1"]
    assert (reasoned.question, reasoned.answer) == ("How many?", "5")
    assert reasoned.steps == (Step(0, "2 + 3 = 5."), Step(1, "So 5. " + "x" * 200))
    basic = {name: reasoned.meta[name] for name in ("model", "task", "sample_id", "epoch", "reply")}
    assert basic == {
        "model": "mockllm/model",
        "task": "demo",
        "sample_id": "a",
        "epoch": 1,
        "reply": "ANSWER: 5",
    }
    assert (reasoned.meta["cluster"], items["b-epoch1"].meta["cluster"]) == ("demo/a", "demo/b")
    assert written.question == "Two?\n\nA) one\nB) two"
    assert written.answer == "2"
    assert written.steps == (Step(0, "1 + 1 = 2."), Step(1, "Two it is."))
    assert written.meta["targets"] == ["2", "two"]
    assert written.meta["choices"] == ["one", "two"]
    assert written.meta["system"] == "Be brief."
    assert (turns.question, turns.answer) == ("Third?", None)
    assert turns.steps == (Step(0, "Half."), Step(1, "Whole."))
    assert items["hidden-epoch1"].steps == (Step(0, "It thought."),)
    assert items["silent-epoch1"].steps == ()
    assert items["tagged-epoch1"].steps == (Step(0, "2 + 3 = 5."), Step(1, "So 5."))
    tagged = read_inspect_log(folder / name, str.splitlines).replies["tagged-epoch1"]
    assert (tagged.text, tagged.reasoning) == ("It is 5.", "2 + 3 = 5.\n\nSo 5.")


@pytest.mark.soak
def test_an_imported_suite_can_be_written(folder: Path, tmp_path: Path) -> None:
    suite = import_inspect(folder / "demo.eval", str.splitlines)
    write_suite(suite, tmp_path / "demo.jsonl")
    assert load_suite(tmp_path / "demo.jsonl", chain="own") == suite


def hostile(folder: Path, path: Path, kind: str) -> None:
    whole = (folder / "demo.eval").read_bytes()
    if kind == "zip of something else":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("hello.txt", "hello")
    elif kind == "header is a list":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("header.json", "[1]")
    elif kind in ("sample breaks off", "sample is a list"):
        with zipfile.ZipFile(folder / "plain.eval") as good, zipfile.ZipFile(path, "w") as archive:
            for name in good.namelist():
                broken = good.read(name)[:-9] if kind == "sample breaks off" else b"[1]"
                archive.writestr(name, broken if name.startswith("samples/") else good.read(name))
    elif kind == "header is nested":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("header.json", "[" * 100_000)
    else:
        path.write_bytes(
            {
                "empty": b"",
                "text": b"hello",
                "cut": whole[: len(whole) // 2],
                "damaged": whole[:400] + bytes(64) + whole[464:],
            }[kind]
        )


@pytest.mark.soak
@pytest.mark.parametrize(
    "kind",
    [
        *("empty", "text", "cut", "damaged", "zip of something else", "header is a list"),
        *("header is nested", "sample breaks off", "sample is a list"),
    ],
)
def test_what_is_no_log(folder: Path, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "log.eval"
    hostile(folder, path, kind)
    with pytest.raises(SuiteErrors) as caught:
        import_inspect(path, str.splitlines)
    assert caught.value.errors[0].path == str(path)


@pytest.mark.soak
@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"hello", b"[" * 100_000, b"\xff\xfe"])
def test_what_is_no_json_log(folder: Path, tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "log.json"
    path.write_bytes(data)
    with pytest.raises(SuiteErrors):
        import_inspect(path, str.splitlines)


def test_a_sample_that_is_packed_too_well_is_not_unpacked(tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")
    path = tmp_path / "bomb.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("samples/1_epoch_1.json", bytes(2**26))
    with pytest.raises(SuiteErrors, match="samples/1_epoch_1.json unpacks from .* more than 200"):
        import_inspect(path, str.splitlines)


def test_a_sample_that_is_too_large_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")
    monkeypatch.setattr("cotlab.suites.importers.logs.MAX_SAMPLE_BYTES", 2**20)
    path = tmp_path / "large.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("samples/1_epoch_1.json", bytes(2**21))
    with pytest.raises(SuiteErrors, match="more than the 1,048,576 of one sample that are read"):
        import_inspect(path, str.splitlines)


@pytest.mark.soak
def test_an_archive_that_unpacks_to_too_much(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cotlab.suites.importers.logs.MAX_UNPACKED_BYTES", 2**20)
    path = tmp_path / "bomb.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", bytes(2**21))
    with pytest.raises(
        SuiteErrors, match="unpacks to 2,097,152 bytes, more than the 1,048,576 that are read"
    ):
        import_inspect(path, str.splitlines)


def test_no_file(tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")
    with pytest.raises(SuiteErrors, match="no such file"):
        import_inspect(tmp_path / "absent.eval", str.splitlines)


def test_without_inspect_the_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    with pytest.raises(MissingExtra, match="Inspect logs needs the package 'inspect-ai'"):
        import_inspect(tmp_path / "any.eval", str.splitlines)


def test_importing_the_package_does_not_import_inspect() -> None:
    code = (
        "import sys, cotlab.suites; sys.exit(any(m in sys.modules for m in ('inspect_ai', 'torch',"
        " 'streamlit', 'duckdb')))"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], cwd=Path(__file__).parents[3], timeout=600, check=False
        ).returncode
        == 0
    )
