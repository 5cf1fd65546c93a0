"""What to label next in stored runs: unlabelled items near the policy's thresholds, and a queue
that tells no score."""

from __future__ import annotations

from pathlib import Path

import pytest

from cotlab.review.labelling.acquisition import (
    NothingToLabel,
    queue_selection,
    select_items_to_label,
)
from cotlab.review.release.features import feature_table
from cotlab.store.database import Store
from cotlab.store.decisions import add_policy
from cotlab.store.labels import list_queue_items
from tests.support.stores.decided import fill
from tests.support.stores.drifted import add_run, calibrated, label, vectors


def test_from_random_items_to_those_near_the_thresholds(tmp_path: Path) -> None:
    store, table = Store(tmp_path / "store"), vectors(120, 9)
    add_run(store, "run", table)
    first = select_items_to_label(store, ["run"], 6)
    assert len(first.items) == 6 and first.items["r_cal"].isna().all() and first.n_near == 0
    assert "no policy holds" in first.note and "drawn at random" in first.note
    raw = [v or 0.0 for v in table["r_raw"]]
    label(store, "run", {f"i-{k:03}": raw[k] > 0.8 for k in range(60)})
    calibrated(store, raw, [(r > 0.8) == (k % 7 > 0) for k, r in enumerate(raw)], 0.1)
    with store.writing() as connection:
        add_policy(
            connection,
            thresholds={"default": (0.4, 0.8)},
            capacity=None,
            params={},
            author="bo",
            reason="to begin with",
        )
    found = select_items_to_label(store, ["run"], 8, epsilon=0.15)
    assert found.thresholds == (0.4, 0.8) and len(found.items) == 8
    assert all(min(abs(r - 0.4), abs(r - 0.8)) <= found.epsilon for r in found.items["r_cal"])
    assert not set(found.items["item_id"]) & {f"i-{k:03}" for k in range(60)}
    queue = queue_selection(store, found, "near the line", author="bo")
    asked = list_queue_items(store, queue)
    assert (
        list(asked["item_id"]) == list(found.items["item_id"])
        and not asked["reason"].str.contains(r"\d").any()
    )
    label(store, "run", {f"i-{k:03}": True for k in range(60, 120)})
    with pytest.raises(NothingToLabel, match="120 scored items"):
        select_items_to_label(store, ["run"], 3)


def test_each_domain_has_its_own_line_and_no_line_lies_at_0_or_1(tmp_path: Path) -> None:
    store = fill(tmp_path / "store", 120, labelled=10)
    with store.writing() as connection:
        bounds = {"default": (0.0, 0.3), "maths": (0.8, 1.0)}
        add_policy(
            connection,
            thresholds=bounds,
            capacity=None,
            params={},
            author="bo",
            reason="to begin with",
        )
    found = select_items_to_label(store, ["run-1"], 9, epsilon=0.1, unscored_share=0.0)
    domain = feature_table(store, ["run-1"]).set_index("item_id")["domain"]
    assert found.thresholds == (0.3, 0.8) and len(found.items) == 9
    for row in found.items.to_dict("records"):
        assert (
            abs(row["r_cal"] - (0.8 if domain[row["item_id"]] == "maths" else 0.3)) <= found.epsilon
        )
