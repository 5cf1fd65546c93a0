"""The sentences that the demo ends with come from the report; none where a number is missing."""

from __future__ import annotations

from typing import Any

from cotlab.cli.demo import first_finding


def estimate(name: str, point: float | None, **facet: str) -> dict[str, Any]:
    return {"metric": name, "point": point, "facet": {"given": "prefix", **facet}}


ESTIMATES = [
    estimate("answer_change", 1.0, mode="corrupt"),
    estimate("answer_change", 0.0, mode="paraphrase"),
    estimate("rrr", 0.71, mode="remove", metric="accuracy_delta"),
    estimate("rrr", 0.5, mode="remove", metric="answer_change"),
    estimate("rrr_ceiling", 0.71, mode="remove", metric="accuracy_delta"),
]


def test_the_finding_has_the_numbers_of_the_report() -> None:
    text = first_finding({"estimates": ESTIMATES})
    assert text.startswith("Corrupting a step changed the answer in 100% of the steps")
    assert "rewording it in 0%" in text and text.count("71.0%") == 2


def test_there_is_no_finding_where_a_number_is_missing() -> None:
    for at in (0, 1, 2, 4):
        missing = [{**e, "point": None} if k == at else e for k, e in enumerate(ESTIMATES)]
        assert first_finding({"estimates": missing}) == ""
    assert first_finding({"estimates": []}) == ""
