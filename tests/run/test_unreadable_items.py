"""What a model of few words cannot read is known before the run, to the item."""

from __future__ import annotations

from pathlib import Path

import pytest

from cotlab.core.errors import Unsupported
from cotlab.core.requests import Complete, Message
from cotlab.core.types import Item, ModelRef, Plan, Suite
from cotlab.providers.local.load import load_organism
from cotlab.providers.local.render import encode, render_prompt
from cotlab.run.config import read_config
from cotlab.run.dryrun import plan_cautions
from cotlab.run.launch import dry_run
from cotlab.run.unreadable_items import UnreadableItems, find_unreadable_items
from cotlab.suites.jsonl import load_suite
from cotlab.suites.shipped import shipped_suites
from tests.ui.test_pages import open_page

NAMES = ("wordproblems", "math", "commonsense", "evaluation")
MIXED = tuple(item for name in NAMES for item in load_suite(shipped_suites()[name]).items[:10])


def found_in(items: tuple[Item, ...], store: Path) -> tuple[UnreadableItems | None, Plan, Suite]:
    """Return what r100 cannot read of a suite of these items, with the plan and the suite."""
    suite = Suite.from_items(
        "mixed", [Item(f"i{k}", i.question, "1", ()) for k, i in enumerate(items)]
    )
    options = {"provider": "organism", "model": "r100", "task_suite": "mixed", "chain": "own"}
    plan, _ = dry_run(read_config(options), suite)
    return find_unreadable_items(plan, suite), plan, suite


def test_the_same_items_as_the_model_refuses(tmp_path: Path) -> None:
    model = load_organism("r100")
    unreadable, plan, suite = found_in(MIXED, tmp_path)
    n_refused = 0
    for item in suite.items:
        request = Complete(plan.subject, (Message("user", item.question),))
        try:
            encode(model, render_prompt(model, request))
        except Unsupported:
            n_refused += 1
    assert unreadable is not None
    assert (unreadable.n, unreadable.n_items) == (n_refused, 40)
    assert n_refused == 30 and not unreadable.is_all, "it reads its own ten"
    assert "r100 cannot read 30 of 40 items" in " ".join(plan_cautions(plan, suite))


def test_a_model_that_reads_all_has_no_caution(tmp_path: Path) -> None:
    assert found_in(MIXED[:10], tmp_path)[0] is None
    _, plan, suite = found_in(MIXED, tmp_path)
    behind_a_server = {"subject": ModelRef("openai", "gpt-4o-mini")}
    assert find_unreadable_items(Plan(suite.name, suite.digest, behind_a_server, ()), suite) is None


def test_text_that_is_no_unicode_is_unreadable_and_no_error(tmp_path: Path) -> None:
    unreadable, _, _ = found_in((Item("a", "How many\ud800?", "1", ()),), tmp_path)
    assert unreadable is not None and unreadable.is_all


@pytest.mark.parametrize(("suite", "can_start"), [("wordproblems", True), ("evaluation", False)])
def test_the_page_offers_no_run_that_can_measure_nothing(
    suite: str, can_start: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path))
    page = open_page("new_run", suite=suite)
    disabled = {button.label: button.disabled for button in page.button}
    assert disabled["Start run"] == (not can_start)
    text = " ".join(error.value for error in page.error)
    assert ("can read no item" in text) is not can_start
