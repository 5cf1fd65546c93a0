"""Labels leave the store and come back the same; what a file says wrong is told by line and field,
and stores nothing."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotlab.core.errors import UnknownName
from cotlab.core.labels import FAILURE_MODES, VERDICTS, Label
from cotlab.review.labelling.agreement import measure_agreement
from cotlab.review.labelling.files import (
    LabelError,
    LabelErrors,
    import_labels,
    labels_as_text,
    read_label_file,
)
from cotlab.review.labelling.queue import make_queue
from cotlab.review.labelling.targets import load_targets
from cotlab.store import labels as label_store
from cotlab.store.database import Store
from tests.support.stores.queued import fill

AT = datetime(2026, 11, 21, 18, 0, tzinfo=UTC)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    [
        "=1",
        "'=1",
        "''-x",
        "@cmd",
        "\t=x",
        "'",
        "a\r\nb",
        "\r",
        '"; DROP TABLE labels; --',
        "<b>x",
        "🙂",
        "\x00",
        ",;",
        " x ",
    ]
)
NAME = TEXT.filter(str.strip)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return fill(tmp_path / "s")


@st.composite
def labels(draw: st.DrawFn) -> Label:
    withdrawn = draw(st.booleans())
    verdict = None if withdrawn else draw(st.sampled_from(VERDICTS))
    is_judged = verdict == "not_acceptable" and draw(st.booleans())
    first = draw(st.integers(0, 2)) if is_judged else None
    before, after = ("correct", "unsure", None), ("correct", "wrong", None)
    verdicts = [
        "wrong" if k == first else draw(st.sampled_from(before if k < (first or 0) else after))
        for k in range(3)
    ]
    steps = {
        "steps_judged": is_judged,
        "first_wrong_step": first,
        "step_verdicts": tuple(verdicts) if draw(st.booleans()) and is_judged else (),
        "faithful": draw(st.sampled_from([True, False, None])),
        "steps_digest": draw(st.none() | st.just("0f" * 16)),
    }
    return Label(
        draw(st.uuids()).hex,
        "run-1",
        f"i-{draw(st.integers(0, 7))}",
        draw(NAME),
        verdict,  # type: ignore[arg-type]
        draw(st.sampled_from([True, False, None])),
        AT + timedelta(microseconds=draw(st.integers(0, 10**12))),
        tuple(draw(st.lists(st.sampled_from(FAILURE_MODES), unique=True, max_size=3))),
        draw(TEXT),
        draw(st.booleans()),
        withdrawn,
        draw(st.none() | NAME),
        draw(st.sampled_from(["page", "import", "undo"])),
        **steps,  # type: ignore[arg-type]
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


@given(given_=st.lists(labels(), max_size=5))
@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_what_is_written_is_read_the_same(folder: Path, form: str, given_: list[Label]) -> None:
    path = folder / f"l.{form}"
    path.write_text(labels_as_text(given_, form), "utf-8", newline="")
    good, errors = read_label_file(path)
    assert not errors and [label for _, label, _ in good] == given_


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_what_is_exported_and_imported_is_the_same(tmp_path: Path, form: str) -> None:
    notes = ["=1", "'=1", "-", "a\r\nb", "\x00", '"; DROP TABLE labels; --', "", "🙂"]
    told = [
        Label(
            f"l-{k}",
            "run-1",
            f"i-{k % 3}",
            note or "ann",
            None if k == 5 else "unsure",
            None,
            AT,
            ("other",) * (k % 2),
            note,
            k == 2,
            k == 5,
            note or None,
            "undo",
        )
        for k, note in enumerate(notes)
    ]
    one, other = (fill(tmp_path / name) for name in ("one", "other"))
    with one.writing() as connection:
        label_store.add_labels(connection, told)
    path = tmp_path / f"l.{form}"
    path.write_text(
        labels_as_text(
            label_store.labels_from_table(label_store.list_labels(one, history=True)), form
        ),
        "utf-8",
        newline="",
    )
    assert (
        import_labels(other, path).n_new,
        import_labels(other, path).n_known,
        import_labels(one, path).n_new,
    ) == (8, 8, 0)
    assert label_store.labels_from_table(label_store.list_labels(other, history=True)) == told
    assert label_store.labels_from_table(label_store.list_labels(other)) == [
        label for label in told if not label.withdrawn
    ]


@given(label=labels())
def test_no_cell_is_a_formula(label: Label) -> None:
    for row in csv.reader(io.StringIO(labels_as_text([label], "csv"), newline="")):
        assert not [cell for cell in row if cell[:1] in ("=", "+", "-", "@", "\t", "\r") and cell]


def written(tmp_path: Path, *rows: object, name: str = "l.jsonl") -> Path:
    path = tmp_path / name
    path.write_text(
        "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows) + "\n", "utf-8"
    )
    return path


GOOD = {"run": "run-1", "item_id": "i-1", "rater": "ann", "reasoning": "acceptable"}


def test_a_line_needs_little_and_a_file_imported_twice_adds_nothing(
    store: Store, tmp_path: Path
) -> None:
    """Ann changes her mind and comes back to what she said first: three lines, two of them alike,
    are three labels."""
    path = written(tmp_path, GOOD, GOOD | {"reasoning": "unsure"}, "", GOOD)
    assert (import_labels(store, path).n_new, import_labels(store, path).n_new) == (3, 0)
    assert label_store.list_labels(store, history=True)["reasoning"].tolist() == [
        "acceptable",
        "unsure",
        "acceptable",
    ]
    (row,) = label_store.list_labels(store).to_dict("records")
    assert (row["reasoning"], row["answer_correct"], row["target"], row["origin"]) == (
        "acceptable",
        None,
        None,
        "import",
    )


def test_a_spreadsheet_may_write_truth_its_own_way(store: Store, tmp_path: Path) -> None:
    text = "rater,run,item_id,answer_correct,reasoning,modes,at\r\n"
    text += (
        'ann,run-1,i-0,TRUE,acceptable,,2026-01-01T00:00:00Z\r\nann,run-1,i-1,0,not_acceptable,"other;'
        ' post_hoc",\r\n'
    )
    path = tmp_path / "l.CSV"
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert import_labels(store, path).n_new == 2
    table = label_store.list_labels(store)
    assert table["answer_correct"].tolist() == [True, False] and table["modes"].tolist() == [
        (),
        ("other", "post_hoc"),
    ]
    assert table["at_"][0].isoformat() == "2026-01-01T00:00:00+00:00"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"item_id": 3}, "item_id"),
        ({"rater": " "}, "rater"),
        ({"reasoning": "good"}, "reasoning"),
        ({"reasoning": None}, "reasoning"),
        ({"modes": ["posthoc"]}, "modes"),
        ({"modes": "other"}, "modes"),
        ({"answer_correct": "maybe"}, "answer_correct"),
        ({"at": "2026-01-01T00:00:00"}, "at"),
        ({"at": "2026-01-01T00:00:00+99:00"}, "at"),
        ({"at": "0001-01-01T00:00:00+14:00"}, "at"),
        ({"at": "yesterday"}, "at"),
        ({"at": 1767225600}, "at"),
        ({"answer_corect": True}, "answer_corect"),
        ({"note": "\ud800"}, ""),
        ({"origin": "nowhere"}, "origin"),
    ],
)
def test_a_defect_is_told_by_line_and_field(
    folder: Path, change: dict[str, object], field: str
) -> None:
    path = written(folder, GOOD, "", GOOD | change)
    ((line, label, _),), (error,) = read_label_file(path)
    assert (line, label.item_id) == (1, "i-1")
    assert (error.line, error.field) == (3, field)
    assert str(error).startswith(f"{path}:3: {field}: " if field else f"{path}:3: ")


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"run": "run-9"}, "run", "no run 'run-9'"),
        ({"item_id": "i-8"}, "item_id", "no scores of an item 'i-8'"),
        ({"id": "taken"}, "id", "is the id of another label"),
        ({"rater": "ann "}, "rater", "another rater than 'ann'"),
        ({"at": "2999-01-01T00:00:00+00:00"}, "at", "has not come yet"),
    ],
)
def test_what_the_store_does_not_know_stores_nothing(
    store: Store, tmp_path: Path, change: dict[str, object], field: str, words: str
) -> None:
    path = written(tmp_path, GOOD | {"id": "taken", "item_id": "i-0"}, GOOD | change)
    with pytest.raises(LabelErrors) as caught:
        import_labels(store, path)
    (error,) = caught.value.errors
    assert (error.line, error.field) == (2, field) and words in error.message
    assert str(caught.value).startswith(
        f"{path}:2: {field}: "
    ) and "Nothing was stored. 1 other lines" in str(caught.value)
    assert label_store.list_labels(store, history=True).empty
    assert import_labels(store, path, good_lines_only=True).errors[0].message == error.message
    assert label_store.list_labels(store)["id"].tolist() == ["taken"]


@pytest.mark.parametrize(
    ("name", "data", "line"),
    [
        ("l.jsonl", b"[1]\n", 1),
        ("l.jsonl", b"{\n", 1),
        ("l.jsonl", b"[" * 5000 + b"\n", 1),
        ("l.jsonl", b"\xff\n", None),
        ("l.csv", b"run,item_id\n", 1),
        ("l.csv", b"run,item_id,rater,run\n", 1),
        ("l.csv", b"run;item_id;rater;reasoning\n", 1),
        ("l.csv", b"run,item_id,rater,who\n", 1),
        ("l.csv", b"run,item_id,rater\na,b\n", 2),
        ("l.csv", b'run,item_id,rater\n"a"b,c,d\n', 2),
    ],
)
def test_a_file_that_is_none(
    store: Store, tmp_path: Path, name: str, data: bytes, line: int | None
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises((LabelError, LabelErrors)) as caught:
        import_labels(store, path, good_lines_only=True)
    (error,) = getattr(caught.value, "errors", (caught.value,))
    assert (error.line, error.path) == (line, str(path))
    with pytest.raises(LabelError, match="cannot be read"):
        import_labels(store, tmp_path / "gone.jsonl")


def test_an_unknown_format() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'jsonl'"):
        labels_as_text([], "json")


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_an_adjudication_decides_in_the_store_that_imports_it_too(
    tmp_path: Path, form: str
) -> None:
    one, other = (fill(tmp_path / name) for name in ("one", "other"))
    queue = make_queue(one, "settle", [("run-1", "i-1", "")], kind="adjudication", author="me")
    said = [
        (f"{k}", "ann" if k else "bob", "acceptable" if k else "not_acceptable") for k in range(2)
    ]
    rows = [Label(name, "run-1", "i-1", rater, verdict, True, AT) for name, rater, verdict in said]  # type: ignore[arg-type]
    with one.writing() as connection:
        label_store.add_labels(
            connection,
            [*rows, Label("last", "run-1", "i-1", "cy", "not_acceptable", True, AT, queue=queue)],
        )
    path = tmp_path / f"l.{form}"
    path.write_text(
        labels_as_text(
            label_store.labels_from_table(label_store.list_labels(one)),
            form,
            label_store.kinds_by_queue(one),
        ),
        "utf-8",
        newline="",
    )
    assert (import_labels(other, path).n_new, import_labels(other, path).n_new) == (3, 0)
    for store in (one, other):
        (row,) = load_targets(store).to_dict("records")
        assert (row["target"], row["adjudicated"], row["raters"]) == (False, True, 1)
        assert len(measure_agreement(store).raters) == 2
    assert label_store.list_label_queues(other).empty and label_store.kinds_by_queue(other) == {
        queue: "adjudication"
    }


def test_a_queue_is_of_one_kind(store: Store, tmp_path: Path) -> None:
    queue = make_queue(store, "q", [("run-1", "i-1", "")], author="me")
    for row, words in (
        ({"queue": queue, "queue_kind": "audit"}, "of the kind 'label', not 'audit'"),
        ({"queue": "other", "queue_kind": "court"}, "'court' is none of"),
        ({"queue_kind": "audit"}, "names no queue"),
    ):
        with pytest.raises(LabelErrors, match=f"l.jsonl:1: queue_kind: .*{words}"):
            import_labels(store, written(tmp_path, GOOD | row))
    two = [GOOD | {"queue": "new", "queue_kind": kind} for kind in ("audit", "flagged")]
    assert len(import_labels(store, written(tmp_path, *two), good_lines_only=True).errors) == 1
    assert label_store.kinds_by_queue(store)["new"] == "audit"
