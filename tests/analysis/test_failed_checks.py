"""A check of the server that failed refuses a run, by its code, whatever its model is called."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cotlab.analysis.verdict.collect import failed_checks
from cotlab.analysis.view import RunView
from cotlab.core.provider import Finding
from cotlab.core.types import ModelRef
from cotlab.store.database import Store
from cotlab.store.server_checks import ServerCheck, add_server_check
from cotlab.suites.wordproblems import make_suite
from tests.support.stores import add_run


@pytest.mark.parametrize("name", ["/models/team/alpha", "meta-llama/Llama-3-8B", "m"])
@pytest.mark.parametrize(
    ("question", "verdict", "code"),
    [
        ("prefix", "new turn", "prefix_not_continued"),
        ("prefix", "not established", "prefix_not_continued"),
        ("prefix", "refused", "prefix_not_continued"),
        ("prefix", "unknown", "prefix_unknown"),
        ("long_prompt", "cut", "prompts_cut"),
        ("user_chain", "not read", "chain_not_read"),  # of a run of before
        *(("prefix", "continued", None), ("long_prompt", "whole", None), ("seed", "ignored", None)),
        *(("reasoning", "not read", None), ("logprobs", "absent", None)),
    ],
)
def test_an_answer_refuses_the_runs_that_were_asked_in_its_form(
    tmp_path: Path, name: str, question: str, verdict: str, code: str | None
) -> None:
    store, model = Store(tmp_path), ModelRef("openai_compat", name)
    add_run(store, "run", make_suite(1, 1), [], models={"subject": model})
    check = ServerCheck(model, {question: Finding(verdict, "{as seen}")}, 1, datetime.now(UTC))
    other_form = replace(check, model=replace(model, endpoint="completions"))
    add_server_check(store, "run", other_form)
    assert failed_checks(RunView.read(store, "run")) == []
    add_server_check(store, "run", check)
    found = failed_checks(RunView.read(store, "run"))
    assert [failed.code for failed in found] == ([code] if code else [])
