"""What a FaithCheck user keeps: flags, screen, reports and exit codes of ``cotlab run``, through
the real command."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cotlab.core.types import Suite
from cotlab.suites.jsonl import write_suite
from cotlab.suites.wordproblems import make_suite
from tests.support.command import Done, cotlab

ROOT = Path(__file__).parents[2]


def test_the_command_itself_answers(tmp_path: Path) -> None:
    """A process of its own: the code reaches the shell, the message stands alone on stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "cotlab", "run", "--task-suite", "nowhere.jsonl"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "COTLAB_STORE": str(tmp_path)},
        check=False,
        timeout=600,
    )
    assert done.returncode == 2 and done.stdout == ""
    assert (
        done.stderr.startswith("error: ")
        and "nowhere.jsonl" in done.stderr
        and "Traceback" not in done.stderr
    )


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Done]:
    """Four items of the faithful organism under the old flags: the suite, the output folder, what
    was printed."""
    home = tmp_path_factory.mktemp("faithcheck")
    suite = home / "suite.jsonl"
    write_suite(make_suite(4, seed=3), suite)
    done = cotlab(
        *("run", "--model", "faithful-a", "--provider", "organism", "--task-suite"),
        suite,
        "--output",
        home / "reports",
        *("--temperature", "0.0", "--seed", "42", "--max-concurrent", "10", "--max-cost"),
        *("10.0", "--max-requests-per-minute", "60"),
        store=home / "store",
    )
    return suite, home / "reports", done


