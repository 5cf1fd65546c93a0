"""Page New run: what to measure of a suite whose chains were recorded from a model."""

from __future__ import annotations

import streamlit as st

from cotlab.core.types import Suite
from cotlab.metrics.composite import OFFLINE_PROFILE
from cotlab.metrics.text_features import NAME as TEXT_FEATURES
from cotlab.run.resolved import NO_SUBJECT
from cotlab.store.recorded_models import GENERATOR_KEYS
from cotlab.suites.importers.benchmarks import FAITHFUL_KEY, MISTAKE_KEY
from cotlab.suites.importers.records import ANSWER_KEY, CORRECT_KEY
from cotlab.ui.text import escape_markdown, shorten

_RECORD_KEYS = (*GENERATOR_KEYS, ANSWER_KEY, CORRECT_KEY, MISTAKE_KEY, FAITHFUL_KEY)
"""Fields of an item's metadata that only a recorded chain has."""
OFFLINE_SETTINGS = {
    "new-profile": OFFLINE_PROFILE,
    "new-scorer": [TEXT_FEATURES],
    "new-provider": NO_SUBJECT.provider,
}
"""Widget of the form → its value for a run that measures recorded chains and asks no model."""

LABELLED_CHAIN_SETTINGS = {
    "provider": NO_SUBJECT.provider,
    "model": NO_SUBJECT.name,
    "scorer": ["verification", TEXT_FEATURES],
}
"""Settings that measure labelled chains offline: no request is made of a model."""


def recorded_models(suite: Suite) -> list[str] | None:
    """Return the models that wrote a suite's chains, sorted; None where none is recorded.

    The list is empty where the chains are recorded, and nothing says from which model.
    """
    if not all(
        item.steps and any(key in item.meta for key in _RECORD_KEYS) for item in suite.items
    ):
        return None
    names = {
        next((item.meta[key] for key in GENERATOR_KEYS if item.meta.get(key)), None)
        for item in suite.items
    }
    return sorted(name for name in names if isinstance(name, str))


def render_offline_proposal(suite: Suite) -> None:
    """Propose to measure recorded chains as they are; nothing for other suites."""
    models = recorded_models(suite)
    if models is None or st.session_state.get("new-profile") == OFFLINE_PROFILE:
        return
    of_text = f" of {shorten(models[0])}" if len(models) == 1 else ""
    if len(models) > 1:
        of_text = f" of {len(models)} models"
    st.info(
        escape_markdown(
            f"This suite holds recorded chains{of_text}. The profile offline measures them as they"
            " are and asks no model; with another profile the model below is measured."
        )
    )
    st.button(
        "Measure the recorded chains",
        icon=":material/history:",
        key="new-offline",
        on_click=st.session_state.update,
        args=(OFFLINE_SETTINGS,),
        help="Sets the profile offline, the scorer text_features and no model.",
    )
