"""The run that a session was last about, on which a page without one in its address opens.

Links in the sidebar name that run, and those of the pages on which chains are judged do not: who
comes from one of these would else see the newest run instead of the one that was open.
"""

from __future__ import annotations

from collections.abc import Collection

import streamlit as st

from cotlab.ui.address import stable_default

_RUN_KEY = "context-run"
_PAGE_KEY = "shown-page"
_ARRIVAL_RUN_KEY = "context-run-at-arrival"
_AFTER_BLIND_KEY = "arrived-from-blind-page"


def opened_run() -> str | None:
    """Return the id of the run that the session was last about; None where there is none yet."""
    run_id: str | None = st.session_state.get(_RUN_KEY)
    return run_id


def remember_run(run_id: str) -> None:
    """Remember the run that a page is about."""
    st.session_state[_RUN_KEY] = run_id


def forget_run() -> None:
    """Forget the run: it was deleted."""
    for key in (_RUN_KEY, _ARRIVAL_RUN_KEY):
        st.session_state.pop(key, None)


def start_view(page: str, *, is_blind: bool) -> None:
    """Note which page is shown, and which run was open where it is another one than before.

    Parameters
    ----------
    page : str
        Name of the page.
    is_blind : bool
        Whether its links name no run.
    """
    before, was_blind = st.session_state.get(_PAGE_KEY, ("", False))
    if before != page:
        st.session_state[_ARRIVAL_RUN_KEY] = opened_run()
        st.session_state[_AFTER_BLIND_KEY] = was_blind
        st.session_state[_PAGE_KEY] = (page, is_blind)


def default_run(key: str, default: str, run_ids: Collection[str]) -> str:
    """Return the run on which a page opens whose address names none.

    It is that of the page's first view in the session, so that the back button restores it: the run
    that was open then, else ``default``. Who comes from a page of blind judgement gets the run that
    is open now.

    Parameters
    ----------
    key : str
        Name of the choice, unique to a page.
    default : str
        What the page opens on where no run was open.
    run_ids : collection of str
        Ids of the runs of the store.
    """
    opened: str | None = st.session_state.get(_ARRIVAL_RUN_KEY)
    is_known = opened is not None and opened in run_ids
    replaces = bool(st.session_state.pop(_AFTER_BLIND_KEY, False)) and is_known
    value = str(opened) if is_known else default
    return stable_default(key, [value], {*run_ids, default}, replaces=replaces)[0]
