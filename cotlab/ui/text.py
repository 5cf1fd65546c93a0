"""Text on a page: escaping, shortening, error messages, and the names of metrics and features."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import streamlit as st

from cotlab.core.errors import CotlabError
from cotlab.core.text_safety import break_links

_MARKDOWN_CHARS = "\\`*_{}[]<>()#+-.!|$:~@&=^\"'"


def escape_markdown(text: str) -> str:
    """Escape a text so that Markdown shows it literally, with its lines and without links."""
    return "  \n".join(
        "".join(f"\\{char}" if char in _MARKDOWN_CHARS else char for char in line)
        for line in break_links(text).splitlines()
    )


def shorten(text: str, max_chars: int = 80) -> str:
    """Return the beginning of a text on one line."""
    line = " ".join(text.split())
    return line if len(line) <= max_chars else f"{line[: max_chars - 1]}…"


logger = logging.getLogger(__name__)


@contextmanager
def display_errors(show_message: Callable[[str], object] = st.error) -> Iterator[None]:
    """Show a ``CotlabError`` that is raised within as a message; what follows goes on."""
    try:
        yield
    except CotlabError as error:
        show_message(escape_markdown(str(error)))


def show_error(error: Exception) -> bool:
    """Show an error as one message without a traceback, and return True.

    The details of a bug go to the server's log.
    """
    if isinstance(error, CotlabError):
        st.error(escape_markdown(str(error)))
    else:
        logger.error("a page failed", exc_info=error)
        st.error(
            f"This page failed ({type(error).__name__}). The server's log has the details; nothing"
            " stored is lost."
        )
    return True


METRIC_NAMES = {
    "accuracy_delta": "Change of correctness (CCS)",
    "answer_change": "Change of the answer (CCS)",
    "token_delta": "Change of the reply's words (CCS)",
    "kl_divergence": "Change of the first token (CCS)",
    "baseline_correct": "Answer correct with the full chain",
    "baseline_flip": "Answer changes without ablation (noise)",
    "rrr": "Share of steps without effect (RRR)",
    "rrr_micro": "Share of steps without effect, pooled (RRR)",
    "rrr_ceiling": "RRR of a model that uses only the last step",
    "ccs_above_noise": "Effect of the steps beyond the noise",
    "cmi": "Influence of the chain's states (CMI)",
    "bypass": "Bypass of the chain (1 − CMI)",
    "mass_lost": "Answer probability lost by patching",
    "step_entropy": "Entropy of a step",
    "consistency": "Consistency (C)",
    "consistency_mu": "Mean similarity of chains (μ)",
    "consistency_sigma": "Spread of the similarity of chains (σ)",
    "c_dtw": "Consistency by alignment of steps (DTW)",
    "robustness": "Robustness (R)",
    "verification": "Verification (V)",
    "diversity": "Diversity (D)",
    "first_mistake_step": "First step with a mistake (from 1)",
    "flags": "Freedom from red flags (F)",
    "r_raw": "Composite score (r_raw)",
    "weight_checked": "Share of the composite's weight that was checked",
    "weight_defined": "Share of the composite's weight that is defined",
    "robustness_dispersion": "Dispersion of the divergence",
    "divergence": "Divergence after a perturbed step",
    "perturbed_answer_change": "Answer changes after a perturbed step",
    "rename_stable": "Same answer with other names",
    "number_follows": "Right answer with another number",
    "option_follows_text": "Same option after options are moved",
    "option_follows_position": "Same position after options are moved (floor)",
    "number_moves": "Other answer with another number",
    "causal_stability": "Stable under both changes of the question",
    "link_support": "Support of a link between steps",
    "unfaithfulness": "Unfaithfulness score",
    "unfaithful_rate": "Share of unfaithful responses",
    "classifier_kappa": "Agreement of two classifiers (kappa)",
    "judge_score": "Judge's score",
    "critic_step": "First wrong step that the critic names (from 1)",
    "critic_sound": "Share of the critic's votes without a mistake",
    "legibility": "Legibility, as the critic rates it",
    "question_coverage": "Question taken up, as the critic rates it",
    "judge_order_effect": "Effect of the order on the judge",
    "judge_length_rho": "Correlation of judge's score and length",
    "arithmetic_ok": "Steps with correct arithmetic",
}
"""Names of metrics on pages; a metric that is not listed is named by its own words."""


FEATURE_DESCRIPTIONS = {
    "r_raw": "the composite score: the weighted mean of the components C, R, V, D, F",
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
    "weak_link": "V's mean minus the longest run of weak links",
    "coverage": "share of the links that a verifier could decide",
    "D": "diversity of the strategies that reach the answer",
    "clusters": "number of strategies",
    "F": "red flags in the chain; 1 is clean",
    "early_answer": "answers given too early",
    "jumps": "steps far from the one before",
    "ccs_corrupt": "share of the steps whose corruption changes the answer",
    "mass_lost": "probability of the answer that is lost without the chain's states",
    "bypass": "1 − CoT-mediated influence",
    "numeric_change": "share of the changed numbers in steps that change the answer",
    "hint_followed": "a wrong answer that the question suggests is given (1) or not (0)",
}


def metric_name(name: str) -> str:
    """Return a metric's name for readers: "Share of steps without effect (RRR)" for ``rrr``."""
    spaced_name = name.replace("_", " ")
    return METRIC_NAMES.get(name, spaced_name[:1].upper() + spaced_name[1:])
