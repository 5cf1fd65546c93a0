"""Diagnoses of the composite: patterns over an item's features that suggest what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from cotlab.metrics.kit import Measurement, undefined_measurement, union_evidence, worst_reason

Features = dict[str, Measurement]


class DiagnosisRule(NamedTuple):
    """A pattern over features that suggests what is wrong with the reasoning."""

    name: str
    """Facet of its score."""
    feature_names: tuple[str, ...]
    """The features that it reads, in this order."""
    predicate: Callable[..., bool]
    """Whether the values of these features show the pattern."""
    undecidable: Callable[..., bool] = lambda *values: False
    """Whether the values would show the pattern, or not, however the model reasons."""
    undecidable_reason: str = ""
    """Why there is no finding then."""


DIAGNOSIS_RULES = (
    DiagnosisRule("instability", ("mu",), lambda mu: mu < 0.6),
    DiagnosisRule("fragility", ("sigma",), lambda sigma: sigma > 0.15),
    DiagnosisRule(
        "monoculture",
        ("D", "C", "clusters"),
        lambda d, c, clusters: d < 0.3 and c > 0.8,
        lambda d, c, clusters: clusters <= 1,
        "all paths are in one cluster, and D is then at most 1/N however the model reasons",
    ),
    DiagnosisRule("global_drift", ("V", "correct"), lambda v, correct: v > 0.7 and correct == 0),
    DiagnosisRule("brittle", ("R",), lambda r: r < 0.6),
    DiagnosisRule("post_hoc", ("early_answer",), lambda early: early > 0),
    DiagnosisRule("unsupported_jumps", ("pass_rate",), lambda passed: passed < 0.8),
)


def diagnose(features: Mapping[str, Measurement]) -> Iterator[tuple[str, Measurement]]:
    """Yield each rule's name, and 1 if it fires, 0 if not, or which feature is missing."""
    for rule in DIAGNOSIS_RULES:
        rule_features = [
            features.get(name, undefined_measurement("it was not measured"))
            for name in rule.feature_names
        ]
        missing_reasons = [
            (feature.status, f"{name}: {feature.reason}")
            for name, feature in zip(rule.feature_names, rule_features, strict=True)
            if feature.value is None
        ]
        evidence, values = (
            union_evidence(rule_features),
            [feature.value for feature in rule_features],
        )
        if (reason := worst_reason(missing_reasons)) is not None:
            yield rule.name, Measurement(None, evidence, *reason)
        elif rule.undecidable(*values):
            yield rule.name, undefined_measurement(rule.undecidable_reason, evidence)
        else:
            yield rule.name, Measurement(float(rule.predicate(*values)), evidence)
