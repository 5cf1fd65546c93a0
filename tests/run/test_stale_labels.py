"""A label is of the reply that was read: what was said of a refusal does not hold for the answer
that takes its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from cotlab.core.labels import OUTDATED_NOTE, Label
from cotlab.core.types import Item, Step, Suite
from cotlab.review.labelling import queue as queues
from cotlab.review.labelling.session import latest_labels, undo_label
from cotlab.review.labelling.targets import (
    NO_SCORES_REASON,
    load_labelled_features,
    load_targets,
)
from cotlab.review.labelling.truth import UNSURE_REASON
from cotlab.run.config import read_config
from cotlab.run.launch import resume_run, start_run
from cotlab.store import labels as label_store
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.store.decisions import list_audit
from tests.support.loopback import Loopback
from tests.support.stores.queued import made_label, submit

SUITE = Suite.from_items(
    "two",
    [
        Item(f"i-{k}", f"What is 2 + {k}?", str(2 + k), (Step(0, "2."), Step(1, "So.")))
        for k in range(2)
    ],
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def begun(store: Store, server: Loopback) -> tuple[str, str, str]:
    """A run whose model refused one item's whole chain, and did not answer a part of the other one:
    run and their ids."""
    server.script({"refusal": "No.", "text": None}, {}, {}, {}, {"body": "{}"})
    told = {
        "provider": "openai_compat",
        "model": "m",
        "base_url": server.base_url,
        "max_concurrent": 1,
        "max_requests_per_minute": 10_000,
        "max_tries": 1,
    }
    run = start_run(read_config(told), store, suite=SUITE).run_id
    ended = read.list_ended_pairs(store, run).set_index("item")
    (refused,), (failed,) = ended.index[ended["refusals"] > 0], ended.index[ended["errors"] > 0]
    assert refused != failed
    return run, str(refused), str(failed)


def give(store: Store, queue: str, rater: str) -> list[Label]:
    out = []
    for item in queues.lease_next_items(store, queue, rater, 10):
        out.append(made_label(item, "not_acceptable", False))
        assert submit(store, out[-1])
    return out


@pytest.mark.soak
def test_labels_of_a_refusal_are_taken_back_and_asked_for_again(
    store: Store, server: Loopback
) -> None:
    run, refused, failed = begun(store, server)
    first, second = (
        queues.make_queue(
            store, name, [(run, refused, ""), (run, failed, "")], raters=2, author="t"
        )
        for name in "ab"
    )
    given = [*give(store, first, "ana"), *give(store, first, "ben"), *give(store, second, "ana")]
    corrected = latest_labels(store, first, "ben")[0]
    submit(
        store,
        Label(
            corrected.correction_id,
            run,
            corrected.label.item_id,
            "ben",
            "unsure",
            None,
            corrected.label.at,
            queue=first,
        ),
    )
    assert set(load_targets(store)["item_id"]) == {refused, failed} and OUTDATED_NOTE not in set(
        load_targets(store)["why"]
    )
    server.script({"refusal": "Again no.", "text": None})
    resume_run(
        run, {}, store, retry_refused=True
    )  # both items are scored anew: from a refusal, and from the same reply
    assert (
        len(label_store.list_labels(store)),
        len(label_store.list_labels(store, history=True)),
    ) == (4, 7)
    server.script()
    resume_run(run, {}, store, retry_refused=True)
    assert (
        set(label_store.list_labels(store)["item_id"]) == {failed}
        and len(label_store.list_labels(store)) == 2
    )
    found = load_targets(store).set_index("item_id")
    assert found.loc[refused, ["target", "raters", "why"]].tolist() == [None, 0, OUTDATED_NOTE]
    out = load_labelled_features(store).attrs["left_out"]
    assert out[OUTDATED_NOTE] == 1 and set(out) <= {OUTDATED_NOTE, UNSURE_REASON, NO_SCORES_REASON}
    said = label_store.list_labels(store, history=True)
    assert {one.id for one in given} <= set(said["id"]) and set(
        said[said["withdrawn"]]["note"]
    ) == {OUTDATED_NOTE}
    assert list_audit(store)["what"].tolist() == ["take back labels"]
    (again,) = queues.lease_next_items(store, first, "ana")
    assert again.item_id == refused and again.label_id not in set(said["id"])
    assert submit(store, made_label(again, "acceptable", True))
    assert load_targets(store).set_index("item_id").loc[refused, "target"]


def test_the_last_label_that_holds_is_the_next_to_be_undone(store: Store, server: Loopback) -> None:
    run, refused, failed = begun(store, server)
    queue = queues.make_queue(store, "q", [(run, failed, ""), (run, refused, "")], author="t")
    give(store, queue, "ana")
    server.script()
    resume_run(run, {}, store, retry_refused=True)
    assert load_targets(store).set_index("item_id")["why"].to_dict() == {
        refused: OUTDATED_NOTE,
        failed: "",
    }  # that reply is the same
    assert (
        queues.measure_progress(store, queue, "ana").n_rater_left == 1
        and len(label_store.list_labels(store, history=True)) == 3
    )
    (left,) = latest_labels(store, queue, "ana")
    undone = undo_label(store, queue, "ana", undone_id=left.label.id)
    assert undone is not None and undone.item_id == failed
