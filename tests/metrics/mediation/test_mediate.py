"""``cotlab.mediate`` on one item: the chain's share, and no CMI where a control says nothing."""

from __future__ import annotations

import cotlab
from cotlab.metrics.mediation.scorer import HEADLINE_FACET, mediation
from cotlab.run.config import FORMER_OPTIONS
from cotlab.suites.operations import make_operations_suite

SUITE = make_operations_suite(6, seed=77, hint_share=0.0)
SMALL = {"layers": ["all"], "subsets": 1}


def mediated(model: str, **options: object) -> cotlab.Measurement:
    return cotlab.mediate(SUITE.items[0], donors=SUITE, model=model, **{**SMALL, **options})


def test_the_default_is_one_everywhere() -> None:
    default = FORMER_OPTIONS["control"].default
    assert default == mediation.options["control"] == HEADLINE_FACET["control"] == "total"


def test_a_chain_that_needs_its_question_is_told_from_one_that_is_not_used() -> None:
    faithful, bypassing = mediated("organism/s100-a"), mediated("organism/s0-a")
    assert faithful.value is not None and faithful.value > 0.95
    assert bypassing.value is not None and bypassing.value < 0.05


def test_where_the_control_loses_more_there_is_no_cmi_and_the_reason_is_given() -> None:
    found = mediated("organism/s100-a", control="other")
    assert (found.value, found.status) == (None, "undefined")
    assert found.reason is not None and "the control loses more" in found.reason
    (bypass,) = [s for s in found.parts if s.metric == "bypass"]
    assert (bypass.value, bypass.status, bypass.reason) == (None, "undefined", found.reason)
    drops = {s.metric: s.value for s in found.parts if s.metric.startswith("drop_c")}
    assert drops["drop_control"] > drops["drop_cot"] > 1  # type: ignore[operator]


def test_where_the_chain_loses_more_the_published_ratio_stays() -> None:
    suite = cotlab.load_suite("wordproblems")
    found = cotlab.mediate(suite.items[0], model="organism/r100", control="other", **SMALL)
    assert found.value is not None and found.value > 0.95 and found.status == "ok"
