"""``cotlab labels`` as typed: export, import, queues, agreement, one message for each mistake."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from cotlab.cli import main as command
from cotlab.review.labelling.readable_chains import NO_CHAIN_REASON
from cotlab.store import labels as label_store
from cotlab.store.database import Store, store_folder
from tests.support.stores.queued import fill


@pytest.fixture
def store() -> Store:
    return fill(store_folder(), 4)


def typed(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["cotlab", "labels", *words])
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    with pytest.raises(SystemExit) as ended:
        command.main()
    return int(ended.value.code or 0)


def test_a_slip_in_a_name_never_looks_like_no_labels(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (
        ("export", "--run", "run-7"),
        ("export", "--queue", "q"),
        ("agreement", "--run", "run-7"),
    ):
        assert typed(monkeypatch, *words) == 2
        told = capsys.readouterr()
        assert not told.out and told.err.startswith("error: Unknown")
    assert typed(monkeypatch, "queue", "run-1", "--name", "caf\udce9") == 2
    assert (
        capsys.readouterr().err
        == "error: 'caf\\udce9' is not UTF-8 text: type it in a terminal that speaks UTF-8\n"
    )


def test_from_a_queue_to_agreement(
    store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    gold = tmp_path / "gold.jsonl"
    gold.write_text('{"run": "run-1", "item_id": "i-0", "reasoning": "acceptable"}\n')
    assert (
        typed(
            monkeypatch,
            *("queue", "run-1", "--name", "first", "--raters", "2", "--limit", "3", "--gold"),
            str(gold),
        )
        == 0
    )
    queue = capsys.readouterr().out.strip()
    assert label_store.list_queue_items(store, queue)[["item_id", "raters"]].values.tolist() == [
        ["i-0", 0],
        ["i-1", 2],
        ["i-2", 2],
    ]
    said = [
        {
            "run": "run-1",
            "item_id": f"i-{k}",
            "rater": rater,
            "queue": queue,
            "reasoning": verdict,
            "answer_correct": right,
        }
        for rater, verdict in (("=ann", "acceptable"), ("bob", "not_acceptable"))
        for k, right in enumerate((True, False, None))
    ]
    labels = tmp_path / "l.jsonl"
    labels.write_text("".join(json.dumps(row) + "\n" for row in said))
    assert typed(monkeypatch, "import", str(labels)) == 0
    assert "6 new labels, 0 known already" in capsys.readouterr().out
    assert typed(monkeypatch, "list") == 0
    shown = capsys.readouterr().out
    assert queue in shown and "5 of 5" in shown and "6 current labels in all" in shown
    assert typed(monkeypatch, "agreement", "--json", "--queue", queue) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["n_shared"] == 3
    assert [one["on"] for one in told["disagreements"]] == [
        "reasoning and target",
        "reasoning",
        "reasoning",
    ]
    assert typed(monkeypatch, "agreement") == 0
    words = capsys.readouterr().out
    assert (
        "3 labelled items, 3 of them by two raters or more" in words
        and "gold items right: 0 [" in words
    )
    assert "differ on reasoning: run-1 'i-1': '=ann' acceptable, 'bob' not_acceptable" in words
    assert typed(monkeypatch, "queue", "run-1", "--kind", "adjudication") == 0
    assert len(label_store.list_queue_items(store, capsys.readouterr().out.strip())) == 3
    out = tmp_path / "l.csv"
    assert typed(monkeypatch, "export", "--format", "csv", "--history", "--out", str(out)) == 0
    assert "'=ann" in out.read_text() and ",=ann" not in out.read_text()
    assert typed(monkeypatch, "import", str(out)) == 0
    assert "0 new labels, 6 known already" in capsys.readouterr().out
    assert typed(monkeypatch, "export", "--run", "run-1") == 0
    assert len(capsys.readouterr().out.splitlines()) == 6


def test_a_queue_leaves_out_chains_that_nobody_can_read(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with store.writing() as connection:
        connection.execute("UPDATE items SET steps = [] WHERE id = 'i-2'")
    assert typed(monkeypatch, "queue", "run-1") == 0
    said = capsys.readouterr()
    assert f"Left out: 1 item: {NO_CHAIN_REASON}." in said.err
    items = label_store.list_queue_items(store, said.out.strip())["item_id"].tolist()
    assert items == ["i-0", "i-1", "i-3"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("queue", "run-9"), "Unknown run 'run-9'"),
        (("queue", "run-1", "--kind", "flagged"), "would be empty"),
        (("queue", "run-1", "--kind", "flaged"), "Did you mean 'flagged'"),
        (("queue", "run-1", "--gold", "{here}/gone"), "no such file"),
        (("queue", "run-1", "--gold", "{here}/bad"), "bad:2: item_id: is missing"),
        (("import", "{here}/bad"), "bad:1: rater: is missing"),
        (("import", "{here}/gone"), "cannot be read"),
        (("export", "--format", "json"), "Did you mean 'jsonl'"),
        (("export", "--out", "{here}/no/l.jsonl"), "cannot be written"),
        (("agreement", "--queue", "q"), "Unknown queue 'q'"),
    ],
)
def test_a_mistake_is_one_message(
    store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    message: str,
) -> None:
    (tmp_path / "bad").write_text(
        '{"run": "run-1", "item_id": "i-0", "reasoning": "acceptable"}\n{"run": "run-1"}\n'
    )
    assert typed(monkeypatch, *(word.format(here=tmp_path) for word in words)) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and message in error and "Traceback" not in error
    assert (
        label_store.list_label_queues(store).empty
        and label_store.list_labels(store, history=True).empty
    )
