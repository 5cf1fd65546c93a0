"""Canonical JSON and request keys: one text for equal contents, on every machine and in every
process."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import FrozenInstanceError, fields, replace
from enum import Enum, IntEnum
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotlab.core.keys import canonical_json, digest, to_json_value
from cotlab.core.requests import (
    Complete,
    Embed,
    Entail,
    Locate,
    LogProb,
    Message,
    Patched,
    PatchRow,
    Request,
    Source,
    Span,
)
from cotlab.core.types import Item, ModelRef, Plan, ScorerSpec, Step, Suite

MODEL = ModelRef("organism", "r100", revision="abc", form="continuation")
ASK = (Message("user", "How many?"),)
REQUESTS: tuple[Request, ...] = (
    Complete(
        MODEL,
        ASK,
        system="s",
        prefix="p",
        max_tokens=9,
        temperature=0.5,
        seed=3,
        stop=("\n",),
        top_logprobs=2,
    ),
    Embed(MODEL, ("a", "b")),
    Entail(MODEL, "a", "b"),
    LogProb(MODEL, ASK, ("1", "2"), system="s", prefix="p"),
    Locate(MODEL, ASK, (Span(0, 0, 3),), prefix="p"),
    Patched(MODEL, ASK, "9", Source("noise", seed=1), (PatchRow((0, 1), (4,), (5,)),), prefix="p"),
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)
each_request = pytest.mark.parametrize("request_", REQUESTS, ids=lambda r: r.kind)


def test_the_form() -> None:
    assert (
        canonical_json({"b": [1, 2.5, None], "a": "é", "c": True})
        == '{"a":"é","b":[1,2.5,null],"c":true}'
    )
    assert digest("x") == hashlib.sha256(b'"x"').hexdigest()


@given(JSON)
def test_it_reads_back_as_it_was(value: Any) -> None:
    assert json.loads(canonical_json(value)) == value


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=5))
def test_the_order_of_construction_does_not_matter(value: dict[str, Any]) -> None:
    turned = dict(reversed(list(value.items())))
    assert canonical_json(turned) == canonical_json(value)


def test_equal_numbers_have_one_form() -> None:
    assert canonical_json([1.0, -0.0, 0.0, 1e300, 0.1, True]) == "[1,0,0,1e+300,0.1,true]"
    assert digest({"temperature": 0}) == digest({"temperature": 0.0})


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_numbers_that_json_does_not_know_are_refused(bad: float) -> None:
    for holder in (bad, [bad], {"a": {"b": bad}}):
        with pytest.raises(ValueError):
            canonical_json(holder)


def test_what_has_no_canonical_form_is_refused() -> None:
    for bad in (object(), b"bytes", ModelRef, 1j, Enum("E", "a").a):  # type: ignore[attr-defined]
        with pytest.raises(TypeError, match="no canonical form"):
            canonical_json({"x": bad})


def test_sets_sequences_and_dataclasses() -> None:
    assert to_json_value({"s": {3, 1, 2}, "t": (1, 2), "d": Step(0, "x")}) == {
        "s": [1, 2, 3],
        "t": [1, 2],
        "d": {"index": 0, "text": "x"},
    }


def test_lone_surrogates_have_a_digest() -> None:
    assert digest("\ud800") != digest("\ud801")


@each_request
def test_equal_requests_have_equal_keys(request_: Request) -> None:
    assert replace(request_) == request_
    assert replace(request_).key == request_.key == digest(request_.to_json())
    assert len(request_.key) == 64


OTHER: dict[str, Any] = {
    "model": replace(MODEL, revision="other"),
    "sample": 1,
    "messages": (Message("user", "How much?"),),
    "system": "t",
    "prefix": "q",
    "max_tokens": 10,
    "temperature": 0.6,
    "seed": 4,
    "stop": ("\n", "."),
    "top_logprobs": 3,
    "reply_schema": {"type": "object"},
    "texts": ("b", "a"),
    "premise": "c",
    "hypothesis": "c",
    "answers": ("2", "1"),
    "spans": ((0, 4),),
    "answer": "8",
    "source": Source("noise", seed=2),
    "rows": (PatchRow((0, 1), (4,), (6,)),),
}


@each_request
def test_every_field_is_part_of_the_key(request_: Request) -> None:
    changed = {
        f.name: replace(request_, **{f.name: OTHER[f.name]}).key
        for f in fields(request_)
        if not f.name.startswith("_")
    }
    assert len({request_.key, *changed.values()}) == len(changed) + 1


def test_every_part_of_the_model_is_part_of_the_key() -> None:
    ask = REQUESTS[0]
    others = [
        replace(MODEL, **{name: "chat" if name == "form" else "x"})
        for name in (f.name for f in fields(MODEL))
    ]
    assert len({ask.key, *(replace(ask, model=other).key for other in others)}) == len(others) + 1


def test_kinds_with_the_same_fields_differ() -> None:
    assert Entail(MODEL, "a", "b").to_json()["kind"] == "entail"
    assert len({r.key for r in REQUESTS}) == len(REQUESTS)


@given(st.lists(st.text(max_size=6), min_size=2, max_size=2), st.integers(0, 3), st.integers(0, 3))
def test_keys_are_equal_exactly_where_contents_are(
    texts: list[str], first: int, second: int
) -> None:
    one = Complete(MODEL, (Message("user", texts[0]),), sample=first)
    two = Complete(
        sample=second, messages=(Message("user", texts[1]),), model=ModelRef(**to_json_value(MODEL))
    )
    assert (one.key == two.key) == (one == two) == (texts[0] == texts[1] and first == second)


def test_the_key_is_computed_once_and_is_no_part_of_the_request() -> None:
    used, fresh = Complete(MODEL, ASK), Complete(MODEL, ASK)
    assert used.key is used.key
    assert used == fresh and hash(used) == hash(fresh) and repr(used) == repr(fresh)
    assert not {"_key", "_coded"} & used.to_json().keys()
    assert replace(used, sample=1).key != used.key


@each_request
def test_requests_are_frozen(request_: Request) -> None:
    for name in ("model", "sample"):
        with pytest.raises(FrozenInstanceError):
            setattr(request_, name, None)
    with pytest.raises((AttributeError, TypeError)):
        request_.other = 1  # type: ignore[attr-defined]


def test_a_suite_is_its_items_in_order() -> None:
    a, b = Item("a", "q", "1", (Step(0, "s"),)), Item("b", "q", None, (), meta={"z": 1, "y": [1.0]})
    assert (
        Suite.from_items("one", [a, b]).digest
        == Suite.from_items("two", (a, replace(b, meta={"y": [1], "z": 1}))).digest
    )
    assert Suite.from_items("one", [a, b]).digest != Suite.from_items("one", [b, a]).digest
    assert (
        Suite.from_items("one", [a]).digest
        != Suite.from_items("one", [replace(a, answer=None)]).digest
    )


def test_a_plan_differs_by_everything_in_it() -> None:
    plan = Plan(
        "s", "d" * 64, {"subject": MODEL}, (ScorerSpec("ablation", 1, {"modes": ["remove"]}),)
    )
    others = [
        replace(plan, seed=1),
        replace(plan, limit=5),
        replace(plan, sample=5),
        replace(plan, splitter_version=2),
        replace(plan, temperature=0.5),
        replace(plan, repeats=2),
        replace(plan, tags={"epoch": "1"}),
        replace(plan, suite_digest="e" * 64),
        replace(plan, models={"subject": replace(MODEL, name="r0")}),
        replace(plan, scorers=(ScorerSpec("ablation", 1, {"modes": ["filler"]}),)),
        replace(plan, scorers=(ScorerSpec("ablation", 2),)),
    ]
    assert len({plan.digest, *(other.digest for other in others)}) == len(others) + 1
    assert plan.subject == MODEL


class _Pair(NamedTuple):
    one: object
    two: object


class _Text(str):
    pass


@pytest.mark.parametrize(
    ("value", "same"),
    [
        (_Pair("a", 2.0), ["a", 2]),
        (_Text("a"), "a"),
        (MappingProxyType({1: 1.0}), {"1": 1}),
        ({3.0, 1.5}, [1.5, 3]),
        ({"a": frozenset({-0.0})}, {"a": [0]}),
        (IntEnum("Kind", "ONE").ONE, 1),
        ((True, None), [True, None]),
        (2.0**53, 2.0**53),
    ],
    ids=repr,
)
def test_a_value_of_a_kindred_type_has_the_text_of_its_plain_form(
    value: object, same: object
) -> None:
    assert canonical_json(value) == canonical_json(same) == json.dumps(same, separators=(",", ":"))
