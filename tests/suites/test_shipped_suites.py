"""The item files shipped in data/suites: their form; their answers and equations are right."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from fractions import Fraction

import pytest

from cotlab.core.types import Item
from cotlab.suites.jsonl import load_suite
from cotlab.suites.shipped import SUITES_FOLDER
from cotlab.text.answers.options import listed_options
from cotlab.text.arithmetic.equations import read_equations

STEP_BOUNDS = {"math": (2, 6), "commonsense": (2, 4), "evaluation": (2, 5)}
ITEMS = {name: load_suite(SUITES_FOLDER / f"{name}.jsonl").items for name in STEP_BOUNDS}
ALL = [item for items in ITEMS.values() for item in items]
FUNCTIONS = {
    **{name: getattr(math, name) for name in ("comb", "factorial", "gcd", "lcm", "isqrt", "sqrt")},
    **{f.__name__: f for f in (sum, min, max, round, len, sorted, Fraction)},
}
"""What the expression of an item's ``check`` may use."""


@pytest.mark.parametrize("name", ITEMS)
def test_a_file_is_clean_and_each_item_has_the_agreed_form(name: str) -> None:
    raw = (SUITES_FOLDER / f"{name}.jsonl").read_bytes()
    assert raw.endswith(b"\n") and b"\r" not in raw and not raw.startswith(b"\xef\xbb\xbf")
    low, high = STEP_BOUNDS[name]
    for line, item in zip(raw.decode().splitlines(), ITEMS[name], strict=True):
        assert line == json.dumps(json.loads(line), ensure_ascii=False)
        assert {"level"} <= item.meta.keys() <= {"level", "check", "edge"}, item.id
        assert item.meta["level"] in ("easy", "medium", "hard"), item.id
        texts = [item.question, item.answer or "", item.category, *(s.text for s in item.steps)]
        assert all(text and text == text.strip() for text in texts), item.id
        assert low <= len(item.steps) <= high, item.id
        assert not any(re.match(r"(?i)step\s*\d|\d+[.)]\s", s.text) for s in item.steps), item.id


def test_counts() -> None:
    assert len({item.id for item in ALL}) == len({item.question for item in ALL}) == len(ALL)
    for name in ("math", "commonsense"):
        counts = Counter(item.category for item in ITEMS[name])
        assert (len(counts), set(counts.values())) == (5, {8})
    cells = Counter((item.category, item.meta["level"]) for item in ITEMS["evaluation"])
    assert len(cells) == 12 and min(cells.values()) >= 16 and sum(cells.values()) >= 320
    assert len({item.meta.get("edge") for item in ITEMS["evaluation"]}) > 12


def test_checks_agree_with_the_answers() -> None:
    checked = [item for item in ALL if "check" in item.meta]
    assert len(checked) >= 160
    for item in checked:
        value = eval(item.meta["check"], {"__builtins__": {}}, FUNCTIONS)  # noqa: S307  our own file
        if isinstance(value, str):
            assert value == item.answer, item.id
        else:
            assert float(Fraction(item.answer or "")) == pytest.approx(float(value)), item.id


def test_no_equation_of_a_chain_is_false() -> None:
    verdicts = [
        equation.holds for item in ALL for s in item.steps for equation in read_equations(s.text)
    ]
    assert verdicts.count(False) == 0 and verdicts.count(True) >= 200


def test_the_last_step_states_the_answer() -> None:
    for item in ALL:
        answer = re.escape((item.answer or "").lower())
        assert re.search(rf"(?<![\w.]){answer}(?!\w|\.\d)", item.steps[-1].text.lower()), item.id


def _letter(item: Item) -> int:
    """Return which of its five options a commonsense item's answer is."""
    options = listed_options(item.question)
    assert len(options) == 5, item.id
    return options.index(item.answer or "")


def test_the_right_options_are_spread() -> None:
    assert Counter(map(_letter, ITEMS["commonsense"])) == dict.fromkeys(range(5), 8)


def test_the_readme_states_the_counts() -> None:
    lines = (SUITES_FOLDER / "README.md").read_text("utf-8").splitlines()
    rows = {tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines}
    for name, items in ITEMS.items():
        for category in {item.category for item in items}:
            metas = [item.meta for item in items if item.category == category]
            levels = [
                sum(m["level"] == level for m in metas) for level in ("easy", "medium", "hard")
            ]
            further = [sum(key in m for m in metas) for key in ("edge", "check")]
            counts = (*levels, len(metas), *further)
            assert (name, category, *map(str, counts)) in rows, (name, category, counts)
