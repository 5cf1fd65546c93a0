"""No regular expression that reads replies takes the square of a run: none can divide it in several
ways, and no search scans it again from each start in it."""

from __future__ import annotations

import importlib
import pkgutil
import re

import pytest

import cotlab.metrics
import cotlab.text
from tests.support.ambiguity import ambiguous_runs, patterns_of
from tests.support.far_starts import far_start
from tests.support.searched_patterns import searched_patterns

OTHERS = ("cotlab.core.reasoning", "cotlab.providers.raw_prompt", "cotlab.providers.continuation")


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


@pytest.mark.parametrize(
    "pattern",
    [
        r"\s*x",
        r"\s+and\s+",
        r"\d+x",
        r"[a-z]{2,}\s",
        r"[a-z]\w*!",
        r"a.*b",
        r"foo.*bar",
        r"<[^>]*>",
        r"a(?=.*b)",
        r"\b(?:[a-z]+ )+!",
        r"(?:step\s+\d+:\s*)*$",
        r"a|\s+\(",
        r"(?<![\w.])\d{1,3}(?:,\d{3})++(?!\d)",
    ],
)
def test_a_search_that_scans_a_run_again_from_each_start_is_found(pattern: str) -> None:
    assert far_start(re.compile(pattern))


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?<!\s)\s+x",
        r"(?:(?<!\s)\s+)?x",
        r",?(?<!\s)\s+(?:and|or)\s+",
        r"\s{0,9}x",
        r"\d+",
        r"\b\d+x",
        r"(?<![\d.])\d+(?:\.\d+)?\s",
        r"[a-z]{2}\s",
        r"<[^<>]*>",
        r"\$\$|(?:\$|\s)+",
        r"\A.*b",
    ],
)
def test_a_search_that_scans_a_run_once_is_not(pattern: str) -> None:
    assert far_start(re.compile(pattern)) is None


def _modules() -> list[str]:
    return [
        *(
            module.name
            for package in (cotlab.text, cotlab.metrics)
            for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        ),
        *OTHERS,
    ]


def test_no_search_that_reads_replies_scans_a_run_again_from_each_start() -> None:
    searched = {
        (pattern.pattern, pattern.flags): (f"{module}: {name}", pattern)
        for module in _modules()
        for name, pattern in searched_patterns(importlib.import_module(module))
    }
    assert len(searched) > 150
    found = [(name, far_start(pattern)) for name, pattern in searched.values()]
    assert not [(name, far) for name, far in found if far]


def test_every_expression_that_reads_replies_is_linear() -> None:
    found = {
        (name, variable, pattern.pattern): runs
        for name in _modules()
        for variable, value in vars(importlib.import_module(name)).items()
        for pattern in patterns_of(value)
        if (runs := ambiguous_runs(pattern))
    }
    assert not found, "\n".join(
        f"{name}.{variable}: {sorted(runs[0])[:5]}" for (name, variable, _), runs in found.items()
    )
