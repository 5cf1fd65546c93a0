"""Links to the evidence of a number: one score's requests, one request, and the pages of a run."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pandas as pd
import streamlit as st

from cotlab.analysis.tables.reliability import composite_components
from cotlab.core.resources import page
from cotlab.core.types import Plan
from cotlab.metrics.composite.scorer import SCORER_OF, composite
from cotlab.ui import cached
from cotlab.ui.text import as_code

COMPONENT_DETAILS = {
    "C": "the paraphrases' answers behind consistency (C)",
    "R": "the perturbed steps behind robustness (R)",
    "V": "the links behind verification (V)",
    "D": "the clusters behind diversity (D)",
    "F": "the flagged spans behind red flags (F)",
}
"""Detail that a component's own scorer stores, and the composite does not."""
ITEM_VIEW = "One item"
NO_LINK = "none"
NONE = "No request was made for it: it is computed from the texts."


def has_scorer(*names: str) -> Callable[[Plan], bool]:
    """Return a predicate: whether a plan has one of these scorers."""
    return lambda plan: any(spec.name in names for spec in plan.scorers)


def has_robustness(plan: Plan) -> bool:
    """Return whether a plan measures robustness, by its own scorer or by the composite."""
    return has_scorer("robustness", "causal")(plan) or "R" in composite_components(plan)


PAGES: Mapping[str, tuple[str, str, Callable[[Plan], bool]]] = {
    "steps": ("Steps", "stairs", has_scorer("ablation")),
    "reliability": ("Reliability", "shield", has_scorer("composite", *SCORER_OF.values())),
    "robustness": ("Robustness", "vibration", has_robustness),
    "mediation": ("Mediation", "conversion_path", has_scorer("mediation")),
}
"""Label, icon and predicate (which plans it can show) of each page that analyses a run."""


def render_run_links(row: dict[str, Any], item_id: str | None = None) -> None:
    """Show a link to every page that can show this run, or one of its items."""
    plan = cached.run_plan(row["id"])
    of = {} if item_id is None else {"item": item_id}
    for name, (label, icon, shows) in PAGES.items():
        if shows(plan):
            view = {"view": ITEM_VIEW} if of and name in ("reliability", "robustness") else {}
            st.page_link(
                page(name),
                label=label,
                icon=f":material/{icon}:",
                query_params={"run": row["id"], **of, **view},
            )


def score_id(metric: str, facet: str, step: Any = None, sample: Any = 0) -> str:
    """Return a score's name in an address: ``feature feature=C,profile=phase3``; steps from 0."""
    pieces = [metric, ",".join(f"{k}={v}" for k, v in json.loads(facet).items())]
    pieces += [] if step is None or pd.isna(step) else [f"step={int(step)}"]
    return " ".join(
        [part for part in pieces if part] + ([f"draw={int(sample)}"] if int(sample) else [])
    )


def score_ids(scores: pd.DataFrame) -> list[str]:
    """Return the name in an address of each score."""
    columns = (scores[name] for name in ("metric", "facet", "step", "sample"))
    return [score_id(*map(_plain, values)) for values in zip(*columns, strict=True)]


def _plain(value: Any) -> Any:
    return None if value is pd.NA else value


def requests_of(row: dict[str, Any], item_id: str, score: str) -> dict[str, str]:
    """Return the query of the page Item that shows the requests of one score."""
    return {"run": row["id"], "item": item_id, "score": score}


def render_request_link(
    row: dict[str, Any], item_id: str, key: str, label: str = "Request and reply"
) -> None:
    """Show a link to one request of an item and its reply."""
    where = {"run": row["id"], "item": item_id, "request": key}
    st.page_link(page("item"), label=label, icon=":material/fact_check:", query_params=where)


def requests_url(row: dict[str, Any], item_id: str, score: str) -> str:
    """Return the address of one score's requests, for the cell of a table."""
    return f"/item?{urlencode(requests_of(row, item_id, score), quote_via=quote, safe='')}"


def requests_cell(row: dict[str, Any], item_id: str, score: str, keys: Any) -> str | None:
    """Return the cell that links a score to its requests; None where it has none."""
    return requests_url(row, item_id, score) if len(keys) else None


LINK = st.column_config.LinkColumn(
    "evidence",
    display_text="requests",
    width="small",
    help="None: no request was made, it is computed from the texts.",
)


def missing_components(row: dict[str, Any], *only: str) -> list[str]:
    """Return the components that only the composite measured, without their own scorer's detail."""
    plan = cached.run_plan(row["id"])
    return [
        part
        for part in composite_components(plan)
        if (not only or part in only) and not has_scorer(SCORER_OF[part])(plan)
    ]


def render_how_to_add(row: dict[str, Any], *only: str) -> None:
    """Show what the composite alone does not store, and how to add it; nothing where all is."""
    missing = missing_components(row, *only)
    if not missing:
        return
    spec = next(spec for spec in cached.run_plan(row["id"]).scorers if spec.name == "composite")
    profile = str(spec.params.get("profile", composite.options["profile"]))
    file = Path(str(row["output"] or "")) / "run.yaml"
    command = (
        f"cotlab run --config {shlex.quote(str(file) if file.is_file() else 'run.yaml')} --profile"
        f" {profile}"
    )
    st.info(
        "This run has the composite without the scorers of its components: it has their"
        f" numbers, but not {_listed(missing)}. The profile {as_code(profile)} adds those"
        " scorers; requests in the log are not sent again."
    )
    st.code(command, language="bash", wrap_lines=True)
    st.page_link(
        page("new_run"),
        label="Clone with the components' scorers",
        icon=":material/content_copy:",
        query_params={"from": row["id"], "profile": profile},
    )


def _listed(missing: list[str]) -> str:
    named = [COMPONENT_DETAILS[part] for part in sorted(missing, key=list(COMPONENT_DETAILS).index)]
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"
