"""The page Suites: divide a suite by question, to fit on one part and to test on the other."""

from __future__ import annotations

import re

import streamlit as st

from cotlab.core.types import Suite
from cotlab.suites.split import split_by_question
from cotlab.ui import access, cached, suites
from cotlab.ui.new_run import processes
from cotlab.ui.text import escape_markdown

NAME_PATTERN = re.compile(r"[\w(][\w ().+-]*")
"""Names of parts, which name files too."""
SPLIT_HELP = (
    "Items of one question stay in one part, so that what is fitted on the first part is tested on"
    " questions that it has not seen."
)


def render_split(suite: Suite, key_suffix: str) -> None:
    """Show a form that stores a suite's two parts, for whoever may store suites."""
    if not access.has_role("admin"):
        return
    with (
        st.expander(
            "Divide by question: fit on one part, test on the other", icon=":material/cut:"
        ),
        st.form(f"split-{key_suffix}-{suite.digest[:8]}", border=False),
    ):
        st.caption(SPLIT_HELP)
        with st.container(horizontal=True, vertical_alignment="bottom"):
            names = [
                st.text_input(f"Name of the {which} part", f"{suite.name}-{name}", max_chars=80)
                for which, name in (("first", "fit"), ("second", "test"))
            ]
            share = st.number_input("Share of the first part", 0.01, 0.99, 0.5, 0.05, width=180)
            seed = st.number_input("Seed", 0, 2**31 - 1, 0, width=120)
        is_pressed = st.form_submit_button("Divide", icon=":material/cut:")
    if is_pressed:
        _store_halves(suite, names, float(share), int(seed))


def _store_halves(suite: Suite, names: list[str], share: float, seed: int) -> None:
    """Store both parts, and link to a run of each."""
    first_name, second_name = (name.strip() for name in names)
    if first_name == second_name or not all(map(NAME_PATTERN.fullmatch, (first_name, second_name))):
        st.error("Give each part another name, of letters, digits, spaces and . _ + - ( ) alone.")
        return
    access.require_role("admin")
    try:
        halves = split_by_question(suite, share, seed=seed)
    except ValueError as error:
        st.error(escape_markdown(f"Not divided: {error}."))
        return
    for name, part in zip((first_name, second_name), halves, strict=True):
        named_part = Suite(name, part.items, part.digest)
        processes.save_suite(cached.store(), named_part)
        st.success(escape_markdown(f"Stored {name}: {len(part.items)} items."))
        suites.render_suite_links(named_part, name)
