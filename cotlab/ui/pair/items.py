"""The items of two runs: filters, a list of links, and the chosen item's two chains."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from cotlab.analysis.compare_outcomes import (
    OUTCOMES,
    ItemPair,
    count_outcomes,
    default_measure,
    filter_item_pairs,
    list_item_pairs,
)
from cotlab.analysis.compare_verdict import PairVerdict
from cotlab.analysis.verdict.measures import MEASURES, MeasureName
from cotlab.analysis.verdict.pair_differences import points_text
from cotlab.analysis.verdict.wording import percent_number
from cotlab.analysis.view import RunView
from cotlab.ui import cached
from cotlab.ui.address import known_param, write_address
from cotlab.ui.item.answers import ListedAnswer, listed_answers
from cotlab.ui.item.item_list import (
    ROWS_PER_LIST,
    Query,
    address_query,
    chips_data,
    list_sources,
    query_href,
    search_text,
    sent_query,
)
from cotlab.ui.item.reader_data import mode_labels
from cotlab.ui.label.in_place import render_label_form
from cotlab.ui.pair.chains import (
    ChainSide,
    load_side,
    pair_data,
    side_modes,
    written_chain,
)
from cotlab.ui.text import shorten

_FOLDER = Path(__file__).parent
_SUITE_ORDER = "suite"
_COMPONENT_KEY = "pair-items"
_CHOICE_PARAMS = ("item", "show", "q", "sort", "effect", "chain")
"""What of the address a choice here changes."""


@st.fragment
def render_item_pairs(
    base_row: RunView,
    other_row: RunView,
    names: tuple[str, str],
    result: PairVerdict,
) -> None:
    """Show the items of two runs, and the chains of the one that the address names."""
    measures = [entry.measure for entry in result.differences]
    sort = known_param("sort", (*measures, _SUITE_ORDER))
    measure = next((name for name in measures if name == sort), None) or default_measure(
        result.differences
    )
    pairs = _cached_pairs(base_row, other_row, measure, result)
    if not pairs:
        st.info("The two runs share no item with the same question.")
        return
    outcome = known_param("show", OUTCOMES)
    search = search_text()
    by_difference = measure is not None and sort != _SUITE_ORDER
    rows = filter_item_pairs(pairs, outcome, search, by_difference=by_difference)
    links: list[Query] = []
    data = _list_data(pairs, rows, outcome, search, links)
    data |= _sort_data(result, measure if by_difference else None, links)
    chosen, note = _chosen_pair(pairs, rows)
    position = next((i for i, pair in enumerate(rows) if pair == chosen), None)
    data |= _page_data(rows, position, chosen, (base_row, other_row), measure, links)
    data["note"] = note
    data["pair"] = None
    if chosen is not None:
        data["pair"] = _pair_content(base_row, other_row, names, chosen, measure, links)
    data["hrefs"] = [query_href("compare", query) for query in links]
    _items_component()(key=_COMPONENT_KEY, data=data, on_choice_change=_store_choice)
    if chosen is not None:
        _render_label_forms((base_row, other_row), names, chosen)


def _render_label_forms(
    run_rows: tuple[RunView, RunView], names: tuple[str, str], pair: ItemPair
) -> None:
    with st.container(horizontal=True, horizontal_alignment="right"):  # below the chains
        for row, name in zip(run_rows, names, strict=True):
            item = cached.load_item(row.suite, pair.item_id)
            render_label_form(row, item, f"Label the chain of {name}")


def _store_choice() -> None:
    """Write into the address what the component sent: a link's query, or a text to search for."""
    query = sent_query(_COMPONENT_KEY, _CHOICE_PARAMS)
    if query is not None:
        write_address(query, preserved=())


def _link(links: list[Query], **changes: str | None) -> int:
    links.append(address_query(**changes))
    return len(links) - 1


def _cached_pairs(
    base_row: RunView,
    other_row: RunView,
    measure: MeasureName | None,
    result: PairVerdict,
) -> tuple[ItemPair, ...]:
    keys = [(row.id, row.revision) for row in (base_row, other_row)]
    return _pairs_at_revision(keys[0], keys[1], measure, cached.validated_at(), result)


@cached.cache_by_store(64, "Reading items", copies_results=False)
def _pairs_at_revision(
    base: tuple[str, int],
    other: tuple[str, int],
    measure: MeasureName | None,
    validated_at: int,
    _result: PairVerdict,
) -> tuple[ItemPair, ...]:
    return list_item_pairs(
        cached.store(),
        base[0],
        other[0],
        _result.comparison,
        _result.differences,
        measure,
        _unpaired_answers_text(_result),
    )


def _unpaired_answers_text(result: PairVerdict) -> str | None:
    """Return why right and wrong answers of the two runs are not paired; None where they are."""
    if result.comparison is None:
        return "right and wrong are not paired"
    how = result.unpaired.get("wrong")
    return None if how is None else f"right and wrong are not paired: judged {how}"


def _list_data(
    pairs: Sequence[ItemPair],
    rows: Sequence[ItemPair],
    outcome: str | None,
    search: str,
    links: list[Query],
) -> dict[str, Any]:
    counts = count_outcomes(pairs)
    chips = [
        ("All", None, len(pairs), ""),
        *((name.capitalize(), name, n, "") for name, n in counts.items()),
    ]
    has_no_outcome = counts["cannot be told"] == len(pairs)
    if has_no_outcome:
        chips = chips[:1]  # nothing to choose among; the reason stands below the list
    reasons = (
        dict.fromkeys(pair.reason for pair in rows if pair.reason is not None)
        if outcome == "cannot be told" or has_no_outcome
        else {}
    )
    return {
        "chips": chips_data(chips, outcome, links),
        "search_label": "Search questions",
        "search": search,
        "reasons": [str(reason) for reason in list(reasons)[:5]],
    }


