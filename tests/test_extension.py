"""A scorer and a provider from outside: one small file each and one line of entry points, run by
the ordinary command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCORER = '''\
"""Does the model repeat the question?"""

from cotlab.core.program import scorer
from cotlab.core.requests import Complete, Message, Response
from cotlab.core.types import MetricCard

REPEATS = MetricCard(
    name="repeats_question", symbol="rep", better="lower", source="tests",
    formula="1 if the reply contains the question", undefined="No reply.",
    not_shown="Whether the answer is right.",
)


@scorer(REPEATS, version=1, name="mine")
def mine(item, params, peers):
    (reply,) = yield [Complete(params.subject, (Message("user", item.question),))]
    said = reply.text if isinstance(reply, Response) else None
    value = None if said is None else float(item.question in said)
    return (REPEATS.score(item, value, reason=None if said else "no reply", evidence=(reply.key,)),)
'''
CHAIN_SCORER = '''\
"""How many words does a step have?"""

from cotlab.core.program import Option, scorer
from cotlab.core.types import MetricCard
from cotlab.core.types import CHAINS
from cotlab.metrics.kit import ItemScores, chain_of

WORDS = MetricCard(
    name="step_words", symbol="w", hi=1000.0, unit="words", level="step", source="tests",
    formula="words of the step, at most `limit`", undefined="No chain.",
    not_shown="What the words say.",
)
OPTIONS = {
    "chain": Option("own", "whose steps are counted", choices=CHAINS),
    "limit": Option(1000, "words that are counted at most", lo=1, hi=1000),
}


@scorer(WORDS, version=1, name="words", options=OPTIONS)
def words(item, params, peers):
    """Count the words of each step."""
    chain, scores = (yield from chain_of(item, params)), ItemScores(item)
    for i, step in enumerate(chain.steps):
        n_words = min(len(step.split()), params.options["limit"])
        scores.add(WORDS, n_words, rests_on=chain.keys, step=i)
    if not chain.steps:
        scores.add_missing([WORDS], chain.missing_reason, rests_on=chain.keys)
    return tuple(scores.scores)
'''
PROVIDER = '''\
"""Answers every question with itself, but for questions about cats."""

from cotlab.core.errors import Unsupported
from cotlab.core.requests import Complete, Response, Usage


class Theirs:
    answers = frozenset({Complete.kind})
    free = True

    def __init__(self, ref):
        self.ref = ref

    async def send(self, request):
        text = request.messages[0].content
        if "cat" in text:
            raise Unsupported("no cats")
        return Response(request.key, "no" if "dog" in text else f"Asked: {text}", usage=Usage(1, 1))

    async def close(self): ...
'''
SUITE = [
    {
        "item_id": name,
        "prompt": f"How many {name}s?",
        "reference_cot": [{"index": 0, "text": "One."}],
        "ground_truth": "1",
    }
    for name in ("bird", "cat", "dog", "fish")
]


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder as pip would leave it: two modules and the metadata that names them."""
    folder = tmp_path / "site"
    info = folder / "cotlab_outside-0.1.dist-info"
    info.mkdir(parents=True)
    (folder / "my_scorer.py").write_text(SCORER)
    (folder / "their_words.py").write_text(CHAIN_SCORER)
    (folder / "their_provider.py").write_text(PROVIDER)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: cotlab-outside\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text(
        "[cotlab.scorers]\nmine = my_scorer:mine\nwords = their_words:words\n\n"
        "[cotlab.providers]\ntheirs = their_provider:Theirs\n"
    )
    (tmp_path / "suite.jsonl").write_text("".join(f"{json.dumps(item)}\n" for item in SUITE))
    return folder


def cotlab(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {
        **os.environ,
        "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}",
        "COTLAB_STORE": str(folder.parent / "store"),
    }
    command = [sys.executable, "-m", "cotlab", *arguments]
    return subprocess.run(
        command,
        cwd=folder.parent,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def test_extensions_are_small() -> None:
    assert len(SCORER.splitlines()) <= 20
    assert len(PROVIDER.splitlines()) <= 20
    assert len(CHAIN_SCORER.splitlines()) <= 30


@pytest.mark.soak
def test_an_outside_scorer_runs_on_an_outside_provider(outside: Path) -> None:
    done = cotlab(
        outside,
        *("run", "--task-suite", "suite.jsonl", "--scorer", "mine", "--provider", "theirs"),
        *("--model", "x", "--run-id", "first"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "repeats_question" in done.stdout

    told = cotlab(outside, "report", "first", "--format", "csv")
    assert told.returncode == 0, told.stderr
    header, *rows = (line.split(",") for line in told.stdout.splitlines())
    scores = {
        row[header.index("item_id")]: (row[header.index("value")], row[header.index("status")])
        for row in rows
    }
    assert scores == {
        "bird": ("1.0", "ok"),
        "cat": ("", "undefined"),
        "dog": ("0.0", "ok"),
        "fish": ("1.0", "ok"),
    }

    report = json.loads(cotlab(outside, "report", "first", "--format", "json").stdout)
    (estimate,) = (e for e in report["estimates"] if e["metric"] == "repeats_question")
    assert (estimate["point"], estimate["n"], estimate["n_undefined"]) == (
        pytest.approx(2 / 3),
        3,
        1,
    )


def test_a_dry_run_counts_what_an_outside_scorer_asks(outside: Path) -> None:
    done = cotlab(
        outside,
        *("run", "--task-suite", "suite.jsonl", "--scorer", "mine", "--provider", "theirs"),
        *("--model", "x", "--dry-run"),
    )
    assert (done.returncode, done.stdout.splitlines()[1]) == (
        0,
        "Items: 4 | Total API queries: 4",
    ), done.stderr


def test_a_name_that_is_nearly_theirs_gets_a_suggestion(outside: Path) -> None:
    done = cotlab(
        outside,
        *("run", "--task-suite", "suite.jsonl", "--scorer", "mime", "--provider", "theirs"),
        *("--model", "x"),
    )
    assert done.returncode == 2
    assert (
        "Unknown scorer 'mime'. Did you mean 'mine'?" in done.stderr and "ablation" in done.stderr
    )


@pytest.mark.soak
def test_a_new_metric_is_held_to_the_laws_without_an_entry_in_the_tests(outside: Path) -> None:
    """One file and one line of a registry: the laws take it with its default options."""
    laws = [str(ROOT / "tests/metrics" / name) for name in ("test_laws.py", "test_cards.py")]
    options = ["-p", "no:cacheprovider", "-k", "words or step_words", "--rootdir", str(ROOT)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *laws, *options, "-c", str(ROOT / "pyproject.toml")],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{outside}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert int(done.stdout.split(" passed")[0].split()[-1]) >= 12


@pytest.mark.soak
def test_an_option_out_of_range_is_refused_with_what_it_does(outside: Path) -> None:
    command = ["--scorer", "words", "--provider", "theirs", "--model", "x", "--dry-run"]
    for value, message in (
        ("0", "words.limit must lie in [1, 1000], got 0 (words that are counted at most)."),
        ("many", "words.limit is a whole number"),
    ):
        done = cotlab(
            outside, "run", "--task-suite", "suite.jsonl", *command, "--set", f"words.limit={value}"
        )
        assert done.returncode == 2
        assert message in " ".join(done.stderr.split())
