"""The suite format: what is read, what is refused, and that all defects are told at once with their
place."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotlab.core.errors import SuiteError, SuiteErrors
from cotlab.core.types import Item, Step, Suite
from cotlab.suites.jsonl import MAX_ERRORS, file_sha256, load_suite, parse_suite, write_suite

FAITHCHECK = Path(__file__).parents[3] / "shared" / "data" / "faithcheck_suites"


def record(**changes: Any) -> dict[str, Any]:
    """A good line; ``...`` as a value leaves the key out."""
    good = {
        "item_id": "a",
        "prompt": "How many?",
        "reference_cot": [{"index": 0, "text": "One."}],
        "ground_truth": "1",
    }
    return {key: value for key, value in {**good, **changes}.items() if value is not ...}


def lines(*records: dict[str, Any]) -> bytes:
    return "".join(json.dumps(r) + "\n" for r in records).encode()


def defects(data: bytes, **options: Any) -> list[SuiteError]:
    with pytest.raises(SuiteErrors) as caught:
        parse_suite(data, "s.jsonl", **options)
    return list(caught.value.errors)


def test_a_good_file(tmp_path: Path) -> None:
    path = tmp_path / "eggs.jsonl"
    first = record(item_id=" a ", category="sums", source={"page": 3}, level=2)
    path.write_bytes(
        b"\n"
        + lines(first)
        + b"   \n\r\n"
        + lines(record(item_id="b", ground_truth=None, category=7))
    )
    suite = load_suite(path)
    assert suite.name == "eggs"
    assert suite.items == (
        Item(
            "a", "How many?", "1", (Step(0, "One."),), "sums", {"source": {"page": 3}, "level": 2}
        ),
        Item("b", "How many?", None, (Step(0, "One."),), "", {"category": 7}),
    )
    assert suite == parse_suite(path.read_bytes(), "eggs.jsonl")
    assert suite.digest == Suite.from_items("other", suite.items).digest
    assert file_sha256(path) == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("name", ["commonsense_qa", "math_reasoning"])
def test_faithcheck_suites_load_unchanged(name: str) -> None:
    path = FAITHCHECK / f"{name}.jsonl"
    if not path.exists():
        pytest.skip("the FaithCheck suites are not beside the repository (../shared/data)")
    raw = [
        json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()
    ]
    suite = load_suite(path)
    assert [item.id for item in suite.items] == [r["item_id"] for r in raw]
    assert [item.question for item in suite.items] == [r["prompt"] for r in raw]
    assert [item.answer for item in suite.items] == [r["ground_truth"] for r in raw]
    assert [[step.text for step in item.steps] for item in suite.items] == [
        [step["text"] for step in r["reference_cot"]] for r in raw
    ]


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        ({"item_id": ...}, "item_id", "is missing"),
        ({"item_id": 7}, "item_id", 'must be a string, e.g. "gsm8k-0001"; found the number 7'),
        ({"item_id": "  "}, "item_id", "is empty"),
        ({"item_id": "a\tb"}, "item_id", r"control character (a\tb)"),
        ({"item_id": "a\u2028b"}, "item_id", r"control character (a\u2028b)"),
        ({"prompt": ...}, "prompt", "is missing"),
        ({"prompt": ["x"]}, "prompt", "must be a string; found a list"),
        ({"prompt": ""}, "prompt", "is empty"),
        ({"ground_truth": ...}, "ground_truth", "is missing; write null where there is no answer"),
        (
            {"ground_truth": 18},
            "ground_truth",
            'must be a string or null, e.g. "18"; found the number 18',
        ),
        ({"ground_truth": False}, "ground_truth", "found false"),
        ({"ground_truth": " "}, "ground_truth", "is empty; write null"),
        ({"reference_cot": ...}, "reference_cot", "is missing; allowed only with --chain own"),
        ({"reference_cot": None}, "reference_cot", "is null; allowed only with --chain own"),
        ({"reference_cot": "One."}, "reference_cot", "must be a list"),
        ({"reference_cot": []}, "reference_cot", "empty chain"),
        (
            {"reference_cot": ["One."]},
            "reference_cot[0]",
            'must be an object {"index": 0, "text": "…"}; found text',
        ),
        ({"reference_cot": [{"text": "One."}]}, "reference_cot[0].index", "is missing"),
        ({"reference_cot": [{"index": 0}]}, "reference_cot[0].text", "is missing"),
        (
            {"reference_cot": [{"index": "0", "text": "One."}]},
            "reference_cot[0].index",
            "whole number; found text",
        ),
        (
            {"reference_cot": [{"index": True, "text": "One."}]},
            "reference_cot[0].index",
            "whole number; found true",
        ),
        (
            {"reference_cot": [{"index": 0, "text": "\n "}]},
            "reference_cot[0].text",
            "is an empty step",
        ),
        (
            {"reference_cot": [{"index": 0, "text": None}]},
            "reference_cot[0].text",
            "must be a string; found null",
        ),
        (
            {"reference_cot": [{"index": 1, "text": "One."}]},
            "reference_cot[0].index",
            "is 1 where 0 is due",
        ),
    ],
)
def test_one_defect_one_message(changes: dict[str, Any], field: str, says: str) -> None:
    bad = record(**changes)
    (error,) = defects(b"\n" + lines(bad))
    assert (error.path, error.line, error.field) == ("s.jsonl", 2, field)
    assert says in error.message
    assert error.raw == json.dumps(bad)
    assert str(error).startswith(f"s.jsonl:2: {field}: ")


def test_indices_out_of_order_name_the_step() -> None:
    steps = [{"index": i, "text": "x"} for i in (0, 2, 1)]
    errors = defects(lines(record(reference_cot=steps)))
    assert [error.field for error in errors] == ["reference_cot[1].index", "reference_cot[2].index"]


def test_equal_ids_name_both_lines() -> None:
    (error,) = defects(lines(record(), record(item_id="b"), record(item_id=" a ")))
    assert (error.line, error.field) == (3, "item_id")
    assert "'a' is already the id of line 1" in error.message


def test_all_defects_at_once_and_the_count_of_good_lines() -> None:
    data = (
        lines(record(prompt=1, ground_truth=2), record(item_id="b"))
        + b"nonsense\n"
        + lines(record(item_id="c"))
    )
    with pytest.raises(SuiteErrors, match="2 other lines are good") as caught:
        parse_suite(data, "s.jsonl")
    assert [(e.line, e.field) for e in caught.value.errors] == [
        (1, "prompt"),
        (1, "ground_truth"),
        (3, ""),
    ]
    assert caught.value.n_good_lines == 2
    assert [item.id for item in parse_suite(data, "s.jsonl", good_lines=True).items] == ["b", "c"]


def test_all_missing_fields_of_a_line_in_the_order_of_the_format() -> None:
    assert [e.field for e in defects(b"{}")] == [
        "item_id",
        "prompt",
        "ground_truth",
        "reference_cot",
    ]


def test_good_lines_without_a_good_line_raises() -> None:
    assert len(defects(b"nonsense\n[1]\n", good_lines=True)) == 2


@pytest.mark.parametrize("steps", [..., None])
def test_own_chain(steps: Any) -> None:
    suite = parse_suite(lines(record(reference_cot=steps)), "s.jsonl", chain="own")
    assert suite.items[0].steps == ()


@pytest.mark.parametrize("steps", [..., None])
def test_a_file_of_questions_alone_needs_no_choice_of_chain(steps: Any, tmp_path: Path) -> None:
    data = lines(record(reference_cot=steps), record(item_id="b", reference_cot=steps))
    (tmp_path / "q.jsonl").write_bytes(data)
    for suite in (
        parse_suite(data, "q", chain="auto"),
        load_suite(tmp_path / "q.jsonl", chain="auto"),
    ):
        assert [item.steps for item in suite.items] == [(), ()]


def test_a_file_with_some_chains_says_which_line_lacks_one() -> None:
    (error,) = defects(lines(record(), record(item_id="b", reference_cot=...)), chain="auto")
    assert (error.line, error.field) == (2, "reference_cot")
    assert "allowed only with --chain own" in error.message
    both = defects(
        lines(record(item_id="a", ground_truth=7), record(item_id="b", reference_cot=...)),
        chain="auto",
    )
    assert [e.field for e in both] == ["ground_truth", "reference_cot"]


def test_questions_alone_with_a_defect_are_told_of_that_alone() -> None:
    (error,) = defects(
        lines(record(reference_cot=...), record(item_id="b", prompt=..., reference_cot=...)),
        chain="auto",
    )
    assert (error.line, error.field) == (2, "prompt")


def test_own_chain_still_checks_a_chain_that_is_there() -> None:
    assert parse_suite(lines(record()), "s", chain="own").items[0].steps == (Step(0, "One."),)
    assert "empty chain" in defects(lines(record(reference_cot=[])), chain="own")[0].message


def test_a_hopeless_file_keeps_a_bounded_number_of_defects() -> None:
    errors = defects(b"x\n" * (MAX_ERRORS + 5))
    assert len(errors) == MAX_ERRORS + 1
    assert "5 more defects" in errors[-1].message


texts = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1
).filter(str.strip)
ids = (
    st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1)
    .map(str.strip)
    .filter(bool)
)
any_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=6,
)
metas = st.dictionaries(
    any_text.filter(
        lambda key: key not in {"item_id", "prompt", "reference_cot", "ground_truth", "category"}
    ),
    json_values,
    max_size=3,
)
items = st.builds(
    Item,
    id=ids,
    question=texts,
    answer=st.none() | texts,
    steps=st.lists(texts, max_size=4).map(
        lambda found: tuple(Step(i, text) for i, text in enumerate(found))
    ),
    category=any_text,
    meta=metas,
)


@given(st.lists(items, min_size=1, max_size=5, unique_by=lambda item: item.id))
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, made: list[Item]) -> None:
    path = tmp_path_factory.getbasetemp() / "round.jsonl"
    suite = Suite.from_items("round", made)
    write_suite(suite, path)
    assert load_suite(path, chain="own") == suite
    assert [p.name for p in path.parent.glob(".round*")] == []


@pytest.mark.parametrize(
    ("item", "says"),
    [
        (Item("a", "", None, (Step(0, "x"),)), "prompt: is empty"),
        (Item(" a", "Q", None, (Step(0, "x"),)), "would not read back as it is"),
        (Item("a", "Q", None, (Step(1, "x"),)), "is 1 where 0 is due"),
        (Item("a", "Q", "", ()), "ground_truth: is empty"),
        (Item("a", "Q\ud800", None, ()), "cannot be written"),
        (Item("a", "Q", None, (), meta={"prompt": "P"}), "'prompt' is a field of the format"),
        (
            Item("a", "Q", None, (), "c", meta={"category": 1}),
            "'category' is a field of the format",
        ),
        (Item("a", "Q", None, (), meta={"category": "c"}), "would not read back as it is"),
        (Item("a", "Q", None, (), meta={"x": float("nan")}), "cannot be written"),
        (Item("a", "Q", None, (), meta={"x": object()}), "cannot be written"),
    ],
)
def test_what_would_not_read_back_is_not_written(item: Item, says: str, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text("as it was")
    with pytest.raises(ValueError, match=".+") as caught:
        write_suite(Suite("s", (item,), ""), path)
    assert says in str(caught.value)
    assert path.read_text() == "as it was"


def test_writing_into_nowhere_is_a_suite_error(tmp_path: Path) -> None:
    suite = Suite.from_items("s", [Item("a", "Q", None, (Step(0, "x"),))])
    with pytest.raises(SuiteError, match="cannot be written: No such file or directory"):
        write_suite(suite, tmp_path / "absent" / "s.jsonl")
    (tmp_path / "folder").mkdir()
    with pytest.raises(SuiteError, match="cannot be written"):
        write_suite(suite, tmp_path / "folder")
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]
