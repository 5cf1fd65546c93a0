"""Plan the number of items of a run: for a rate, two paired rates or a mean difference."""

from __future__ import annotations

from typing import NamedTuple

import streamlit as st

from cotlab.stats.power import (
    Discordant,
    SampleSize,
    discordant,
    n_for_mcnemar,
    n_for_paired_t,
    n_for_rate,
)
from cotlab.ui.text import as_code

AIMS = {
    "rate": "One rate, to within a half width",
    "paired": "A difference of two rates on the same items",
    "mean": "A mean difference on the same items",
}


class Answer(NamedTuple):
    """Answer of the planner."""

    items: str
    """Number of items; "n/a" where none is enough."""
    reached: str
    """What that number reaches."""
    method: str
    """The method, and what it assumes."""


def render_planner() -> None:
    """Show an expander that computes the items needed; it asks no model, changes no setting."""
    with st.expander("How many items are needed?"):
        aim = st.selectbox("For", list(AIMS), format_func=AIMS.__getitem__, key="plan-aim")
        try:
            answer = _rate() if aim == "rate" else _paired() if aim == "paired" else _mean()
        except ValueError as error:
            st.warning(as_code(str(error)))
            return
        with st.container(horizontal=True, gap="medium"):
            st.metric("Items", answer.items, width="content")
            st.metric("Reached", answer.reached, width="content")
        st.caption(answer.method)


def planner_answer(needed: SampleSize, reached: str, method: str) -> Answer:
    """Return an answer in words; where no number of items is enough, the reason."""
    if needed.n is None or needed.reached is None:
        return Answer(
            "n/a", "n/a", f"{as_code(needed.reason or 'no number of items is enough')}. {method}"
        )
    return Answer(f"{needed.n:,}", reached.format(needed.reached), method)


def _rate() -> Answer:
    a, b = st.columns(2)
    half = a.number_input(
        "Half width of the interval",
        0.01,
        0.49,
        0.1,
        0.01,
        key="plan-half",
        help="0.1: ± 10 points.",
    )
    rate = b.number_input(
        "Expected rate", 0.0, 1.0, 0.5, 0.05, key="plan-rate", help="0.5 needs the most items."
    )
    return planner_answer(
        n_for_rate(half, rate),
        "± {:.3f}",
        "Half the width of the 95 % Wilson interval (statsmodels). Items must ask different"
        " questions; undefined items do not count, so plan for more.",
    )


def _paired() -> Answer:
    a, b = st.columns(2)
    first = a.number_input("Rate of the base", 0.0, 1.0, 0.6, 0.05, key="plan-first")
    second = b.number_input("Rate of the other", 0.0, 1.0, 0.45, 0.05, key="plan-second")
    phi = a.number_input(
        "Correlation of the two on one item",
        -1.0,
        1.0,
        0.0,
        0.1,
        key="plan-phi",
        help=(
            "Phi of yes and no. 0: as if the items differed. The more alike the runs are, the fewer"
            " items are needed."
        ),
    )
    power = b.number_input("Power", 0.5, 0.99, 0.8, 0.05, key="plan-power")
    shares = discordant(first, second, phi)
    return planner_answer(
        _for_mcnemar(shares.first_only, shares.second_only, power),
        "power {:.3f}",
        "McNemar's exact test, two-sided, at 0.05, over all outcomes. Expected:"
        f" {100 * shares.first_only:.3g} % of items are yes in the base only,"
        f" {100 * shares.second_only:.3g} % in the other only. One test: several need more items.",
    )


def _mean() -> Answer:
    a, b = st.columns(2)
    size = a.number_input(
        "Difference, in standard deviations of the differences",
        0.0,
        5.0,
        0.3,
        0.05,
        key="plan-dz",
        help=(
            "Cohen's d_z: the page Compare shows it as effect; a pilot of five tells little of it."
        ),
    )
    power = b.number_input("Power", 0.5, 0.99, 0.8, 0.05, key="plan-mean-power")
    return planner_answer(
        n_for_paired_t(size, power=power),
        "power {:.3f}",
        "Paired t test, two-sided, at 0.05 (statsmodels). Wilcoxon's test, which the page Compare"
        " shows, needs about 5 % more on normal differences.",
    )


@st.cache_data(show_spinner="Counting", max_entries=64)
def _for_mcnemar(first_only: float, second_only: float, power: float) -> SampleSize:
    return n_for_mcnemar(Discordant(first_only, second_only), power=power)
