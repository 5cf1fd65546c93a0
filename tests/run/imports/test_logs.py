"""Logs that Inspect wrote become runs, and runs become logs that Inspect opens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from cotlab.analysis.view import run_view
from cotlab.core.errors import ConfigError, SuiteErrors
from cotlab.core.types import Item
from cotlab.export.inspect_log import left_out_names, log_facts_of, log_part, write_inspect_log
from cotlab.run.config import read_config
from cotlab.run.dryrun import plan_cautions
from cotlab.run.imports.logs import store_inspect_log
from cotlab.run.imports.pairs import paired_suite
from cotlab.run.resolved import ResolvedRun
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.suites import import_inspect, load_suite, write_suite
from cotlab.suites.importers.logs import InspectLog, read_inspect_log
from cotlab.text.answers.targets import answer_to, is_right_answer
from cotlab.text.steps import split_steps
from tests.support.inspect_logs import make_inspect_logs

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return make_inspect_logs(tmp_path_factory.mktemp("logs"))


def read_log(path: Path) -> InspectLog:
    return read_inspect_log(path, split_steps)


def test_tool_calls_are_the_trace_and_the_submitted_answer_is_no_step(
    logs: dict[str, Path],
) -> None:
    log = read_log(logs["agent"])
    (item,) = log.items
    assert [step.text for step in item.steps] == [
        "I add 12 and 30.",
        "The tool said 42.",
        "The sum is 47.",
    ]
    assert item.meta["tools"] == [
        {"name": "add", "input": {"a": 12, "b": 30}, "output": "42"},
        {"name": "add", "input": {"a": 42, "b": 5}, "output": "47"},
    ]
    assert (item.meta["submitted"], log.replies[item.id].text) == ("47", "47")


def test_what_a_sample_says_of_itself_is_kept(logs: dict[str, Path]) -> None:
    (prime,) = read_log(logs["choices"]).items
    assert (prime.answer, prime.meta["targets"], prime.meta["match"]) == ("A,C", ["A", "C"], "all")
    assert is_right_answer(prime, answer_to(prime, prime.meta["reply"])) is True
    assert prime.meta["choices"] == ["2", "4", "5"]
    assert prime.meta["inspect_scores"]["choice"]["value"] in ("C", "I")
    assert prime.meta["usage"]["mockllm/model"]["total_tokens"] == 10
    assert read_log(logs["epochs"]).items[0].meta["metadata"] == {"level": 2}
    (picture,) = read_log(logs["picture"]).items
    assert picture.question.startswith("What is it?\n[image: image/png, 12 characters, sha256 ")
    assert picture.meta["files_given"] == [picture.question.partition("[")[2][:-1]]


def test_every_file_of_a_conversation_is_named_and_its_absence_is_said(
    logs: dict[str, Path], tmp_path: Path
) -> None:
    log = read_log(logs["files"])
    (item,) = log.items
    image, document, audio = item.meta["files_given"]
    assert re.fullmatch(
        "image: image/png, 55,001 characters, sha256 [0-9a-f]{12}, detail low", image
    )
    assert re.fullmatch(
        "document: notes.pdf, application/pdf, 8 characters, sha256 [0-9a-f]{12}", document
    )
    assert re.fullmatch("audio: audio/wav, 8 characters, sha256 [0-9a-f]{12}", audio)
    assert item.question == f"What is it?\n[{image}]\n[{document}]\n[{audio}]"
    taken, drawn = item.meta["files_shown"]
    assert taken == f"{drawn}, detail high"
    assert item.meta["tools"] == [{"name": "camera", "input": {}, "output": f"Taken:\n[{taken}]"}]
    contents = [message["content"] for message in item.meta["messages"]]
    named = [part["text"] for parts in contents if isinstance(parts, list) for part in parts]
    assert [text[1:-1] for text in named if text.startswith("[")] == [
        *(image, document, audio),
        *(taken, drawn),
    ]
    assert "the content of 5 files, which the messages name" in left_out_names(log.items, {"a": 1})

    suite = import_inspect(logs["files"], split_steps)
    config = read_config({"provider": "openai", "model": "gpt-4o", "task_suite": "files"})
    plan = ResolvedRun(config).plan(suite)
    said = "1 of 1 questions came with images or other files, of which only the names were kept"
    assert any(said in caution for caution in plan_cautions(plan, suite))
    suite = import_inspect(logs["epochs"], split_steps)
    assert not any("files" in caution for caution in plan_cautions(plan, suite))


def test_a_log_in_which_all_failed_is_an_error(logs: dict[str, Path]) -> None:
    with pytest.raises(SuiteErrors, match="each of its 2 samples ended in an error.*sandbox died"):
        read_log(logs["failed"])
    log = read_log(logs["errored"])
    assert (log.n_errors, sorted(log.replies)) == (1, ["e1-epoch1"])
    assert "sandbox died" in {item.id: item for item in log.items}["e2-epoch1"].meta["error"]


def test_a_folder_is_one_suite_in_which_a_question_is_one_cluster(
    logs: dict[str, Path], tmp_path: Path
) -> None:
    for name in ("epochs", "other", "agent"):
        (tmp_path / logs[name].name).write_bytes(logs[name].read_bytes())
    suite = import_inspect(tmp_path, split_steps)
    clusters = [item.meta.get("cluster") for item in suite.items]
    assert sorted(filter(None, clusters)) == [*["epochs/1"] * 2, *["epochs/2"] * 2]
    write_suite(suite, tmp_path / "all.jsonl")
    assert load_suite(tmp_path / "all.jsonl", chain="own").items == suite.items


def test_a_log_is_a_run_whose_chains_are_the_models_own(
    logs: dict[str, Path], tmp_path: Path
) -> None:
    store, log = Store(tmp_path), read_log(logs["epochs"])
    run = store_inspect_log(store, log)
    assert run.is_new and not store_inspect_log(store, log).is_new
    view = run_view(store, run.run_id)
    assert (view.model, view.status, view.asked) == ("recorded/mockllm/model", "done", 0)
    scores = view.scores("arithmetic_ok")
    by_item = dict(zip(scores["item_id"], scores["value"], strict=True))
    assert by_item == {"1-epoch1": 1.0, "2-epoch1": 1.0, "1-epoch2": 0.5, "2-epoch2": 0.5}
    estimates = read.run_estimates(store, run.run_id, ["arithmetic_ok"]).to_dict("records")
    assert [(row["point"], row["n"]) for row in estimates] == [(0.75, 2)]  # four draws of two items
    (key,) = {keys[0] for keys in scores[scores["item_id"] == "1-epoch2"]["evidence"]}
    assert view.responses((key,))[key].reasoning == "7 + 5 = 13.\n13 - 3 = 10."


def test_two_logs_of_one_revision_never_share_replies(
    logs: dict[str, Path], tmp_path: Path
) -> None:
    store = Store(tmp_path)
    first, second = (
        store_inspect_log(store, read_log(logs[name])).run_id for name in ("epochs", "other")
    )
    pairs = paired_suite(store, first, second).suite.items
    assert [item.meta["tuned_response"].splitlines()[0] for item in pairs] == [
        "7 + 5 = 13.",
        "2 * 6 = 12.",
    ]


def test_a_scorer_that_asks_the_model_is_refused(logs: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--scorer ablation asks the model"):
        store_inspect_log(Store(tmp_path), read_log(logs["epochs"]), ["ablation"])


@pytest.mark.parametrize("name", ["epochs", "agent", "choices", "errored"])
def test_a_log_in_and_out_again_has_the_same_samples_and_our_scores(
    logs: dict[str, Path], tmp_path: Path, name: str
) -> None:
    from inspect_ai.log import read_eval_log

    store = Store(tmp_path)
    run = store_inspect_log(store, read_log(logs[name]))
    write_inspect_log(store, run.run_id, tmp_path / "out.eval")
    given = read_eval_log(str(logs[name]), resolve_attachments="core")
    written = read_eval_log(str(tmp_path / "out.eval"))
    assert written.eval.metadata["cotlab"]["run_id"] == run.run_id
    assert written.eval.model == given.eval.model
    samples = {(sample.id, sample.epoch): sample for sample in written.samples}
    assert len(samples) == len(given.samples)
    for sample in given.samples:
        again = samples[sample.id, sample.epoch]
        for field in ("input", "target", "choices", "metadata", "uuid", "model_usage"):
            assert getattr(again, field) == getattr(sample, field)
        assert again.output.completion == sample.output.completion
        assert [(m.role, m.text) for m in again.messages] == [
            (m.role, m.text) for m in sample.messages
        ]
        for scorer, score in (sample.scores or {}).items():
            assert again.scores[scorer].value == score.value
        flags = again.scores["cotlab/flags"]
        assert flags.value == 1.0 or (flags.reason == "scoring_failed" and sample.error)


@pytest.mark.parametrize("name", ["epochs", "agent", "choices", "errored", "picture"])
def test_what_a_log_says_of_itself_comes_out_again(
    logs: dict[str, Path], tmp_path: Path, name: str
) -> None:
    from inspect_ai.log import read_eval_log

    store = Store(tmp_path)
    run = store_inspect_log(store, read_log(logs[name]))
    left_out = write_inspect_log(store, run.run_id, tmp_path / "out.eval").left_out
    given = read_eval_log(str(logs[name]), resolve_attachments="core")
    written = read_eval_log(str(tmp_path / "out.eval"))
    assert written.plan == given.plan and written.error == given.error
    assert written.eval.scorers == given.eval.scorers
    assert written.eval.packages.items() > given.eval.packages.items()
    assert written.stats.model_usage == given.stats.model_usage
    n_given = len(given.results.scores)
    for again, score in zip(written.results.scores[:n_given], given.results.scores, strict=True):
        assert (again.name, again.scorer, again.params) == (score.name, score.scorer, score.params)
        values, again_values = (
            {name: metric.value for name, metric in which.metrics.items()}
            for which in (score, again)
        )
        assert again_values == pytest.approx(values, nan_ok=True)
    assert all(s.name.startswith("cotlab/") for s in written.results.scores[n_given:])
    samples = {(sample.id, sample.epoch): sample for sample in written.samples}
    for sample in given.samples:
        again = samples[sample.id, sample.epoch]
        assert (again.error is None) == (sample.error is None)
        if sample.error:
            assert "sandbox died" in sample.error.traceback
            assert again.error.traceback == sample.error.traceback
        for message, given_message in (
            (again.output.message, sample.output.message)
            for _ in sample.output.choices
            if name != "picture"
        ):
            assert message.text == given_message.text
            assert message.tool_calls == given_message.tool_calls
            assert [
                (part.reasoning, part.redacted)
                for part in message.content
                if not isinstance(message.content, str) and part.type == "reasoning"
            ] == [
                (part.reasoning, part.redacted)
                for part in given_message.content
                if not isinstance(given_message.content, str) and part.type == "reasoning"
            ]
    assert "events" in left_out
    assert any("the content of 1 files" in part for part in left_out) is (name == "picture")


def test_facts_that_were_changed_by_hand_are_left_out(tmp_path: Path) -> None:
    from inspect_ai.log import EvalPlan

    assert log_part({"plan": {"steps": 3}}, "plan", EvalPlan) is None
    assert log_facts_of([Item("1", "q", None, (), meta={"inspect_log": "x"})]) == {}


SCORED_IN_INSPECT = """
import sys
import cotlab.inspect as cotlab_inspect
from inspect_ai import score
from inspect_ai.log import read_eval_log, write_eval_log
log = score(
    read_eval_log(sys.argv[1]),
    [cotlab_inspect.chain_flags(), cotlab_inspect.chain_arithmetic(), cotlab_inspect.chain_tools()],
    action="append",
    display="none",
)
for sample in log.samples:
    names = ("flags", "arithmetic", "tools")
    values = {name: sample.scores[f"chain_{name}"].value for name in names}
    print(sample.id, sample.epoch, *(f"{name}={value:g}" for name, value in values.items()))
assert "duckdb" not in sys.modules
"""


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("agent", ["eggs 1 flags=1 arithmetic=nan tools=1"]),
        (
            "other",
            [
                "1 1 flags=1 arithmetic=0.5 tools=nan",
                "2 1 flags=1 arithmetic=0.5 tools=nan",
            ],
        ),
    ],
)
def test_the_scorers_run_in_inspect_and_open_no_store(
    logs: dict[str, Path], tmp_path: Path, name: str, lines: list[str]
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCORED_IN_INSPECT, str(logs[name])],
        capture_output=True,
        check=False,
        text=True,
        timeout=600,
        cwd=Path(__file__).parents[3],
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == lines
