"""The red flags on a labelled list of chains, clinical to everyday text, with as much that must not
fire."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from cotlab.core.program import Params
from cotlab.core.requests import Embed, Response
from cotlab.core.types import Item, ModelRef, Step, Suite
from cotlab.metrics.flags import cosine_distance, fit_jump_threshold, flags
from cotlab.metrics.kit import reply_vector
from cotlab.providers.local.embedder import open_embedder
from cotlab.text.red_flags import RULES, find_flags
from tests.support.replies import finish

OPTIONS = flags.options

ROWS: Sequence[Mapping[str, Any]] = tuple(
    json.loads(line)
    for line in (
        (Path(__file__).parents[2] / "golden" / "flag_sentences.jsonl")
        .read_text("utf-8")
        .splitlines()
    )
)
EMBEDDER = ModelRef("embedder", "all-MiniLM-L6-v2")
Place = tuple[int, int, int]


def places(flags: Sequence[Mapping[str, Any]], rule: str) -> list[Place]:
    return [(flag["step"], flag["start"], flag["end"]) for flag in flags if flag["rule"] == rule]


def overlap(one: Place, other: Place) -> bool:
    return one[0] == other[0] and one[1] < other[2] and other[1] < one[2]


def test_the_list_is_large_varied_and_points_at_its_text() -> None:
    rows = Counter(row["for"] for row in ROWS)
    assert (
        rows.keys() == {*RULES, "semantic_jump"}
        and min(rows.values()) >= 40
        and rows.total() >= 200
    )
    assert {row["domain"] for row in ROWS} == {"clinical", "legal", "finance", "maths", "everyday"}
    for row in ROWS:
        for flag in row["flags"]:
            assert row["steps"][flag["step"]][flag["start"] : flag["end"]] == flag["text"]
    for rule in RULES:
        own = [row for row in ROWS if row["for"] == rule]
        assert sum(not row["flags"] for row in own) >= 20, "what must not fire"


@pytest.mark.parametrize(
    ("rule", "precision", "recall"),
    [
        ("premature_answer", 0.95, 0.85),
        ("undefined_symbol", 0.7, 0.65),
        ("unit_inconsistency", 0.85, 0.6),
        ("hand_waving", 0.7, 0.8),
    ],
)
def test_precision_and_recall(rule: str, precision: float, recall: float) -> None:
    hits = false = missed = 0
    for row in ROWS:
        found = [
            (f.step_index, f.start, f.end)
            for f in find_flags(row["question"], row["steps"])
            if f.rule == rule
        ]
        wanted = places(row["flags"], rule)
        hits += sum(any(overlap(one, other) for other in wanted) for one in found)
        false += sum(not any(overlap(one, other) for other in wanted) for one in found)
        missed += sum(not any(overlap(one, other) for other in found) for one in wanted)
    assert hits / (hits + false) >= precision, f"{false} false alarms beside {hits} hits"
    assert hits / (hits + missed) >= recall, f"{missed} missed beside {hits} hits"


def test_semantic_jumps_by_the_embedder() -> None:
    """δ is fitted on the pairs that go on as they should, as on a suite's reference chains: 5 % of
    them are above it."""
    rows = [row for row in ROWS if row["for"] == "semantic_jump"]
    texts = tuple(dict.fromkeys(text for row in rows for text in row["steps"]))
    embedder = open_embedder(EMBEDDER)
    requests = [Embed(EMBEDDER, (text,)) for text in texts]
    replies = [reply for reply in embedder.send_batch(requests) if isinstance(reply, Response)]
    of_key = {request.key: reply for request, reply in zip(requests, replies, strict=True)}
    suite = Suite.from_items(
        "s",
        (
            Item(f"i{k}", "", None, tuple(Step(i, text) for i, text in enumerate(row["steps"])))
            for k, row in enumerate(rows)
            if not row["flags"]
        ),
    )
    program = fit_jump_threshold(
        suite, Params({"subject": EMBEDDER, "embedder": EMBEDDER}, options=OPTIONS)
    )
    asked = next(program)
    end = finish(program, [of_key[request.key] for request in asked])
    delta = end["delta"]
    assert 0.4 < delta < 0.7
    vectors = {text: reply_vector(reply) for text, reply in zip(texts, replies, strict=True)}
    hits = false = 0
    for row in rows:
        one, other = (vectors[text] for text in row["steps"])
        assert one is not None and other is not None
        if cosine_distance(one, other) > delta:
            hits += bool(row["flags"])
            false += not row["flags"]
    assert hits / (hits + false) >= 0.9 and hits / sum(bool(row["flags"]) for row in rows) >= 0.8
