"""What a file looks like is told by its columns and values, and read so."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from cotlab.core.errors import SuiteErrors, UnknownName
from cotlab.core.types import Item
from cotlab.suites import load_suite, write_suite
from cotlab.suites.importers.door import MAX_FIELDS, Form, detect_form
from cotlab.suites.importers.formats import import_suite_file
from cotlab.suites.importers.rows import Columns
from cotlab.text.answers.targets import is_right_answer
from cotlab.text.steps import split_steps
from tests.support.command import cotlab


def lines(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def read(path: Path) -> tuple[Form, tuple[Item, ...]]:
    """Return what a file looks like, and its items."""
    form = detect_form(path)
    return form, import_suite_file(form, path, split=split_steps).items


COLOURS = ["red", "green", "blue"]
OPTIONS: dict[str, tuple[dict[str, Any], list[str], str]] = {
    "ARC": (
        {"choices": {"text": COLOURS, "label": ["1", "2", "3"]}, "answerKey": "2"},
        COLOURS,
        "B",
    ),
    "AQuA": ({"options": ["A)red", "B)green", "C)blue"], "correct": "C"}, COLOURS, "C"),
    "objects": (
        {
            "choices": [{"label": "a", "text": "red"}, {"label": "b", "text": "green"}],
            "answer": "b",
        },
        COLOURS[:2],
        "B",
    ),
    "label to text": ({"options": {"A": "red", "B": "green"}, "answer": "(A)"}, COLOURS[:2], "A"),
    "text": ({"choices": COLOURS, "answer": "blue"}, COLOURS, "blue"),
    "one text": ({"options": "red | green", "answer": "green"}, COLOURS[:2], "green"),
    "columns": ({"A": "red", "B": "green", "C": "blue", "answer": "B"}, COLOURS, "B"),
    "numbers": ({"choices": ["4", "6"], "answer": "6"}, ["4", "6"], "6"),
    "from 0": ({"choices": COLOURS, "answer": 0}, COLOURS, "A"),
    "from 1": ({"choices": COLOURS, "answer": 3}, COLOURS, "C"),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options_of_every_form_are_read_and_the_answer_is_one_of_them(
    name: str, tmp_path: Path
) -> None:
    record, options, answer = OPTIONS[name]
    _, (item,) = read(lines(tmp_path / "a.jsonl", {"id": "x", "question": "Which?", **record}))
    assert (item.meta["choices"], item.answer, item.steps) == (options, answer, ())
    position = options.index(answer) if answer in options else ord(answer) - ord("A")
    assert is_right_answer(item, f"({'abc'[position]}) {options[position]}") is True
    assert is_right_answer(item, f"({'abc'[position - 1]}) {options[position - 1]}") is False


def test_an_answer_that_may_count_from_either_end_is_asked_about(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", {"question": "Which?", "choices": COLOURS, "answer": 1})
    with pytest.raises(SuiteErrors, match="counts from 0 or from 1"):
        read(path)
    out = tmp_path / "s.jsonl"
    cotlab("suites", "import", path, "--count-from", "1", "--output", out, store=tmp_path)
    assert load_suite(out, chain="own").items[0].answer == "A"


def test_two_answers_that_deny_each_other_leave_it_open(tmp_path: Path) -> None:
    rows = [{"question": "Which?", "choices": COLOURS, "answer": answer} for answer in (0, 3)]
    assert detect_form(lines(tmp_path / "a.jsonl", *rows)).columns.count_from is None


def test_an_answer_that_is_no_option_is_a_defect(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", {"question": "Q", "choices": COLOURS, "answer": "pink"})
    with pytest.raises(SuiteErrors, match="none of the options"):
        read(path)


def test_truth_values_and_several_answers(tmp_path: Path) -> None:
    rows = [{"qid": "a", "question": "Q", "answer": True, "facts": ["One.", "Two."]}]
    rows.append({"qid": "b", "question": "R", "answer": ["ice", "frozen water"], "facts": None})
    _, (yes, ice) = read(lines(tmp_path / "a.jsonl", *rows))
    assert (yes.id, yes.answer, [step.text for step in yes.steps]) == ("a", "yes", ["One.", "Two."])
    assert (ice.answer, ice.meta["targets"], ice.steps) == ("ice", ["ice", "frozen water"], ())


def test_the_target_is_right_and_the_answer_the_model_s(tmp_path: Path) -> None:
    row = {"input": "Q", "steps": ["One."], "answer": "(A)", "target": "(B)"}
    _, (item,) = read(lines(tmp_path / "a.jsonl", row))
    assert (item.answer, item.meta["model_answer"]) == ("(B)", "(A)")
    row = {"question": "Q", "answer": "5", "is_correct": False}
    _, (item,) = read(lines(tmp_path / "b.jsonl", row))
    assert (item.answer, item.meta["model_answer"]) == (None, "5")


def test_a_conversation_is_a_question_and_a_chain(tmp_path: Path) -> None:
    turns = [{"from": "system", "value": "s"}, {"from": "human", "value": "Q"}]
    turns.append({"from": "gpt", "value": "<think>\nOne.\n\nTwo.\n</think>\nIt is 3."})
    _, (item,) = read(lines(tmp_path / "a.jsonl", {"conversations": turns}))
    assert (item.question, [step.text for step in item.steps]) == ("Q", ["One.", "Two."])
    assert item.meta["model_answer"] == "It is 3."


def test_math_and_a_solution_that_ends_in_its_answer(tmp_path: Path) -> None:
    row = {"problem": "Q", "solution": "Half.\nSo \\boxed{\\frac{1}{2}}.", "type": "Algebra"}
    form, (item,) = read(lines(tmp_path / "m.jsonl", row))
    assert (form.format, item.answer, item.category) == ("math", "\\frac{1}{2}", "Algebra")
    form, (item,) = read(lines(tmp_path / "g.jsonl", {"question": "Q", "answer": "1+1=2\n#### 2"}))
    assert (form.format, item.answer, len(item.steps)) == ("gsm8k", "2", 1)


def test_a_reply_is_one_item_whatever_filters_took_from_it(tmp_path: Path) -> None:
    row = {"doc_id": 4, "doc": {"question": "Q"}, "target": "One.\n#### 1", "resps": [["It is 1."]]}
    strict = {**row, "filter": "strict", "filtered_resps": ["[invalid]"], "exact_match": 0.0}
    loose = {**row, "filter": "loose", "filtered_resps": ["1"], "exact_match": 1.0}
    form, (item,) = read(lines(tmp_path / "a.jsonl", strict, loose))
    assert (form.format, item.id, item.answer) == ("lm-eval", "4-0", "1")
    assert item.meta["answer_correct"] is None, "the filters disagree"
    assert item.meta["model_answers"] == {"strict": "[invalid]", "loose": "1"}


TABLE = """case_id,note,decision
T-1,"Chest pain, two hours, very pale",escalate
T-2,"Mild
rash after a new soap",
"""


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_table_is_read_with_any_delimiter(delimiter: str, tmp_path: Path) -> None:
    path = tmp_path / "triage.csv"
    path.write_bytes(b"\xef\xbb\xbf" + TABLE.replace(",", delimiter).encode())
    form = detect_form(path)
    assert form.columns == Columns("note", answer="decision", id="case_id")
    with pytest.raises(SuiteErrors) as caught:
        import_suite_file(form, path, split=split_steps)
    assert caught.value.groups == ["decision: is empty (line 3)"]
    (item,) = import_suite_file(form, path, split=split_steps, good_lines=True).items
    assert (item.id, item.answer) == ("T-1", "escalate")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a,a\n1,2\n", "a name of its own"),
        (b"question,answer\nQ,1,2\n", "holds no record"),
        (b"question,answer\nQ\xff,1\n", "UTF-8"),
        ("question,answer\nQ,1\n".encode("utf-16"), "UTF-16"),
        (b"PAR1 and no more", "Parquet"),
        (b"", "empty|no record"),
        (b"only words here\n", "no record"),
    ],
)
def test_a_table_that_cannot_be_read_is_named(data: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(data)
    with pytest.raises(SuiteErrors, match=message):
        read(path)


def test_parquet_with_lists_and_objects(tmp_path: Path) -> None:
    rows = [{"question": "Which?", "choices": {"text": COLOURS, "label": ["A", "B", "C"]}}]
    rows[0] |= {"answerKey": "B", "score": float("nan")}
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.Table.from_pylist(rows), path)
    _, (item,) = read(path)
    assert (item.answer, item.meta) == ("B", {"choices": COLOURS, "score": None})
    write_suite(import_suite_file(detect_form(path), path, split=split_steps), tmp_path / "s.jsonl")


def test_a_file_without_a_question_names_its_columns(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", {"x": 1, "y": {"z": "w"}})
    with pytest.raises(SuiteErrors, match="The columns are x, y, y.z"):
        read(path)
    with pytest.raises(UnknownName, match="'w'.*x, y, y.z"):
        detect_form(path).corrected(None, {"question": "w"})
    form = detect_form(path).corrected(None, {"question": "y.z"})
    assert import_suite_file(form, path, split=split_steps).items[0].question == "w"


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"choices": ["c", "b", "a"], "answer": "a"}, "the label of one option and the text of"),
        ({"choices": ["1", "2", "3"], "answer": 2}, "counts from 0 or from 1"),
        ({"choices": COLOURS, "answer": ["A", "B"]}, "none of the options"),
    ],
)
def test_an_answer_that_may_be_another_option_is_refused(
    record: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(SuiteErrors, match=message):
        read(lines(tmp_path / "a.jsonl", {"question": "Which?", **record}))


@pytest.mark.parametrize("name", ["correct", "label"])
def test_whether_an_answer_is_correct_is_no_answer(name: str, tmp_path: Path) -> None:
    row = {"question": "Q", "chain": "One. Two."}
    for value in (True, 1):
        assert detect_form(lines(tmp_path / "a.jsonl", {**row, name: value})).columns.answer is None
    assert detect_form(lines(tmp_path / "a.jsonl", {**row, name: "C"})).columns.answer == name


def test_an_id_that_two_lines_have_is_named(tmp_path: Path) -> None:
    rows = [{"case_id": f"T-{k % 5}", "note": "Q", "decision": "stay"} for k in range(6)]
    with pytest.raises(SuiteErrors, match="'T-0' is already the id of line 1"):
        read(lines(tmp_path / "a.jsonl", *rows))


def test_a_reply_to_a_question_with_options_keeps_them(tmp_path: Path) -> None:
    row = {"doc_id": 1, "doc": {"question": "Q", "choices": COLOURS}, "target": 2}
    row |= {"resps": [["Blue it is."]], "filtered_resps": ["(C)"], "exact_match": 1}
    _, (item,) = read(lines(tmp_path / "a.jsonl", row))
    assert (item.answer, item.meta["choices"], item.meta["answer_correct"]) == ("C", COLOURS, True)


def test_a_workbook_and_a_quote_that_is_never_closed_are_named(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.xlsx", "w") as archive:
        archive.writestr("xl/workbook.xml", "")
    (tmp_path / "a.csv").write_text('"question,answer\nQ')
    for name, message in (("a.xlsx", "save it as CSV"), ("a.csv", "no CSV file")):
        with pytest.raises(SuiteErrors, match=message):
            detect_form(tmp_path / name)


def test_records_with_very_many_columns_are_looked_at_in_bounds(tmp_path: Path) -> None:
    rows = [{f"k{n}-{k}": k for k in range(2000)} for n in range(20)]
    assert len(detect_form(lines(tmp_path / "a.jsonl", *rows)).fields) == MAX_FIELDS
