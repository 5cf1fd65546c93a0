"""What is kept from a rater until their own label is given, and the words that say so."""

from __future__ import annotations

import streamlit as st

from cotlab.review.labelling.targets import hidden_from
from cotlab.ui import access
from cotlab.ui import cached as data


def hidden_items() -> frozenset[tuple[str, str]]:
    """The (run, item id) whose labels by others whoever looks may not see yet; see ``cotlab.review.labelling.targets.hidden_from``.

    A labeller is a rater, and so is whoever gave their name on the page Label; a viewer is never
    asked.
    """
    if not access.may("labeller"):
        return frozenset()
    rates = not access.may("admin") or bool(st.session_state.get("local_rater"))
    return hidden_from(data.store(), access.person().name, rates=rates)


def hidden_notice(n: int, singular: str, plural: str) -> str:
    """A sentence on ``n`` hidden things, with the words for one and for many of them."""
    subject, them = (f"{n} {singular} is", "it") if n == 1 else (f"{n} {plural} are", "them")
    return (
        f"{subject} hidden: a queue may still ask you for {them}, and your label should be your"
        " own. Label first, then look."
    )
