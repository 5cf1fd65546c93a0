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
from cotlab.ui.text import escape_markdown

AIM_LABELS = {
    "rate": "One rate, to within a half width",
    "paired": "A difference of two rates on the same items",
    "mean": "A mean difference on the same items",
}


class PlannerAnswer(NamedTuple):
    """Answer of the planner."""

    items_text: str
    """Number of items; "n/a" where none is enough."""
    reached_text: str
    """What that number reaches."""
    method_text: str
    """The method, and what it assumes."""


def render_planner() -> None:
    """Show an expander that computes the items needed; it changes no setting."""
    with st.expander("How many items are needed?"):
        aim = st.selectbox(
            "For", list(AIM_LABELS), format_func=AIM_LABELS.__getitem__, key="plan-aim"
        )
        try:
            answer = (
                _plan_rate()
                if aim == "rate"
                else _plan_paired_rates()
                if aim == "paired"
                else _plan_mean_difference()
            )
        except ValueError as error:
            st.warning(escape_markdown(str(error)))
            return
        with st.container(horizontal=True, gap="medium"):
            st.metric("Items", answer.items_text, width="content")
            st.metric("Reached", answer.reached_text, width="content")
        st.caption(answer.method_text)


def planner_answer(sample_size: SampleSize, reached_format: str, method_text: str) -> PlannerAnswer:
    """Return the planner's answer as text; where no number of items is enough, the reason."""
    if sample_size.n is None or sample_size.reached is None:
        return PlannerAnswer(
            "n/a",
            "n/a",
            f"{escape_markdown(sample_size.reason or 'no number of items is enough')}."
            f" {method_text}",
        )
    return PlannerAnswer(
        f"{sample_size.n:,}", reached_format.format(sample_size.reached), method_text
    )


def _plan_rate() -> PlannerAnswer:
    left_column, right_column = st.columns(2)
    label, hint = "Half width of the interval", "0.1: ± 10 points."
    half_width = left_column.number_input(label, 0.01, 0.49, 0.1, 0.01, key="plan-half", help=hint)
    rate = right_column.number_input(
        "Expected rate", 0.0, 1.0, 0.5, 0.05, key="plan-rate", help="0.5 needs the most items."
    )
    return planner_answer(
        n_for_rate(half_width, rate),
        "± {:.3f}",
        "Half the width of the 95 % Wilson interval (statsmodels). Items must ask different"
        " questions; undefined items do not count, so plan for more.",
    )


def _plan_paired_rates() -> PlannerAnswer:
    left_column, right_column = st.columns(2)
    base_rate = left_column.number_input("Rate of the base", 0.0, 1.0, 0.6, 0.05, key="plan-first")
    other_rate = right_column.number_input(
        "Rate of the other", 0.0, 1.0, 0.45, 0.05, key="plan-second"
    )
    phi = left_column.number_input(
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
    power = right_column.number_input("Power", 0.5, 0.99, 0.8, 0.05, key="plan-power")
    discordant_shares = discordant(base_rate, other_rate, phi)
    return planner_answer(
        _cached_mcnemar_size(discordant_shares.first_only, discordant_shares.second_only, power),
        "power {:.3f}",
        "McNemar's exact test, two-sided, at 0.05, over all outcomes. Expected:"
        f" {100 * discordant_shares.first_only:.3g} % of items are yes in the base only,"
        f" {100 * discordant_shares.second_only:.3g} % in the other only. One test: several need"
        " more items.",
    )


def _plan_mean_difference() -> PlannerAnswer:
    left_column, right_column = st.columns(2)
    effect_size = left_column.number_input(
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
    power = right_column.number_input("Power", 0.5, 0.99, 0.8, 0.05, key="plan-mean-power")
    return planner_answer(
        n_for_paired_t(effect_size, power=power),
        "power {:.3f}",
        "Paired t test, two-sided, at 0.05 (statsmodels). Wilcoxon's test, which the page Compare"
        " shows, needs about 5 % more on normal differences.",
    )


@st.cache_data(show_spinner="Counting", max_entries=64)
def _cached_mcnemar_size(
    first_only_share: float, second_only_share: float, power: float
) -> SampleSize:
    return n_for_mcnemar(Discordant(first_only_share, second_only_share), power=power)
