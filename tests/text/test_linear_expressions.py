"""No regular expression that reads replies can divide a run of characters in several ways."""

from __future__ import annotations

import importlib
import pkgutil
import re

import pytest

import cotlab.metrics
import cotlab.text
from tests.support.ambiguity import ambiguous_runs, patterns_of

OTHERS = ("cotlab.providers.raw_prompt", "cotlab.providers.continuation")


@pytest.mark.parametrize(
    "pattern",
    [
        r"\s*/?\s*x",
        r"(a+)+b",
        r"(?:,\s*|and\s)\s*x",
        r"(?:[A-Z](?:\s*,\s*)+)+x",
        r"(?i)[a-z]*(?:X*y)?B*!",
        r"\d[\d,]*\.?0*$",
        r"[^\n]*\s*$",
        r"=\s*\W{0,3}\s*$",
    ],
)
def test_what_takes_the_square_of_a_run_is_found(pattern: str) -> None:
    assert ambiguous_runs(re.compile(pattern))


@pytest.mark.parametrize(
    "pattern",
    [
        r"\s*(?:/\s*)?x",
        r"a+b+",
        r"(?:\s*,)+\s*x",
        r"\s*(.*)",
        r"\d[\d,]*(?:\.0*)?$",
        r"\s{0,9}[^,]{1,60}",
        r"(?:step\s+\d+:\s*)*$",
    ],
)
def test_what_is_linear_is_not(pattern: str) -> None:
    assert not ambiguous_runs(re.compile(pattern, re.DOTALL))


def test_every_expression_that_reads_replies_is_linear() -> None:
    names = [
        module.name
        for package in (cotlab.text, cotlab.metrics)
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    found = {
        (name, variable, pattern.pattern): runs
        for name in (*names, *OTHERS)
        for variable, value in vars(importlib.import_module(name)).items()
        for pattern in patterns_of(value)
        if (runs := ambiguous_runs(pattern))
    }
    assert not found, "\n".join(
        f"{name}.{variable}: {sorted(runs[0])[:5]}" for (name, variable, _), runs in found.items()
    )
