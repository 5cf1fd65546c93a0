"""Two plans differ in what both have; a scorer or a model of one of them is one setting."""

from __future__ import annotations

from cotlab.analysis.plan_changes import plan_changes
from cotlab.core.types import ModelRef, Plan
from cotlab.run.config import read_config
from cotlab.run.resolved import ResolvedRun
from cotlab.suites.wordproblems import make_suite

SUITE = make_suite(2, 1)


def plan_of(**options: object) -> Plan:
    config = read_config({"provider": "echo", "model": "m", **options})
    models = {"subject": ModelRef("echo", "m")}
    return ResolvedRun(config).plan(SUITE, models)


def test_a_scorer_that_one_run_lacks_is_no_difference_of_versions() -> None:
    one, both = plan_of(scorer=["ablation"]), plan_of(scorer=["ablation", "flags"])
    (change,) = plan_changes(one, both)
    assert (change.setting, change.base) == ("scorer flags", "n/a")
    assert change.other == str(both.scorers[1].version)
    (back,) = plan_changes(both, one)
    assert (back.base, back.other) == (change.other, "n/a")


def test_parameters_of_a_scorer_that_both_have_are_named_each() -> None:
    base, other = plan_of(mode=["corrupt"]), plan_of(mode=["remove"], repeats=2)
    names = [change.setting for change in plan_changes(base, other)]
    assert "ablation.modes" in names and "repeats" in names
    assert not any(name.startswith("scorer ") for name in names)
