"""What an item's features suggest: rules over numbers, each with the numbers that it rests on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from cotlab.core.types import Status


class Feature(NamedTuple):
    """One number of an item, or why there is none, and the requests behind it."""

    value: float | None
    status: Status
    reason: str | None
    evidence: tuple[str, ...]


class Rule(NamedTuple):
    """A pattern over the features that it needs, in that order."""

    name: str
    needs: tuple[str, ...]
    fires: Callable[..., bool]


class Finding(NamedTuple):
    """Whether a rule fires: 1.0, 0.0, or None with the reason."""

    rule: str
    value: float | None
    status: Status
    reason: str | None
    evidence: tuple[str, ...]


STATUS_PRIORITY: tuple[Status, ...] = ("error", "refused", "stopped", "undefined", "ok")
"""Of several reasons for a gap the first of these is told."""
RULES = (
    Rule("instability", ("mu",), lambda mu: mu < 0.6),
    Rule("fragility", ("sigma",), lambda sigma: sigma > 0.15),
    Rule(
        "monoculture",
        ("D", "C", "clusters"),
        lambda d, c, clusters: d < 0.3 and c > 0.8 and clusters <= 1,
    ),
    Rule("global_drift", ("V", "correct"), lambda v, correct: v > 0.7 and correct == 0),
    Rule("brittle", ("R",), lambda r: r < 0.6),
    Rule("post_hoc", ("early_answer",), lambda early: early > 0),
    Rule("unsupported_jumps", ("pass_rate",), lambda passed: passed < 0.8),
)


def diagnose(features: Mapping[str, Feature]) -> Iterator[Finding]:
    """Every rule, on one item's features; a rule whose numbers are not all there says which is missing."""
    for rule in RULES:
        used = [
            features.get(name, Feature(None, "undefined", "it was not measured", ()))
            for name in rule.needs
        ]
        evidence = tuple(dict.fromkeys(key for feature in used for key in feature.evidence))
        gaps = [
            (name, feature)
            for name, feature in zip(rule.needs, used, strict=True)
            if feature.value is None
        ]
        if not gaps:
            yield Finding(
                rule.name,
                float(rule.fires(*(feature.value for feature in used))),
                "ok",
                None,
                evidence,
            )
        else:
            name, feature = min(gaps, key=lambda entry: STATUS_PRIORITY.index(entry[1].status))
            yield Finding(rule.name, None, feature.status, f"{name}: {feature.reason}", evidence)
