"""The link that measures what a run lacks says about how many requests that takes."""

from __future__ import annotations

import re

import pytest

import cotlab
from cotlab.run.config import read_config, stored_options
from cotlab.run.launch import dry_run
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.ui.new_run.added_cost import UNKNOWN_COST_TEXT, added_cost_text
from cotlab.ui.new_run.measures import add_measure
from tests.support.linked import linked_view
from tests.ui.test_pages import open_page

N_ITEMS = 24


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, str]:
    """Return a store with a run that measured equations alone, and its id."""
    folder = tmp_path_factory.mktemp("cost") / "store"
    options = {"provider": "organism", "model": "r100", "limit": N_ITEMS}
    result = cotlab.run_suite("wordproblems", scorer=["verification"], store=folder, **options)
    return Store(folder), result.run_id


def test_the_number_is_near_that_of_a_dry_run_over_all_items(
    run: tuple[Store, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, run_id = run
    monkeypatch.setenv("COTLAB_STORE", str(store.folder))
    row = read.get_run(store, run_id)
    settings = stored_options(row["config"])
    suite = read.get_suite(store, row["suite"])
    for measure in ("change", "suggestion", "consistency"):
        counts = [
            dry_run(read_config({**options, "task_suite": suite.name}), suite)[1].n_requests
            for options in (settings, add_measure(settings, measure))
        ]
        found = re.match(r"about ([\d,]+) requests, \$0", added_cost_text(row, measure))
        assert found is not None
        n_added = int(found[1].replace(",", ""))
        assert n_added == pytest.approx(counts[1] - counts[0], rel=0.25)
    assert added_cost_text(row, "verification") == UNKNOWN_COST_TEXT, "it adds nothing"


def test_lamps_and_pages_say_it_beside_their_link(
    run: tuple[Store, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, run_id = run
    monkeypatch.setenv("COTLAB_STORE", str(store.folder))
    lamps = linked_view(open_page("run", run=run_id), "lamps")["lamps"]
    notes = [lamp["button"]["note"] for lamp in lamps if lamp["button"]]
    assert notes and any(re.search(r"about [\d,]+ requests", note) for note in notes)
    page = open_page("mediation", run=run_id)
    links = [link.proto.label for link in page.get("page_link")]
    assert any(re.match(r"Measure this \(about [\d,]+ requests", label) for label in links), links
