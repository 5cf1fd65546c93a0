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
    "hint_followed": "a wrong answer added as a suggestion is given (1) or not (0)",
}
