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
from cotlab.suites.jsonl import MAX_ERRORS, file_sha256, load_suite, write_suite
from tests.support.suite_files import defects, parse_suite

FAITHCHECK = Path(__file__).parents[3] / "shared" / "data" / "faithcheck_suites"


def record(**changes: Any) -> dict[str, Any]:
    """A good line; ``...`` as a value leaves the key out."""
    good = {"item_id": "a", "prompt": "How many?", "ground_truth": "1"}
    good |= {"reference_cot": [{"index": 0, "text": "One."}]}  # type: ignore[dict-item]
    return {key: value for key, value in {**good, **changes}.items() if value is not ...}


def lines(*records: dict[str, Any]) -> bytes:
    return "".join(json.dumps(r) + "\n" for r in records).encode()


def test_a_good_file(tmp_path: Path) -> None:
    path = tmp_path / "eggs.jsonl"
    first = record(item_id=" a ", category="sums", source={"page": 3}, level=2)
    second = record(item_id="b", ground_truth=None, category=7)
    path.write_bytes(b"\n" + lines(first) + b"   \n\r\n" + lines(second))
    suite, steps = load_suite(path), (Step(0, "One."),)
    assert suite.name == "eggs"
    assert suite.items == (
        Item("a", "How many?", "1", steps, "sums", {"source": {"page": 3}, "level": 2}),
        Item("b", "How many?", None, steps, "", {"category": 7}),
    )
    assert suite.digest == Suite.from_items("other", suite.items).digest
    assert file_sha256(path) == hashlib.sha256(path.read_bytes()).hexdigest()
    path.write_text(json.dumps([first, second], indent=2))
    assert load_suite(path) == suite


@pytest.mark.parametrize("name", ["commonsense_qa", "math_reasoning"])
def test_faithcheck_suites_load_unchanged(name: str) -> None:
    path = FAITHCHECK / f"{name}.jsonl"
    if not path.exists():
        pytest.skip("the FaithCheck suites are not beside the repository (../shared/data)")
    raw = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    for item, line in zip(load_suite(path).items, raw, strict=True):
        assert (item.id, item.question) == (line["item_id"], line["prompt"])
        assert item.answer == line["ground_truth"]
        assert [s.text for s in item.steps] == [step["text"] for step in line["reference_cot"]]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        *(({"item_id": value}, "item_id") for value in (..., 7, "  ", "a\tb", "a\u2028b")),
        *(({"prompt": value}, "prompt") for value in (..., ["x"], "")),
        *(({"ground_truth": value}, "ground_truth") for value in (..., 18, False, " ")),
        *(({"reference_cot": value}, "reference_cot") for value in (..., None, "One.", [])),
        *(
            ({"reference_cot": [step]}, "reference_cot[0]")
            for step in (
                "One.",
                {"text": "One."},
                *({"index": index, "text": "One."} for index in ("0", True, 1)),
            )
        ),
        *(
            ({"reference_cot": [{"index": 0, "text": text}]}, "reference_cot[0].text")
            for text in ("\n ", None)
        ),
        ({"reference_cot": [{"index": 0}]}, "reference_cot[0].text"),
    ],
)
def test_one_defect_one_message(changes: dict[str, Any], field: str) -> None:
    bad = record(**changes)
    (error,) = defects(b"\n" + lines(bad))
    assert (Path(error.path).name, error.line, error.field) == ("s.jsonl", 2, field)
    assert error.raw == json.dumps(bad)
    assert f"s.jsonl:2: {field}: " in str(error)


def test_indices_out_of_order_name_the_step() -> None:
    steps = [{"index": index, "text": "x"} for index in (0, 2, 1)]
    fields = [error.field for error in defects(lines(record(reference_cot=steps)))]
    assert fields[0].startswith("reference_cot[1]")


def test_equal_ids_name_both_lines() -> None:
    (error,) = defects(lines(record(), record(item_id="b"), record(item_id=" a ")))
    assert (error.line, error.field) == (3, "item_id")
    assert "'a' is already the id of line 1" in error.message


