"""Digests of plans and parameters as they were at commit 398f1e3: stored runs are found by them.

``plans.json`` was written by that commit: make_plan(...).digest, and params_digest with the
constants {"threshold": 0.5} of each scorer. Those of ``flags`` and ``composite`` are of version 2.
"""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from cotlab.core.keys import canonical_json
from cotlab.core.program import Params
from cotlab.core.types import Plan
from cotlab.metrics.equivalence import COMPUTATION_ROLE
from cotlab.run.config import read_config, run_fields, stored_options
from cotlab.run.launch import load_configured_suite
from cotlab.run.options import legacy_values
from cotlab.run.plan import params_digest, params_of
from cotlab.run.resolved import ResolvedRun
from cotlab.store.read import plan_from_json

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parent / "plans.json").read_text("utf-8"))
ABSENT = legacy_values(run_fields())
"""What every run had before these options existed."""
VERSIONS_OF_THEN = {"mediation": 2, "verification": 2, "flags": 2, "composite": 2}
"""Versions of the scorers in the file, where they are not 1; a later one has digests of its own.

Version 2 of flags and composite was the first with the option ``rules``."""
COMPUTED_THEN = {"verification", "repair", "composite"}
"""Scorers that asked the computation; those that compare answers ask it from a later version on."""
REMOTE = {"openai", "anthropic", "google", "openai_compat"}


def plan_of(options: dict[str, Any]) -> Plan:
    """Return the plan of a configuration, with the versions that its scorers had then."""
    config = read_config(options)
    suite, _ = load_configured_suite(config)
    plan = ResolvedRun(config).plan(suite)
    scorers = [replace(spec, version=VERSIONS_OF_THEN.get(spec.name, 1)) for spec in plan.scorers]
    models = dict(plan.models)
    if COMPUTED_THEN.isdisjoint(spec.name for spec in scorers):
        models.pop(COMPUTATION_ROLE, None)
    return replace(plan, models=models, scorers=tuple(scorers), splitter_version=1)


def digests(plan: Plan) -> tuple[str, dict[str, str]]:
    params = {spec.name: params_digest(plan, spec, {"threshold": 0.5}) for spec in plan.scorers}
    return plan.digest, params


@pytest.mark.parametrize("name", GOLDEN)
def test_a_run_with_the_limit_of_then_has_the_digests_of_then(name: str) -> None:
    golden = GOLDEN[name]
    plan = plan_of({**ABSENT, **golden["config"]})
    assert digests(plan) == (golden["plan"], golden["params"])


@pytest.mark.parametrize("name", GOLDEN)
def test_the_default_limit_is_that_of_then_in_this_process_and_longer_for_a_remote_model(
    name: str,
) -> None:
    golden = GOLDEN[name]
    plan = plan_of({**ABSENT, "chain_tokens": None, **golden["config"]})
    remote = plan.subject.provider in REMOTE
    assert plan.chain_tokens == (2_048 if remote else 512)
    assert (digests(plan) == (golden["plan"], golden["params"])) is not remote


@pytest.mark.parametrize("name", GOLDEN)
def test_a_stored_plan_without_a_limit_is_read_with_that_of_then(name: str) -> None:
    plan = plan_of({**ABSENT, **GOLDEN[name]["config"]})
    text = canonical_json(plan)
    assert "chain_tokens" not in text
    read = plan_from_json(text)
    assert (read.chain_tokens, read.digest) == (512, GOLDEN[name]["plan"])


def test_another_limit_is_stored_and_handed_to_the_scorers() -> None:
    plan = plan_of({**ABSENT, **GOLDEN["demo"]["config"], "chain_tokens": 100})
    assert '"chain_tokens":100' in canonical_json(plan)
    assert plan_from_json(canonical_json(plan)).digest == plan.digest
    assert params_of(plan, plan.scorers[0]).chain_tokens == 100
    assert plan.digest != GOLDEN["demo"]["plan"]


def test_options_of_a_stored_run_have_the_limit_of_then() -> None:
    assert stored_options('{"model": "m"}') == {**ABSENT, "model": "m"}
    assert stored_options("{}")["chain_tokens"] == 512
    assert stored_options('{"chain_tokens": 2048}')["chain_tokens"] == 2_048


@pytest.mark.parametrize("kind", [Plan, Params])
def test_a_later_field_is_absent_at_the_same_value_everywhere(kind: type[Plan | Params]) -> None:
    later = {f.name: f for f in fields(kind) if "absent" in f.metadata}
    if (splitter := later.pop("splitter_version", None)) is not None:  # of the code, no option
        assert splitter.metadata["absent"] == splitter.default == 1
    absent = {**ABSENT, "critic_votes": 1, "critic_tokens": 2_000}  # entries of --role
    assert {"chain_tokens"} <= later.keys() <= absent.keys()
    assert kind is not Plan or later.keys() == absent.keys() - {"chain"}  # in each scorer's options
    for name, field in later.items():
        assert field.metadata["absent"] == field.default == absent[name]
