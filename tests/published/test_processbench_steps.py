"""Where chains divide, against the steps that ProcessBench publishes (Zheng et al. 2024)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cotlab.text.steps import split_steps

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "processbench"

pytestmark = pytest.mark.skipif(not DATA.exists(), reason="../shared/data/processbench is missing")


def _unspaced(steps: tuple[str, ...] | list[str]) -> list[str]:
    return ["".join(step.split()) for step in steps if step.strip()]


# shares of chains whose steps all agree; .868, .738, .560, .552 while paragraphs were not read
@pytest.mark.parametrize(
    ("name", "paragraphs", "lines"),
    [
        ("gsm8k", 0.98, 0.92),
        ("math", 0.95, 0.79),
        ("olympiadbench", 0.89, 0.65),
        ("omnimath", 0.92, 0.66),
    ],
)
def test_steps_agree_with_the_published_ones(name: str, paragraphs: float, lines: float) -> None:
    chains = [row["steps"] for row in json.loads((DATA / f"{name}.json").read_text("utf-8"))]
    for separator, least in (("\n\n", paragraphs), ("\n", lines)):
        n_equal = sum(
            _unspaced(split_steps(separator.join(steps))) == _unspaced(steps) for steps in chains
        )
        assert n_equal / len(chains) >= least


def test_no_step_begins_within_a_sentence() -> None:
    """A step is no continuation such as "which implies" and never without a letter or digit."""
    fragment = re.compile(r"(?:which|where|such that|for all)\b|\W*$")
    for path in sorted(DATA.glob("*.json")):
        for row in json.loads(path.read_text("utf-8")):
            steps = split_steps("\n\n".join(row["steps"]))
            assert not [step for step in steps[1:] if fragment.match(step)], row["id"]
