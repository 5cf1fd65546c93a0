"""A check of the server that failed refuses a run, whatever its model is called."""

from __future__ import annotations

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
def test_a_model_named_by_a_path_is_refused_like_any_other(tmp_path: Path, name: str) -> None:
    store, model = Store(tmp_path), ModelRef("openai_compat", name)
    add_run(store, "run", make_suite(1, 1), [], models={"subject": model})
    findings = {"user_chain": Finding("not read", "the reply was the same without it")}
    check = ServerCheck(model, "", findings, 1, datetime.now(UTC))
    assert failed_checks(RunView.read(store, "run")) == []
    add_server_check(store, "run", check)
    (failed,) = failed_checks(RunView.read(store, "run"))
    assert "does not seem to read a chain" in failed.detail
