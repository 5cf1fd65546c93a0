"""Keys that a response log may hold already: what was paid for once is found again only while these
do not change."""

from __future__ import annotations

import hashlib

from cotlab.core.requests import Complete, LogProb, Message
from cotlab.core.types import Item, ModelRef, Step, Suite


def sha256(text: str) -> str:
    """What ``printf '%s' TEXT | sha256sum`` prints."""
    return hashlib.sha256(text.encode()).hexdigest()


def test_complete() -> None:
    request = Complete(
        ModelRef("openai_compat", "llama", base_url="http://127.0.0.1:8000/v1"),
        (Message("user", "How many?"),),
        prefix="So",
        temperature=0.7,
        seed=42,
        stop=("\n",),
        sample=1,
    )
    assert request.key == sha256(
        '{"kind":"complete","max_tokens":256,"messages":[{"content":"How many?","role":"user"}],'
        '"model":{"base_url":"http://127.0.0.1:8000/v1","form":"chat","name":"llama","provider":"openai_compat","revision":null},'
        '"prefix":"So","sample":1,"seed":42,"stop":["\\n"],"system":"","temperature":0.7,"top_logprobs":0}'
    )


def test_logprob() -> None:
    request = LogProb(
        ModelRef("organism", "r100", revision="00ff", form="continuation"),
        (Message("user", "é?"),),
        ("9",),
    )
    assert request.key == sha256(
        '{"answers":["9"],"kind":"logprob","messages":[{"content":"é?","role":"user"}],'
        '"model":{"base_url":null,"form":"continuation","name":"r100","provider":"organism","revision":"00ff"},'
        '"prefix":"","sample":0,"system":"","top_logprobs":0}'
    )


def test_suite_digest() -> None:
    item = Item("a", "q", "1", (Step(0, "s"),), "maths", {"n": 2})
    assert Suite.from_items("any name", [item]).digest == sha256(
        '[{"answer":"1","category":"maths","id":"a","meta":{"n":2},"question":"q","steps":[{"index":0,"text":"s"}]}]'
    )
