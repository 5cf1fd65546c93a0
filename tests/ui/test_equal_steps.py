"""Which steps the answer depends on, and that none stands out where that is so."""

from __future__ import annotations

import pytest

from cotlab.analysis.tables.step_effects import StepEffect
from cotlab.ui.item.reader_data import chain_finding


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ([(1, 1), (0, 1), (1, 1)], "changes when step 1 or 3 is cut; it stays at step 2."),
        ([(1, 1), (0, 1), (0, 1)], "changes when step 1 is cut; it stays at the other 2."),
        ([(1, 1), (1, 1)], "changes when any step is cut: none stands out."),
        ([(0, 1), (0, 1)], "stays when any step is cut."),
        ([(0, 1), (0, 0)], "stays when step 1 is cut. 1 step without a value."),
        ([(1, 1)], "changes when step 1 is cut."),
        (
            [(4, 5), (1, 5), (0, 5)],
            "changes most often when step 1 is cut (4 of 5 replies); it changes less often at the"
            " other 2.",
        ),
        ([(3, 5), (0, 5)], "changes sometimes when step 1 is cut (3 of 5 replies); it stays at"),
        ([(3, 5), (3, 5)], "changes equally often (3 of 5 replies) when any step is cut: none"),
        ([(1, 1)] * 7 + [(0, 1)], "changes when one of 7 of the 8 steps is cut; it stays at step"),
    ],
)
def test_the_sentence_names_the_steps_that_the_answer_depends_on(
    counts: list[tuple[int, int]], text: str
) -> None:
    effects = [
        StepEffect(step, n_changed, n, 0, None) for step, (n_changed, n) in enumerate(counts)
    ]
    assert chain_finding(effects, "is cut").startswith(f"The answer {text}")


def test_a_chain_without_a_value_has_no_sentence() -> None:
    assert chain_finding([StepEffect(0, 0, 0, 1, "no answer")], "is cut") == ""