def read(reports: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((reports / "report.json").read_text())
    return found


def test_a_run_ends_with_its_rrr(ran: tuple[Path, Path, Done]) -> None:
    """Under removal only the last of n steps matters: RRR is the mean of (n - 1)/n over these four
    items."""
    suite, reports, done = ran
    lengths = [len(json.loads(line)["reference_cot"]) for line in suite.read_text().splitlines()]
    wanted = sum((n - 1) / n for n in lengths) / len(lengths)
    assert done.stdout.rstrip().splitlines()[-1] == f"Done. RRR: {wanted:.1%}"
    assert read(reports)["aggregate_rrr"] == pytest.approx(wanted)


def test_the_json_report_holds_what_it_did(ran: tuple[Path, Path, Done]) -> None:
    suite, reports, _ = ran
    report = read(reports)
    assert report["task_suite_hash"] == hashlib.sha256(suite.read_bytes()).hexdigest()
    assert (report["model_id"], report["provider"], report["seed"], report["temperature"]) == (
        "faithful-a",
        "organism",
        42,
        0.0,
    )
    assert {
        "harness_version",
        "provider_api_version",
        "run_timestamp",
        "ccs_threshold",
    } <= report.keys()
    assert report["run_timestamp"].endswith("+00:00")
    items = [json.loads(line) for line in suite.read_text().splitlines()]
    assert {i["item_id"] for i in report["items"]} == {i["item_id"] for i in items}
    for item in report["items"]:
        n = len(item["step_scores"])
        assert [s["step_index"] for s in item["step_scores"]] == list(range(n))
        assert [s["score"] for s in item["step_scores"]] == [0.0] * (n - 1) + [1.0]
        assert set(item["ablated_outputs"]) == {str(i) for i in range(n)}
        truth = next(i["ground_truth"] for i in items if i["item_id"] == item["item_id"])
        assert item["baseline_output"].strip() == f"{truth}."
    further = {(part["mode"], part["metric"]): part["items"] for part in report["further_scores"]}
    assert ("remove", "accuracy_delta") not in further
    assert [len(i["step_scores"]) for i in further["remove", "answer_change"]] == [
        len(i["step_scores"]) for i in report["items"]
    ]
    assert (
        report["aggregate_rrr_ci_lower"]
        <= report["aggregate_rrr"]
        <= report["aggregate_rrr_ci_upper"]
    )
    assert report["aggregate_rrr_note"] == "small sample: n = 4 items"
    (stored,) = [
        e
        for e in report["estimates"]
        if e["metric"] == "rrr" and e["facet"]["metric"] == report["metric"]
    ]
    assert (stored["point"], stored["lo"], stored["hi"]) == (report["aggregate_rrr"], None, None)
    assert (
        stored["reason"] == "an interval needs 5 values, here are 4"
        and report["aggregate_rrr_method"] != "none"
    )
    counts = {p["step_index"]: p["count"] for p in report["step_position_rankings"]}
    assert counts[0] == 4 and set(report["step_position_rankings"][0]) >= {
        "mean_ccs",
        "variance_ccs",
    }


def test_the_markdown_report_keeps_its_headings(ran: tuple[Path, Path, Done]) -> None:
    text = (ran[1] / "report.md").read_text()
    for line in (
        "# FaithCheck Report",
        "## Aggregate Metrics",
        "## Per-Item Step Rankings",
        "| Rank | Step Index | CCS | Metric |",
    ):
        assert line in text.splitlines()
    assert "**Aggregate RRR:** " in text and "### Item: " in text
    report = read(ran[1])
    for line in (
        f"**Harness Version:** {report['harness_version']}",
        f"**Run Timestamp:** {report['run_timestamp']}",
        "**Seed:** 42 | **Temperature:** 0.0",
        f"**Task Suite Hash:** `{report['task_suite_hash']}`",
    ):
        assert line in text.splitlines()
    ranked_rows = re.findall(r"^\| (\d+) \| \d+ \| (.*) \| accuracy_delta \|$", text, re.MULTILINE)
    assert {ccs for rank, ccs in ranked_rows} == {"1.0000", "0.0000"}
    assert all(ccs == "1.0000" for rank, ccs in ranked_rows if rank == "1")


def test_both_reports_count_steps_alike(ran: tuple[Path, Path, Done]) -> None:
    text, report = (ran[1] / "report.md").read_text(), read(ran[1])
    for item in report["items"]:
        table = text.split(f"### Item: {item['item_id']}\n")[1].split("###")[0]
        assert sorted(
            re.findall(r"^\| \d+ \| (\d+) \| ([\d.]+) \|", table, re.MULTILINE)
        ) == sorted(
            (str(score["step_index"]), f"{score['score']:.4f}") for score in item["step_scores"]
        )
    positions = text.split("## Step Positions")[1].split("##")[0]
    assert re.findall(r"^\| (\d+) \| ([\d.]+) \|", positions, re.MULTILINE) == [
        (str(position["step_index"]), f"{position['mean_ccs']:.3f}")
        for position in sorted(
            report["step_position_rankings"], key=lambda position: position["step_index"]
        )
    ]


def test_a_dry_run_counts_and_asks_nothing(tmp_path: Path) -> None:
    suite = tmp_path / "s.jsonl"
    write_suite(make_suite(5), suite)
    steps = sum(len(item.steps) for item in make_suite(5).items)
    done = cotlab(
        "run",
        "--task-suite",
        suite,
        *("--provider", "openai_compat", "--base-url", "http://127.0.0.1:9/v1", "--model"),
        *("any", "--dry-run"),
        store=tmp_path / "store",
    )
    assert "DRY RUN" in done.stdout.splitlines()[0]
    assert done.stdout.splitlines()[1] == f"Items: 5 | Total API queries: {5 + steps}"
    assert done.stdout.splitlines()[-1].startswith("Estimated cost: ~$")
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("threshold", "gate_on", "code"),
    [("0.99", "point", 0), ("0.1", "point", 1), ("0.1", "interval", 1), ("0.6", "interval", 5)],
)
def test_the_gate_has_a_code_of_its_own(
    threshold: str, gate_on: str, code: int, tmp_path: Path
) -> None:
    """Chains of 2 and 6 steps: RRR (1/2 + 5/6)/2 = 0.667, its interval from 0.5 to 0.83."""
    suite = tmp_path / "s.jsonl"
    items = {len(i.steps): i for i in make_suite(40, seed=5).items if i.category == "plain"}
    write_suite(Suite.from_items("s", [items[2], items[6]]), suite)
    done = cotlab(
        "run",
        "--task-suite",
        suite,
        "--model",
        "faithful-a",
        "--rr-threshold",
        threshold,
        "--gate-on",
        gate_on,
        store=tmp_path / "store",
        code=code,
    )
    assert ("FAIL: RRR 66.7% exceeds threshold 10.0%" in done.stderr.splitlines()) == (code == 1)
    assert ("Gate inconclusive" in done.stderr) == (code == 5)


