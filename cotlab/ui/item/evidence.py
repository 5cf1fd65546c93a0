"""Links to the evidence of a number: one score's requests, one request, and the pages of a run."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import pandas as pd
import streamlit as st

from cotlab.analysis.tables.reliability import composite_components
from cotlab.analysis.view import RunView
from cotlab.core.resources import page_path
from cotlab.core.types import Plan
from cotlab.metrics.composite import SCORER_BY_COMPONENT, composite
from cotlab.ui.linked import PageLink
from cotlab.ui.text import escape_markdown

COMPONENT_DETAILS = {
    "C": "the paraphrases' answers behind consistency (C)",
    "R": "the perturbed steps behind robustness (R)",
    "V": "the links behind verification (V)",
    "D": "the clusters behind diversity (D)",
    "F": "the flagged spans behind red flags (F)",
}
"""Detail that a component's own scorer stores, and the composite does not."""
ITEM_TAB_LABEL = "One item"
ITEM_VIEWS = {"reliability": ITEM_TAB_LABEL, "robustness": ITEM_TAB_LABEL, "steps": "One chain"}
"""Label of the tab of one item on each page that has one."""
NO_LINK_TEXT = "none"
NO_REQUEST_TEXT = "No request was made for it: it is computed from the texts."


def make_scorer_filter(*names: str) -> Callable[[Plan], bool]:
    """Return a predicate: whether a plan has one of these scorers."""
    return lambda plan: any(spec.name in names for spec in plan.scorers)


def has_robustness(plan: Plan) -> bool:
    """Return whether a plan measures robustness, by its own scorer or by the composite."""
    return make_scorer_filter("robustness", "causal")(plan) or "R" in composite_components(plan)


RUN_PAGES: Mapping[str, tuple[str, str, Callable[[Plan], bool]]] = {
    "steps": ("Steps", "stairs", make_scorer_filter("ablation")),
    "reliability": (
        "Reliability",
        "shield",
        make_scorer_filter("composite", *SCORER_BY_COMPONENT.values()),
    ),
    "robustness": ("Robustness", "vibration", has_robustness),
    "mediation": ("Mediation", "conversion_path", make_scorer_filter("mediation")),
}
"""Label, icon and predicate (which plans it can show) of each page that analyses a run."""


class RunPageLink(NamedTuple):
    """A link to a page that shows a run."""

    label: str
    """The page's name."""
    icon: str
    """Name of its Material symbol."""
    link: PageLink
    """The page with its query."""


def run_page_links(row: RunView, item_id: str | None = None) -> list[RunPageLink]:
    """Return a link to every page that can show this run, or one of its items."""
    plan = row.plan
    links = []
    for page, (label, icon, can_show) in RUN_PAGES.items():
        if can_show(plan):
            query = {"run": row.id}
            if item_id is not None:
                query["item"] = item_id
                if page in ITEM_VIEWS:
                    query["view"] = ITEM_VIEWS[page]
            links.append(RunPageLink(label, icon, PageLink(page, tuple(query.items()))))
    return links


def score_id(metric: str, facet: str, step: Any = None, sample: Any = 0) -> str:
    """Return a score's name in an address: ``feature feature=C,profile=phase3``; steps from 0."""
    segments = [metric, ",".join(f"{name}={value}" for name, value in json.loads(facet).items())]
    segments += [] if step is None or pd.isna(step) else [f"step={int(step)}"]
    return " ".join(
        [segment for segment in segments if segment]
        + ([f"draw={int(sample)}"] if int(sample) else [])
    )


def score_ids(scores: pd.DataFrame) -> list[str]:
    """Return the name in an address of each score."""
    columns = (scores[name] for name in ("metric", "facet", "step", "sample"))
    return [score_id(*map(_na_to_none, values)) for values in zip(*columns, strict=True)]


def _na_to_none(value: Any) -> Any:
    return None if value is pd.NA else value


def request_keys(scores: pd.DataFrame) -> list[str]:
    """Return the keys of the requests behind scores, each once."""
    return list(dict.fromkeys(key for score_keys in scores["evidence"] for key in score_keys))


def requests_address(row: RunView, item_id: str, **selection: str) -> tuple[str, dict[str, str]]:
    """Return page and query of an item's requests, or of those of one ``score`` or ``request``."""
    return page_path("item"), {"run": row.id, "item": item_id, **selection}


def render_requests_link(
    row: RunView, item_id: str, label: str = "Requests and replies", **selection: str
) -> None:
    """Show a link to an item's requests, or to those of one ``score`` or ``request``."""
    path, query = requests_address(row, item_id, **selection)
    st.page_link(path, label=label, icon=":material/fact_check:", query_params=query)


def requests_cell(row: RunView, item_id: str, score: str, keys: Any) -> str | None:
    """Return the cell of a table that links a score to its requests; None where it has none."""
    _, query = requests_address(row, item_id, score=score)
    return f"/item?{urlencode(query, quote_via=quote, safe='')}" if len(keys) else None


def render_linked_table(
    table: Any, key: str, column_config: Mapping[str, Any] | None = None, height: Any = "content"
) -> None:
    """Show a table whose column "behind it" links to requests and "why n/a" has reasons."""
    st.dataframe(
        table,
        hide_index=True,
        key=key,
        height=height,
        placeholder=NO_LINK_TEXT,
        column_config=EVIDENCE_COLUMN_CONFIG | dict(column_config or {}),
    )


RIGHT_ALIGNED_COLUMN = st.column_config.TextColumn(alignment="right")
EVIDENCE_COLUMN_CONFIG = {
    "behind it": st.column_config.LinkColumn(
        "evidence",
        display_text="requests",
        width="small",
        help="None: no request was made, it is computed from the texts.",
    ),
    "value": RIGHT_ALIGNED_COLUMN,
    "why n/a": st.column_config.TextColumn("reason", width="large"),
}


def composite_only_components(row: RunView, *component_names: str) -> list[str]:
    """Return the components that only the composite measured, without their own scorer's detail."""
    plan = row.plan
    return [
        component
        for component in composite_components(plan)
        if (not component_names or component in component_names)
        and not make_scorer_filter(SCORER_BY_COMPONENT[component])(plan)
    ]


def render_missing_detail_help(row: RunView, *component_names: str) -> None:
    """Show what the composite alone does not store, and how to add it; nothing where all is."""
    composite_only_names = composite_only_components(row, *component_names)
    if not composite_only_names:
        return
    composite_spec = next(
        composite_spec for composite_spec in row.plan.scorers if composite_spec.name == "composite"
    )
    profile = str(composite_spec.params.get("profile", composite.options["profile"]))
    config_path = Path(str(row.output or "")) / "run.yaml"
    command = (
        "cotlab run --config"
        f" {shlex.quote(str(config_path) if config_path.is_file() else 'run.yaml')} --profile"
        f" {profile}"
    )
    st.info(
        "This run has the composite without the scorers of its components: it has their numbers,"
        f" but not {_component_details_text(composite_only_names)}. The profile"
        f" {escape_markdown(profile)} adds those scorers; requests in the log are not sent again."
    )
    st.code(command, language=None, wrap_lines=True)
    st.page_link(
        page_path("new_run"),
        label="Clone with the components' scorers",
        icon=":material/content_copy:",
        query_params={"from": row.id, "profile": profile},
    )


def _component_details_text(component_names: list[str]) -> str:
    details = [
        COMPONENT_DETAILS[component]
        for component in sorted(component_names, key=list(COMPONENT_DETAILS).index)
    ]
    return details[0] if len(details) == 1 else f"{', '.join(details[:-1])} and {details[-1]}"