def _sort_data(
    result: PairVerdict, measure: MeasureName | None, links: list[Query]
) -> dict[str, Any]:
    options = [
        {
            "label": f"Largest first: {MEASURES[entry.measure].short}",
            "selected": entry.measure == measure,
            "link": _link(links, sort=entry.measure),
        }
        for entry in result.differences
        if entry.difference.point is not None
    ]
    options.append(
        {
            "label": "Order of the suite",
            "selected": measure is None,
            "link": _link(links, sort=_SUITE_ORDER),
        }
    )
    return {"sorts": options}


def _chosen_pair(
    pairs: Sequence[ItemPair], rows: Sequence[ItemPair]
) -> tuple[ItemPair | None, str]:
    """Return the pair that the address names, else the first of the list, and what to say."""
    requested = st.query_params.get("item")
    chosen = next((pair for pair in pairs if pair.item_id == requested), None)
    if chosen is not None:
        return chosen, ""
    note = ""
    if requested is not None:
        note = f"The two runs share no item {shorten(requested)}; the first one is here."
    return (rows[0] if rows else None), note


def _page_data(
    rows: Sequence[ItemPair],
    position: int | None,
    chosen: ItemPair | None,
    run_rows: tuple[RunView, RunView],
    measure: MeasureName | None,
    links: list[Query],
) -> dict[str, Any]:
    start = ROWS_PER_LIST * ((position or 0) // ROWS_PER_LIST)
    visible = rows[start : start + ROWS_PER_LIST]
    item_ids = tuple(pair.item_id for pair in visible)
    answers = [listed_answers(row.id, row.revision, item_ids) for row in run_rows]
    neighbours = {}
    if position is not None:
        for key, index in (("k", position - 1), ("j", position + 1)):
            if 0 <= index < len(rows):
                neighbours[key] = _link(links, item=rows[index].item_id)
    pages = {}
    for name, index in (("Earlier", start - ROWS_PER_LIST), ("Later", start + ROWS_PER_LIST)):
        if 0 <= index < len(rows):
            pages[name] = _link(links, item=rows[index].item_id)
    last = start + len(visible)
    return {
        "rows": [
            {
                "number": pair.number,
                "question": shorten(pair.question, 160),
                "answers": [_answer_cell(side.get(pair.item_id)) for side in answers],
                "delta": "" if pair.difference is None else points_text(pair.difference),
                "outcome": pair.outcome,
                "selected": pair == chosen,
                "link": _link(links, item=pair.item_id),
            }
            for pair in visible
        ],
        "part": f"{start + 1} to {last} of {len(rows)}" if rows else "No item matches.",
        "heads": [
            "answers as asked" if measure == "moved" else "both answers",
            _delta_head(measure),
        ],
        "neighbours": neighbours,
        "pages": pages,
    }


def _delta_head(measure: MeasureName | None) -> str:
    """Return the head of the column of differences; "" without a measure."""
    return "" if measure is None else f"{MEASURES[measure].short}, points"


def _answer_cell(answer: ListedAnswer | None) -> dict[str, str]:
    return dict((answer or ListedAnswer("n/a", "unknown"))._asdict())


def _pair_content(
    base_row: RunView,
    other_row: RunView,
    names: tuple[str, str],
    pair: ItemPair,
    measure: MeasureName | None,
    links: list[Query],
) -> dict[str, Any]:
    model_chain = known_param("chain", ("own",)) == "own"
    sides = [
        load_side(name, row, pair.item_id, model_chain=model_chain)
        for name, row in zip(names, (base_row, other_row), strict=True)
    ]
    modes = side_modes(sides)
    mode = known_param("effect", modes) or (modes[0] if modes else None)
    content = pair_data(sides[0], sides[1], mode)
    content["place"] = f"Item {pair.number} · {shorten(pair.item_id)}"
    content["outcome"] = pair.reason or pair.outcome
    content["value"] = _value_text(pair, measure)
    content["modes"] = [
        {
            "text": mode_labels(name).tab,
            "selected": name == mode,
            "link": _link(links, effect=name, item=pair.item_id),
        }
        for name in modes
    ]
    content["chains"] = _chain_choices(sides, model_chain, pair, links)
    return content


def _chain_choices(
    sides: Sequence[ChainSide], model_chain: bool, pair: ItemPair, links: list[Query]
) -> list[dict[str, Any]]:
    """Return links between the chains that were measured and those that the models wrote."""
    has_other = model_chain or any(
        not side.is_model_chain and written_chain(side.row, side.item, side.scores)
        for side in sides
    )
    if not has_other:
        return []
    choices = (("Chains as measured", None), ("Each model's own chain", "own"))
    return [
        {
            "text": text,
            "selected": (value == "own") == model_chain,
            "link": _link(links, chain=value, item=pair.item_id),
        }
        for text, value in choices
    ]


def _value_text(pair: ItemPair, measure: MeasureName | None) -> str:
    if measure is None:
        return ""
    values = ["n/a" if v is None else f"{percent_number(v)} %" for v in (pair.base, pair.other)]
    return f"{MEASURES[measure].compared}: {' and '.join(values)}"


@cache
def _items_component() -> Any:
    list_css, list_js = list_sources()
    return st.components.v2.component(
        "cotlab_pair_items",
        html='<div class="pair-items head"></div>',
        css=list_css + (_FOLDER / "items.css").read_text("utf-8"),
        js=list_js + (_FOLDER / "items.js").read_text("utf-8"),
    )
