"""The features of a feature vector in a few words each."""

from __future__ import annotations

from collections.abc import Iterable

import streamlit as st

FEATURE_DESCRIPTIONS = {
    "r_raw": "the composite score: the weighed mean of the parts C, R, V, D, F",
    "weight": "share of its weight that is defined",
    "correct": "the model's answer is right (1) or not (0)",
    "C": "consistency of the model's chains over paraphrases",
    "mu": "mean similarity of those chains",
    "sigma": "spread of that similarity",
    "agreement": "share of pairs of those chains with the same answer",
    "R": "robustness when a step is perturbed",
    "R_sd": "spread of how far the chain diverges then",
    "V": "verification of the links between steps",
    "pass_rate": "share of the links that hold",
    "weak_link": "V's mean, less the longest run of weak links",
    "coverage": "share of the links that a verifier could decide",
    "D": "diversity of the strategies that reach the answer",
    "clusters": "number of strategies",
    "F": "red flags in the chain; 1 is clean",
    "early_answer": "answers given too early",
    "jumps": "steps far from the one before",
    "ccs_corrupt": "share of the steps whose corruption changes the answer",
    "mass_lost": "probability of the answer lost with the chain's states",
    "bypass": "1 − CoT-mediated influence",
}


def render_feature_help(names: Iterable[str]) -> None:
    """A button that says what these features are."""
    with st.popover("What are these features?", icon=":material/info:"):
        st.markdown(
            "\n".join(
                f"- **{name}**: {FEATURE_DESCRIPTIONS[name]}"
                for name in names
                if name in FEATURE_DESCRIPTIONS
            )
        )
        st.caption(
            "The page Reliability has the card of each part: formula, range, and what it does not"
            " show."
        )
