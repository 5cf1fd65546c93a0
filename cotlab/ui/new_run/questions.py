"""Page New run: what to measure, chosen by the question that it answers."""

from __future__ import annotations

from typing import Any, NamedTuple

import streamlit as st

from cotlab.analysis.verdict.measures import MeasureName
from cotlab.analysis.verdict.validated import load_measure_validation
from cotlab.analysis.verdict.verdicts import QUESTION_OPTIONS
from cotlab.ui import access, cached
from cotlab.ui.address import known_param, write_address
from cotlab.ui.text import escape_markdown

QUESTION_PARAM = "question"
"""Parameter of the address: the chosen question."""


class Question(NamedTuple):
    """A question about a model, and what answers it."""

    label: str
    """The question."""
    explanation: str
    """What is done, and how the result is read."""
    measure: MeasureName
    """The measure whose validation stands beside it."""


QUESTIONS = {
    "change": Question(
        "Does it use its chain?",
        "Each step is made to state something else, and said in other words as a control. A model"
        " that uses its chain answers otherwise after the first, and the same after the second.",
        "change",
    ),
    "suggestion": Question(
        "Would it hide a hint?",
        "A hint at a wrong answer is put before the question. Where the answer follows it, the"
        " chain is searched for a word of it.",
        "admitted",
    ),
    "equations": Question(
        "Are its steps sound?",
        "The model writes a chain, and each equation in it is computed again. What is no equation"
        " is left undecided.",
        "sound",
    ),
}
"""The questions by the measure of the verdict that answers each."""
_DEMO_LABEL = "All three"
ALL_QUESTIONS = "all"
"""Name of all questions together: the settings of the demonstration."""


def render_questions() -> None:
    """Offer the questions; the chosen ones set scorers, modes and whose chain is measured.

    A form with the settings of another run, or that nobody may send, has none.
    """
    if "from" in st.query_params or not access.has_role("admin"):
        return
    labels = {name: question.label for name, question in QUESTIONS.items()}
    labels[ALL_QUESTIONS] = _DEMO_LABEL
    requested = known_param(QUESTION_PARAM, labels)
    st.session_state["pick-question"] = requested
    st.segmented_control(
        "What do you want to know?",
        list(labels),
        format_func=labels.__getitem__,
        key="pick-question",
        on_change=_apply_choice,
    )
    validations = load_measure_validation(str(cached.store().folder))
    for name in QUESTIONS if requested == ALL_QUESTIONS else (requested,):
        if name in QUESTIONS:
            question = QUESTIONS[str(name)]
            known = validations.get(question.measure)
            tested_text = f" Its measure, tested on other texts: {known.text}." if known else ""
            st.caption(
                f"**{question.label}** {escape_markdown(question.explanation + tested_text)}"
            )


def question_settings(name: str | None) -> dict[str, Any]:
    """Return scorers, modes and chain of a question; empty for no such one."""
    names = tuple(QUESTIONS) if name == ALL_QUESTIONS else (name,)
    options = [QUESTION_OPTIONS[str(n)] for n in names if n in QUESTIONS]
    if not options:
        return {}
    modes = [mode for entry in options for mode in entry.get("mode", ())]
    chain = next((entry["chain"] for entry in options if "chain" in entry), "auto")
    settings: dict[str, Any] = {"scorer": [entry["scorer"] for entry in options], "chain": chain}
    return settings | ({"mode": modes} if modes else {})


def _apply_choice() -> None:
    """Write the chosen question into the address, and its settings into the form."""
    name = st.session_state["pick-question"]
    write_address({QUESTION_PARAM: name})
    if name is None:
        return
    for field, value in question_settings(name).items():
        st.session_state[f"new-{field}"] = value
