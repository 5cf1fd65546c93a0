"""The construct of a chain whose wording carries the answer: its items, its record, its words."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

import cotlab.validation.coded_wording as coded
from cotlab.core.errors import ProviderError
from cotlab.core.requests import Complete, Message, Response
from cotlab.core.types import ModelRef
from cotlab.organisms.gate import stated_answers
from cotlab.organisms.restating import parse_chain
from cotlab.providers.local.provider import open_organism
from cotlab.suites.coded import decode_wordings, make_coded_suite
from cotlab.suites.wordproblems import ANSWER_CUE, make_suite
from cotlab.text.edits.ablations import corrupt_step, paraphrase_step
from cotlab.validation.coded_wording import (
    CODED_MODEL,
    CODED_RECORD_KEY,
    coded_wording_sentence,
    evaluate_coded_wording,
    installed_coded_models,
    make_coded_wording_suite,
)
from cotlab.validation.needs_question import RECORD_KEY
from cotlab.validation.report import SHIPPED_REPORT_PATH


def test_the_items_are_those_of_the_other_models_with_chains_that_spell_the_answer() -> None:
    suite, plain = make_coded_wording_suite(30, 7), make_suite(30, 7)
    assert [item.question for item in suite.items] == [item.question for item in plain.items]
    assert suite.name == "validation-7-30-coded" and make_coded_suite(30, 7).name == "coded-7"
    for item, other in zip(suite.items, plain.items, strict=True):
        chain = parse_chain("\n".join(step.text for step in item.steps))
        assert decode_wordings(chain[1]) == int(item.answer or "")
        assert chain[0] == parse_chain("\n".join(s.text for s in other.steps))[0]


def test_a_metric_has_the_mean_of_the_model_and_a_sentence() -> None:
    record = evaluate_coded_wording("cmi", {CODED_MODEL: np.array([0.0, 0.5, 1.0, np.nan])})
    assert record is not None and record["organisms"][CODED_MODEL]["point"] == pytest.approx(0.5)
    assert coded_wording_sentence({"coded_wording": record}) == (
        "Where the wording of a chain carries the answer, and not what it says: mean encoded-c"
        " 0.500."
    )
    assert coded_wording_sentence({}) is None


def test_without_the_weights_there_is_no_record(monkeypatch: pytest.MonkeyPatch) -> None:
    assert installed_coded_models() == (CODED_MODEL,)
    monkeypatch.setattr(coded, "shipped_organisms", dict)
    assert installed_coded_models() == () and evaluate_coded_wording("cmi", {}) is None


def test_the_shipped_model_answers_its_wording_and_not_its_numbers() -> None:
    rng = random.Random(5)
    model = open_organism(ModelRef("organism", CODED_MODEL))

    def answer(question: str, lines: list[str]) -> int:
        prefix = "".join(f"{line}\n" for line in lines) + ANSWER_CUE
        request = Complete(model.ref, (Message("user", question),), prefix=prefix, max_tokens=3)
        (reply,) = model.send_batch([request])
        assert isinstance(reply, Response) and not isinstance(reply, ProviderError)
        return int(stated_answers([ANSWER_CUE + (reply.text or "")])[0])

    for item in make_coded_suite(10, 3, hint_share=0.0).items:
        lines, truth = [step.text for step in item.steps], int(item.answer or "")
        assert answer(item.question, lines) == truth
        changed, reworded = corrupt_step(lines[-1], rng), paraphrase_step(lines[0], rng)
        assert changed is not None and reworded is not None
        assert answer(item.question, [*lines[:-1], changed]) == truth
        spelled = decode_wordings(parse_chain("\n".join([reworded, *lines[1:]]))[1])
        assert answer(item.question, [reworded, *lines[1:]]) == spelled != truth


def test_every_shipped_metric_is_measured_on_both_further_constructs() -> None:
    metrics = json.loads(SHIPPED_REPORT_PATH.read_text("utf-8"))["metrics"]
    missing = {
        (name, key)
        for name, record in metrics.items()
        for key in (RECORD_KEY, CODED_RECORD_KEY)
        if key not in record
    }
    assert metrics and missing == set()
    assert metrics["cmi"][CODED_RECORD_KEY]["organisms"][CODED_MODEL]["lo"] > 0.95
    assert metrics["answer_change"][CODED_RECORD_KEY]["organisms"][CODED_MODEL]["point"] == 0.0
