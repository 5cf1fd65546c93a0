"""Roles that a served model plays, beside the subject: who is asked what, and what becomes of the
replies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cotlab
from tests.support.loopback import Loopback

pytestmark = pytest.mark.soak
CHAIN = "1. Ann has 7 pens.\n2. 7 + 5 = 12 pens.\nSo the answer is 12."
QUESTION = "Ann has 7 pens and buys 5 more. How many pens has she?"
PARAPHRASE = "Ann owns 7 pens, then she buys 5 more pens. How many pens does she have?"
WORDY = (
    "1. Clearly the answer is 12.\n2. Obviously x plus y is z.\n3. So 3 m + 2 m^2 = 9.\nSo the"
    " answer is 12."
)


def suite_of(folder: Path, steps: list[str]) -> Path:
    row = {
        "prompt": QUESTION,
        "ground_truth": "12",
        "reference_cot": [{"index": i, "text": t} for i, t in enumerate(steps)],
    }
    path = folder / "suite.jsonl"
    path.write_text(
        "".join(json.dumps({"item_id": f"i{k}", **row}) + "\n" for k in range(2)), "utf-8"
    )
    return path


def served(folder: Path, server: Loopback, suite: Path, **options: Any) -> pd.DataFrame:
    done = cotlab.run_suite(
        str(suite),
        store=folder,
        provider="openai_compat",
        model="m",
        base_url=server.base_url,
        allow_unpriced=True,
        max_requests_per_minute=100_000,
        **options,
    )
    assert done.status == "done"
    return done.scores


def prompts(server: Loopback) -> list[str]:
    return [message["content"] for call in server.seen() for message in call["body"]["messages"]]


def values(scores: pd.DataFrame, metric: str) -> list[float]:
    return list(scores.loc[(scores["metric"] == metric) & scores["step"].isna(), "value"])


def test_a_served_model_writes_the_paraphrases_and_is_asked_each(
    tmp_path: Path, server: Loopback
) -> None:
    server.script(answers={"Rewrite the question": PARAPHRASE, "": CHAIN})
    scores = served(
        tmp_path / "s",
        server,
        suite_of(tmp_path, ["7 + 5 = 12."]),
        scorer=["consistency"],
        paraphraser="subject",
    )
    asked = prompts(server)
    assert any(text.startswith("Rewrite the question") for text in asked)
    assert any(text.startswith(PARAPHRASE) for text in asked)
    facets = scores.loc[scores["metric"] == "consistency", "facet"].map(json.loads)
    assert {facet["paraphrases"] for facet in facets} == {"model"}
    assert values(scores, "answer_agreement") == [1.0, 1.0]


@pytest.mark.parametrize(
    ("reply", "value"), [("0.9", 0.9), ("Confidence: 20 %", 0.2), ("I cannot tell.", None)]
)
def test_a_served_judge_gives_the_links_that_arithmetic_leaves_open(
    tmp_path: Path, server: Loopback, reply: str, value: float | None
) -> None:
    server.script(answers={"": reply})
    steps = ["Ann likes pens.", "So she buys pens.", "She is glad."]
    scores = served(
        tmp_path / "s",
        server,
        suite_of(tmp_path, steps),
        scorer=["verification"],
        verifier="subject",
    )
    links = scores[(scores["metric"] == "link_support") & scores["facet"].str.contains("forward")]
    found = [None if pd.isna(v) else v for v in links["value"]]
    assert found and set(found) == {value}
    assert links["reason"].notna().all() == (value is None)
    assert server.count() > 0 and all(links["evidence"].map(len))
