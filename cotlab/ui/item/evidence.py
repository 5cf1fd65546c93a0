"""Links to the evidence of a number: one score's requests, one request, and the pages of a run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from cotlab.analysis.view import RunView
from cotlab.ui.components import page_link
from cotlab.ui.linked import show_linked_frame
from cotlab.ui.places import PageLink, run_link

NO_REQUEST_TEXT = "No request was made for it: it is computed from the texts."


def score_id(metric: str, facet: str, step: Any = None, sample: Any = 0) -> str:
    """Return a score's name in an address: ``feature feature=C,profile=phase3``; steps from 0."""
    segments = [metric, ",".join(f"{name}={value}" for name, value in json.loads(facet).items())]
    segments += [] if step is None or pd.isna(step) else [f"step={int(step)}"]
    return " ".join(
        [segment for segment in segments if segment]
        + ([f"draw={int(sample)}"] if int(sample) else [])
    )


def score_ids(scores: pd.DataFrame) -> list[str]:
    """Return the name in an address of each score; a part of the composite has no step or draw."""
    scores = scores.assign(
        **{name: value for name, value in _DEFAULTS.items() if name not in scores}
    )
    columns = (scores[name] for name in ("metric", "facet", "step", "sample"))
    return [score_id(*map(_na_to_none, values)) for values in zip(*columns, strict=True)]


_DEFAULTS = {"step": None, "sample": 0}


def _na_to_none(value: Any) -> Any:
    return None if value is pd.NA else value


def request_keys(scores: pd.DataFrame) -> list[str]:
    """Return the keys of the requests behind scores, each once."""
    return list(dict.fromkeys(key for score_keys in scores["evidence"] for key in score_keys))


def render_requests_link(
    run: RunView, item_id: str, label: str = "Requests and replies", **selection: str
) -> None:
    """Show a link to an item's requests, or to those of one ``score`` or ``request``."""
    link = run_link(run.id, "items", item=item_id, **selection)
    page_link(link.place, label, "fact_check", link.query)


def render_score_table(
    run: RunView,
    scores: pd.DataFrame,
    frame: pd.DataFrame,
    *,
    title: str,
    key: str,
    number_names: Iterable[str] = ("value",),
    links: Mapping[str, Sequence[PageLink]] | None = None,
) -> None:
    """Show a table with a row a score; its last column links to the requests behind the score.

    Parameters
    ----------
    run : RunView
    scores : DataFrame
        The scores, with item_id and evidence.
    frame : DataFrame
        Texts and numbers of each.
    title, key : str
        Accessible name and key of the table.
    number_names : iterable of str
        Columns that are aligned at the right.
    links : mapping, optional
        Links of other columns.
    """
    counts = scores["evidence"].map(len)
    names = zip(scores["item_id"], score_ids(scores), counts, strict=True)
    requests = [
        run_link(run.id, "items", item=item, score=name) if n else None for item, name, n in names
    ]
    show_linked_frame(
        title,
        frame.assign(requests=[str(n or "none") for n in counts]),
        {**(links or {}), "requests": requests},
        key=key,
        number_names=[*number_names, "requests"],
        help_by_name={"requests": "None: it is computed from the texts."},
    )
