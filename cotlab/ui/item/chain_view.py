"""Blocks of text in reading order, each with a label, a shade and a score; text is set as text, never as markup."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a block's text, marked with a colour where it has one; ``hint`` appears on hover."""

    text: str
    shade: str | None = None
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """One row. ``index`` counts from 0; ``shade`` is a colour or None; ``hint`` appears on hover.

    ``pieces``, where there are any, are the text in parts, some of them marked; they are set as
    text too.
    """

    index: int
    label: str
    text: str
    shade: str | None = None
    score: str = ""
    hint: str = ""
    pieces: tuple[Piece, ...] = ()


@cache
def _component() -> Any:
    return st.components.v2.component(
        "cotlab_chain",
        html='<div class="chain"></div>',
        css=(_HERE / "chain_view.css").read_text(),
        js=(_HERE / "chain_view.js").read_text(),
    )


def show_blocks(blocks: Sequence[Block], *, key: str, selected: int | None = None) -> None:
    """Draw rows that are only read."""
    _component()(
        key=key,
        data={"blocks": [asdict(b) for b in blocks], "clickable": False, "selected": selected},
    )


def pick_block(blocks: Sequence[Block], *, key: str, selected: int | None = None) -> int | None:
    """Draw rows that can be clicked or chosen by keyboard; returns the chosen index."""
    chosen = (
        st.session_state.get(key, {}).get("selected", selected)
        if key in st.session_state
        else selected
    )
    result = _component()(
        key=key,
        data={"blocks": [asdict(b) for b in blocks], "clickable": True, "selected": chosen},
        default={"selected": selected},
        on_selected_change=lambda: None,
    )
    value = result.selected
    return int(value) if value is not None else None
