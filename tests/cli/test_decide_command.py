"""``cotlab decide`` and ``cotlab policy``: exit codes, what is printed, and the files."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cotlab.cli.main import app
from cotlab.core.errors import ConfigError, UnknownName
from cotlab.reliability.policy import PolicyError
from cotlab.store import decisions as decision_store
from cotlab.store.calibrators import activate_calibrator
from cotlab.store.database import Store
from tests.support.stores.decided import RUN, fill


def run(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Without the four answers that nothing can be said of, all can be released."""
    store = fill(tmp_path / "store", 40, labelled=30)
    with store.writing() as connection:
        connection.execute(
            "UPDATE scores SET status = 'ok', reason = NULL, value = 0.5 WHERE status != 'ok'"
        )
    return store


@pytest.mark.parametrize(
    ("low", "high", "fail_on", "code"),
    [
        ("0", "0", "review", 0),
        ("0", "1", "review", 1),
        ("0", "1", "escalate", 0),
        ("0.5", "0.5", "review", 6),
        ("0.5", "0.9", "escalate", 6),
    ],
)
def test_the_exit_code_says_whether_a_person_is_needed(
    store: Store, low: str, high: str, fail_on: str, code: int
) -> None:
    found = run("decide", RUN, "--low", low, "--high", high, "--fail-on", fail_on)
    assert found.exit_code == code, found.output


def test_items_without_scores_are_not_passed_over(tmp_path: Path) -> None:
    store = fill(tmp_path / "store", 10, labelled=0, planned=12)
    with store.writing() as connection:
        connection.execute(
            "UPDATE scores SET status = 'ok', reason = NULL, value = 0.5 WHERE status != 'ok'"
        )
    found = run("decide", RUN, "--low", "0", "--high", "0")
    assert found.exit_code == 6 and "Released 10, review 0, escalated 0" in found.output
    assert "2 items have no scores" in found.output


@pytest.mark.soak
def test_volumes_reasons_and_files(store: Store, tmp_path: Path) -> None:
    kept_policy = run(
        *("policy", "set", "--low", "0.3", "--high", "0.8", "--capacity", "5", "--reason"),
        *("start", "--by", "Ann"),
    )
    assert kept_policy.exit_code == 0 and "Policy 1" in kept_policy.output
    found = run("decide", RUN, "--json", "--out", str(tmp_path / "new" / "d.csv"), "--by", "=Bob")
    told = json.loads(found.output)
    assert told["actions"] == {
        name: sum(d["action"] == name for d in told["decisions"]) for name in told["actions"]
    }
    assert (
        told["n"] == 40 == len(told["decisions"])
        and told["policy"] == 1
        and told["calibrator"] == 1
    )
    assert (
        told["review_days"] == -(-told["actions"]["review"] // 5)
        and told["expected_errors"]["point"] > 0
    )
    rows = list(csv.DictReader((tmp_path / "new" / "d.csv").read_text("utf-8").splitlines()))
    assert [row["id"] for row in rows] == [d["id"] for d in told["decisions"]] and {
        row["by"] for row in rows
    } == {"'=Bob"}
    assert set(decision_store.list_decisions(store, RUN)["id"]) == {row["id"] for row in rows}
    plain = run("decide", RUN, "--out", str(tmp_path / "d.jsonl"))
    assert (
        f"Released {told['actions']['release']}, review" in plain.output
        and "r_cal is below low" in plain.output
    )
    assert len((tmp_path / "d.jsonl").read_text().splitlines()) == 40
    run("policy", "set", "--low", "0.1", "--high", "0.2", "--domain", "maths", "--reason", "easy")
    shown = json.loads(run("policy", "show", "--json").output)
    assert shown["policies"][0]["thresholds"] == {"default": [0.3, 0.8], "maths": [0.1, 0.2]}
    assert shown["policies"][0]["capacity"] == 5 and shown["rollout"]["reached"] == 4
    assert "now version 2" in run("policy", "show").output


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("decide", RUN, "--low", "0.9", "--high", "0.1"), PolicyError),
        (("decide", RUN, "--low", "0.1"), ConfigError),
        (("decide", RUN, "--out", "d.txt"), ConfigError),
        (("policy", "set", "--reason", "x"), PolicyError),
        (("policy", "set", "--reason", " ", "--low", "0", "--high", "1"), PolicyError),
        (("policy", "set", "--reason", "x", "--domain", "maths"), ConfigError),
        (("policy", "suggest"), ConfigError),
        (
            ("policy", "set", "--reason", "x", "--low", "0", "--high", "1", "--domain", "math"),
            UnknownName,
        ),
        (
            ("policy", "set", "--reason", "x", "--low", "0", "--high", "1", "--domain", "default"),
            PolicyError,
        ),
        (("policy", "suggest", "--target-precision", "1"), PolicyError),
    ],
)
def test_bad_input_is_one_message_and_changes_nothing(
    store: Store, words: tuple[str, ...], error: type[Exception]
) -> None:
    found = run(*words)
    assert isinstance(found.exception, error), found.output
    assert decision_store.list_decisions(store).empty and decision_store.list_policies(store).empty


def test_thresholds_are_for_a_domain_that_is_there_or_that_is_wanted(store: Store) -> None:
    words = ("policy", "set", "--reason", "x", "--low", "0.2", "--high", "0.7")
    found = run(*words, "--domain", "Maths")
    assert (
        str(found.exception) == "Unknown domain 'Maths'. Did you mean 'maths'? Known: law, maths."
    )
    assert (
        run(*words, "--domain", "maths").exit_code
        == run(*words, "--domain", "Maths", "--force").exit_code
        == 0
    )
    assert run(*words).exit_code == 0
    assert set(json.loads(run("policy", "show", "--json").output)["policies"][0]["thresholds"]) == {
        "Maths",
        "default",
        "maths",
    }


def test_suggestions_are_printed(store: Store) -> None:
    assert (
        "If r_cal is calibrated: low 0, high 0.944"
        in run("policy", "suggest", "--cost-error", "20").output
    )
    assert "more labels" in run("policy", "suggest", RUN, "--target-precision", "0.95").output


def test_nothing_is_decided_by_nobody(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def nameless() -> str:
        raise OSError("no such user")

    monkeypatch.setattr("getpass.getuser", nameless)
    assert run("decide", RUN, "--low", "0", "--high", "0", "--by", " ").exit_code == 0
    assert (
        run(
            "policy", "set", "--low", "0.3", "--high", "0.8", "--reason", "start", "--by", "\t"
        ).exit_code
        == 0
    )
    assert run("calibrate", "--rollback", "9", "--reason", "x", "--by", "").exit_code
    assert decision_store.list_audit(store)["who"].tolist()[:2] == ["command line", "command line"]
    with pytest.raises(ValueError, match="name"), store.writing() as connection:
        activate_calibrator(connection, 1, author=" ", reason="x")
    found = run("policy", "set", "--capacity", "99999999999", "--reason", "x")
    assert isinstance(found.exception, PolicyError) and "at most 2147483647" in str(found.exception)
