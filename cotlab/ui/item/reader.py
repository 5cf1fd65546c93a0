"""What happens to an answer when one step of its chain changes: the chain, read step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from cotlab.analysis.tables.step_effects import (
    given_chain,
    measured_modes,
    mode_scores,
    step_effects,
    strongest_step,
)
from cotlab.analysis.tables.step_replies import reply_pairs, step_replies
from cotlab.analysis.view import RunView
from cotlab.core.types import Item
from cotlab.ui import cached
from cotlab.ui.address import write_address
from cotlab.ui.item.chain import chain_sources
from cotlab.ui.item.reader_data import ChainReading, reader_data
from cotlab.ui.item.step_address import requested_step, step_changes

_MODULE_FOLDER = Path(__file__).parent


def read_chain(
    scores: pd.DataFrame, steps: Sequence[str], temperature: float
) -> ChainReading | None:
    """Return the reading that the address asks for; None where nothing was measured.

    ``temperature`` is that of the run's replies. Without a mode in the address it is the first that
    was measured, "corrupt" before others; without a step the one with the largest effect.
    """
    modes = measured_modes(scores)
    if not modes or not steps:
        return None
    requested_mode = st.query_params.get("change")
    notes = []
    mode = modes[0]
    if requested_mode in modes:
        mode = str(requested_mode)
    elif requested_mode is not None:
        notes.append("The change that the address asks for was not measured here.")
    rows = mode_scores(scores, mode)
    effects = step_effects(rows, len(steps))
    step = strongest_step(effects)
    try:
        addressed_step = requested_step(len(steps))
    except ValueError:
        notes.append("The chain has no step as the address asks for.")
    else:
        step = step if addressed_step is None else addressed_step
    pairs = reply_pairs(rows, step)
    keys = dict.fromkeys(
        [changed for _, changed, _ in pairs]
        + [key for keys in rows[rows["step"] == step]["evidence"] for key in keys]
    )
    n_changed = len({changed for _, changed, _ in pairs})
    return ChainReading(
        mode=mode,
        modes=tuple(modes),
        steps=tuple(steps),
        step=step,
        effects=tuple(effects),
        keys=tuple(keys),
        n_changed_requests=n_changed,
        note=" ".join(notes),
        temperature=temperature,
    )


def render_reader(
    row: RunView,
    item: Item,
    scores: pd.DataFrame,
    reading: ChainReading,
    marks: Mapping[int, str] | None = None,
    targets: Mapping[str, str] | None = None,
) -> None:
    """Show a chain with the effect of each step, and what is behind the chosen one.

    Parameters
    ----------
    row, item, scores
        The run, the item and its scores.
    reading : ChainReading
        What of it is shown.
    marks : mapping of int to str, optional
        What raters say of a step, from 0.
    targets : mapping of str to str, optional
        Further keys: the key of the container whose link or expander each activates.
    """
    exchanges = cached.logged_exchanges(reading.keys)
    responses = cached.logged_responses(reading.keys)
    plan = row.plan
    rows = mode_scores(scores, reading.mode)
    pairs = reply_pairs(rows, reading.step)
    changed_request = exchanges.get(pairs[0][1], (None, None))[0] if pairs else None
    given = None
    if pairs:
        given = given_chain(
            changed_request,
            item.question,
            reading.steps,
            reading.step,
            reading.mode,
            plan.subject.form,
        )
    replies = step_replies(
        item,
        plan.subject,
        reading.steps,
        reading.step,
        pairs,
        exchanges,
        responses,
        rewrites_chain=reading.mode == "corrupt",
    )
    # one key a run, so that the next item replaces this one's chain in place: two readers beside
    # each other, even for a moment, would both hear the keys
    key = f"reader-{row.id}"
    _reader_component()(
        key=key,
        data=reader_data(reading, given, replies, marks or {}, targets or {}),
        on_choice_change=lambda: _store_choice(key),
    )


def _store_choice(key: str) -> None:
    """Write the choice that the component sent into the address."""
    choice = st.session_state[key].get("choice") or {}
    mode, step = choice.get("mode"), choice.get("step")
    if isinstance(mode, str) and isinstance(step, int):
        write_address({"change": mode, **step_changes(step)})


@cache
def _reader_component() -> Any:
    rows_css, rows_js = chain_sources()
    return st.components.v2.component(
        "cotlab_reader",
        html='<div class="reader"></div>',
        css=rows_css + (_MODULE_FOLDER / "reader.css").read_text("utf-8"),
        js=rows_js + (_MODULE_FOLDER / "reader.js").read_text("utf-8"),
    )
