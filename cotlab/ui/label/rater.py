"""Who labels: their name comes from the login, or is typed once and kept in this browser."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import streamlit as st

from cotlab.store.live import Leases
from cotlab.ui import access, cached
from cotlab.ui.text import escape_markdown, shorten


def current_rater() -> str | None:
    """Return the name of the rater; without a login, ask for it once.

    None until they gave it, and for viewers.
    """
    user = access.current_person()
    if not access.has_role("labeller"):
        st.info(
            "You can look at queues here, but not label: ask an admin of this dashboard for the"
            " role labeller."
        )
        return None
    if user.source in ("login", "header"):
        return user.name
    if name := access.typed_name():
        return name
    with st.form("rater-name", width=480):
        st.text_input(
            "Your name",
            key="rater-typed",
            max_chars=access.MAX_TYPED_CHARS,
            help="It is stored with each of your labels. This browser keeps it.",
        )
        st.form_submit_button("Begin", on_click=_accept_typed_name, type="primary")
    if name_problem := st.session_state.pop("rater-odd", None):
        st.warning(name_problem)
    if taken_name := st.session_state.get("rater-taken"):
        st.warning(
            f"{escape_markdown(taken_name)} is labelling right now. If that is somebody else,"
            " choose another name."
        )
        st.button(
            f"I am {escape_markdown(taken_name)}",
            key="rater-same",
            on_click=access.set_typed_name,
            args=(taken_name,),
        )
    return None


def _accept_typed_name() -> None:
    name = access.clean_name(str(st.session_state["rater-typed"]))
    st.session_state.pop("rater-taken", None)
    if name is None:
        st.session_state["rater-odd"] = (
            f"A name has 1 to {access.MAX_TYPED_CHARS} printable characters: type it again."
        )
        return
    with Leases(cached.store().log_path) as leases:
        is_taken = leases.has_lease(name)
    if is_taken:
        st.session_state["rater-taken"] = name
    else:
        access.set_typed_name(name)


def render_rater(rater: str) -> None:
    """Show who labels here, with a button for somebody else."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.text(f"You label as {shorten(rater, 60)}.", width="content")
        if access.current_person().source in ("local", "open"):
            st.button(
                "Somebody else",
                key="rater-change",
                type="tertiary",
                icon=":material/switch_account:",
                on_click=access.set_typed_name,
                args=("",),
            )


GUIDELINES_NAME = "guidelines.txt"
"""File in the store's folder that replaces the shipped guidelines."""
MAX_GUIDELINE_CHARS = 40_000
SHIPPED_PATH = Path(__file__).parent / GUIDELINES_NAME
_HEADING = "# "


class GuidelineSection(NamedTuple):
    """One section of the guidelines, as plain text."""

    title: str
    """Its heading."""
    text: str
    """What stands below it."""


def load_guidelines(folder: Path) -> tuple[GuidelineSection, ...]:
    """Return the guidelines of a store by section, the shipped ones where it has none.

    A file that cannot be read as UTF-8 text gives one section that says so: raters are not given
    other guidelines than those that were written for them.
    """
    path = folder / GUIDELINES_NAME
    try:
        text = (path if path.exists() else SHIPPED_PATH).read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        problem = f"{GUIDELINES_NAME} in the store's folder cannot be read as UTF-8 text."
        return (GuidelineSection("Guidelines", problem),)
    return split_sections(text[:MAX_GUIDELINE_CHARS])


def split_sections(text: str) -> tuple[GuidelineSection, ...]:
    """Return the sections of a text; a line that begins with "# " is the heading of one."""
    sections: list[tuple[str, list[str]]] = [("Guidelines", [])]
    for line in text.splitlines():
        if line.startswith(_HEADING):
            sections.append((line.removeprefix(_HEADING).strip(), []))
        else:
            sections[-1][1].append(line)
    joined = (GuidelineSection(title, "\n".join(lines).strip()) for title, lines in sections)
    return tuple(section for section in joined if section.text)