def test_all_defects_at_once_and_the_count_of_good_lines() -> None:
    bad = lines(record(prompt=1, ground_truth=2), record(item_id="b")) + b"nonsense\n"
    data = bad + lines(record(item_id="c"))
    with pytest.raises(SuiteErrors, match="2 other lines are good") as caught:
        parse_suite(data)
    places = [(e.line, e.field) for e in caught.value.errors]
    assert places == [(1, "prompt"), (1, "ground_truth"), (3, "")]
    assert caught.value.n_good_lines == 2
    assert [item.id for item in parse_suite(data, good_lines=True).items] == ["b", "c"]
    assert [e.field for e in defects(b"{}")] == [
        *("item_id", "prompt", "ground_truth", "reference_cot")
    ]
    assert len(defects(b"nonsense\n[1]\n", good_lines=True)) == 2


@pytest.mark.parametrize("chain", ["own", "auto"])
@pytest.mark.parametrize("steps", [..., None])
def test_a_file_of_questions_alone(steps: Any, chain: str) -> None:
    data = lines(record(reference_cot=steps), record(item_id="b", reference_cot=steps))
    assert [item.steps for item in parse_suite(data, chain=chain).items] == [(), ()]
    (error,) = defects(
        data + lines(record(item_id="c", prompt=..., reference_cot=...)), chain=chain
    )
    assert (error.line, error.field) == (3, "prompt")


def test_a_file_with_some_chains_says_which_line_lacks_one() -> None:
    (error,) = defects(lines(record(), record(item_id="b", reference_cot=...)), chain="auto")
    assert (error.line, error.field) == (2, "reference_cot")
    assert "--chain own" in error.message
    assert parse_suite(lines(record()), chain="own").items[0].steps == (Step(0, "One."),)


def test_a_hopeless_file_keeps_a_bounded_number_of_defects() -> None:
    errors = defects(b"x\n" * (MAX_ERRORS + 5))
    assert len(errors) == MAX_ERRORS + 1
    assert "5 more defects" in errors[-1].message


any_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
texts = any_text.filter(str.strip)
ids = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"])).map(str.strip)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=6,
)
FORMAT = {"item_id", "prompt", "reference_cot", "ground_truth", "category"}
items = st.builds(
    Item,
    id=ids.filter(bool),
    question=texts,
    answer=st.none() | texts,
    steps=st.lists(texts, max_size=4).map(lambda found: tuple(map(Step, range(9), found))),
    category=any_text,
    meta=st.dictionaries(any_text.filter(lambda key: key not in FORMAT), json_values, max_size=3),
)


@given(st.lists(items, min_size=1, max_size=5, unique_by=lambda item: item.id))
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, made: list[Item]) -> None:
    path = tmp_path_factory.getbasetemp() / "round.jsonl"
    suite = Suite.from_items("round", made)
    write_suite(suite, path)
    assert load_suite(path, chain="own") == suite
    assert [p.name for p in path.parent.glob(".round*")] == []


@pytest.mark.parametrize(
    "item",
    [
        Item("a", "", None, (Step(0, "x"),)),
        Item(" a", "Q", None, (Step(0, "x"),)),
        Item("a", "Q", None, (Step(1, "x"),)),
        Item("a", "Q", "", ()),
        Item("a", "Q\ud800", None, ()),
        Item("a", "Q", None, (), meta={"prompt": "P"}),
        Item("a", "Q", None, (), "c", meta={"category": 1}),
        Item("a", "Q", None, (), meta={"category": "c"}),
        Item("a", "Q", None, (), meta={"x": float("nan")}),
        Item("a", "Q", None, (), meta={"x": object()}),
    ],
)
def test_what_would_not_read_back_is_not_written(item: Item, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text("as it was")
    with pytest.raises(ValueError, match=r"a'|'s'"):
        write_suite(Suite("s", (item,), ""), path)
    assert path.read_text() == "as it was" and list(tmp_path.iterdir()) == [path]


def test_writing_into_nowhere_is_a_suite_error(tmp_path: Path) -> None:
    suite = Suite.from_items("s", [Item("a", "Q", None, (Step(0, "x"),))])
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "absent" / "s.jsonl", tmp_path / "folder"):
        with pytest.raises(SuiteError, match="cannot be written"):
            write_suite(suite, path)
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]