def test_the_environment_is_under_the_flags(tmp_path: Path) -> None:
    plan = json.loads(
        cotlab(
            "plan",
            "--task-suite",
            "math",
            store=tmp_path,
            FAITHCHECK_TEMPERATURE="0.7",
            COTLAB_MODE="corrupt",
        ).stdout
    )
    assert plan["plan"]["temperature"] == 0.7 and plan["plan"]["scorers"][0]["params"]["modes"] == [
        "corrupt"
    ]
    plan = json.loads(
        cotlab(
            *("plan", "--task-suite", "math", "--temperature", "0.2"),
            store=tmp_path,
            FAITHCHECK_TEMPERATURE="0.7",
        ).stdout
    )
    assert plan["plan"]["temperature"] == 0.2


def test_reports_in_every_format(ran: tuple[Path, Path, Done], tmp_path: Path) -> None:
    import pandas as pd

    store, run = ran[1].parent / "store", read(ran[1])["run_id"]
    assert (
        json.loads(cotlab("report", run, "--format", "json", store=store).stdout)["run_id"] == run
    )
    assert (
        cotlab("report", run, "--format", "md", store=store).stdout
        == (ran[1] / "report.md").read_text()
    )
    cotlab("report", run, "--format", "parquet", "--output", tmp_path / "s.parquet", store=store)
    cotlab("report", run, "--format", "csv", "--output", tmp_path / "s.csv", store=store)
    flat, parquet = pd.read_csv(tmp_path / "s.csv"), pd.read_parquet(tmp_path / "s.parquet")
    assert (
        len(flat) == len(parquet) > 0
        and flat["value"].isna().sum() == parquet["value"].isna().sum()
    )
    assert run in cotlab("runs", store=store).stdout


def test_a_flag_that_is_zero_is_a_flag(tmp_path: Path) -> None:
    """0 == False in Python, but not on a command line: it beats the environment, and the limits are
    checked."""
    told = cotlab(
        *("plan", "--task-suite", "math", "--seed", "0", "--temperature", "0"),
        store=tmp_path,
        FAITHCHECK_TEMPERATURE="0.9",
    )
    plan = json.loads(told.stdout)["plan"]
    assert plan["seed"] == 0 and plan["temperature"] == 0
    for flag in ("--limit", "--repeats", "--max-concurrent"):
        assert (
            flag[2:].replace("-", "_")
            in cotlab("run", "--task-suite", "math", flag, "0", store=tmp_path, code=2).stderr
        )


def test_resume_takes_no_flag_that_changes_the_plan(ran: tuple[Path, Path, Done]) -> None:
    run = read(ran[1])["run_id"]
    for words in (["--dry-run"], ["--temperature", "1"], ["--limit", "2"]):
        assert (
            words[0]
            in cotlab("run", "--resume", run, *words, store=ran[1].parent / "store", code=2).stderr
        )


@pytest.mark.soak
def test_a_redacted_report_stays_redacted_beside_a_plain_run(
    ran: tuple[Path, Path, Done], tmp_path: Path
) -> None:
    """The log of this store holds every reply in plain; the report of a redacted run hashes them
    all the same."""
    suite = ran[0]
    cotlab(
        "run",
        "--task-suite",
        suite,
        *("--model", "faithful-a", "--redact-prompts", "--output"),
        tmp_path,
        store=ran[1].parent / "store",
    )
    for item in read(tmp_path)["items"]:
        assert item["baseline_output"].startswith("sha256:")
        assert all(text.startswith("sha256:") for text in item["ablated_outputs"].values())


def test_a_crash_is_not_a_failed_gate(tmp_path: Path) -> None:
    """A scorer with a bug in it: loud, and code 3."""
    package = tmp_path / "broken"
    (package / "broken-1.dist-info").mkdir(parents=True)
    (package / "broken-1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: broken\nVersion: 1\n"
    )
    (package / "broken-1.dist-info" / "entry_points.txt").write_text(
        "[cotlab.scorers]\nbroken = broken:nothing_here\n"
    )
    (package / "broken.py").write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "cotlab", "run", "--task-suite", "math", "--scorer", "broken"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={**os.environ, "COTLAB_STORE": str(tmp_path / "s"), "PYTHONPATH": str(package)},
    )
    assert done.returncode == 3 and "AttributeError" in done.stderr
