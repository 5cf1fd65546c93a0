"""The step in the address of the pages Item, Steps and Robustness, counted from 1 as on the screen.

Older addresses have it under another name and counted from 0; they still open the step that they
were made for, and have the new name as soon as another step is chosen.
"""

from __future__ import annotations

import streamlit as st

STEP_PARAM = "step-number"
"""Parameter with the number of the step, from 1."""
_OLD_PARAM = "step"
"""Parameter of older addresses, from 0."""
STEP_PARAMS = (STEP_PARAM, _OLD_PARAM)
"""Both, which another item removes from the address."""


def step_query(step: int) -> dict[str, str]:
    """Return the parameter of the address that opens a step, given from 0."""
    return {STEP_PARAM: str(step + 1)}


def old_step_number() -> str | None:
    """Return the step that an older address asks for, from 1; None where it is no number."""
    text = st.query_params.get(_OLD_PARAM, "")
    return str(int(text) + 1) if text.isascii() and text.isdecimal() and len(text) < 9 else None


def step_changes(step: int) -> dict[str, str | None]:
    """Return what another step, given from 0, changes in the address."""
    return {**step_query(step), _OLD_PARAM: None}


def requested_step(n_steps: int) -> int | None:
    """Return the step that the address asks for, from 0; None where it asks for none.

    Raises
    ------
    ValueError
        If the address asks for something that is no step of a chain of ``n_steps``.
    """
    text, offset = st.query_params.get(STEP_PARAM), 0
    if text is None:
        text, offset = st.query_params.get(_OLD_PARAM), 1
    if text is None:
        return None
    is_number = text.isascii() and text.isdecimal() and len(text) < 9
    number = int(text) + offset if is_number else 0
    if not 1 <= number <= n_steps:
        raise ValueError(f"no step {text!r} among {n_steps}")
    return number - 1
