"""The step in the address of the pages Item and Robustness, counted from 1 as on the screen.

Older addresses have it under another name and counted from 0; they still open the step that they
were made for.
"""

from __future__ import annotations

import streamlit as st

STEP_PARAM = "step-number"
"""Parameter with the number of the step, from 1."""
_OLD_PARAM = "step"
"""Parameter of older addresses, from 0."""


def step_query(step: int) -> dict[str, str]:
    """Return the parameter of the address that opens a step, given from 0."""
    return {STEP_PARAM: str(step + 1)}


def requested_step(n_steps: int) -> int | None:
    """Return the step that the address asks for, from 0; None where it asks for none.

    Raises
    ------
    ValueError
        If the address asks for something that is no step of a chain of ``n_steps``.
    """
    text = st.query_params.get(STEP_PARAM)
    if text is None:
        return None
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 9 else 0
    if not 1 <= number <= n_steps:
        raise ValueError(f"no step {text!r} among {n_steps}")
    return number - 1


def rewrite_old_step() -> None:
    """Replace the step of an older address, counted from 0, by its number from 1."""
    text = st.query_params.get(_OLD_PARAM)
    if text is None:
        return
    query = {name: st.query_params.get_all(name) for name in st.query_params if name != _OLD_PARAM}
    is_number = text.isascii() and text.isdecimal() and len(text) < 9
    query.setdefault(STEP_PARAM, [str(int(text) + 1) if is_number else text])
    st.query_params.from_dict(query)  # at once: each write is an entry of the browser's history
