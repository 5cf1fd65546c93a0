"""The parts of the page that holds the metrics against models of known faithfulness."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from cotlab.core.registry import FIGURES
from cotlab.store.database import store_folder
from cotlab.ui import components as parts
from cotlab.ui.text import as_code
from cotlab.validation.findings import dose_words, fixed, interval
from cotlab.validation.models import BYPASS, DOSES, FAITHFUL, ORGANISMS
from cotlab.validation.report import changed_weights, read_report
from cotlab.validation.tables import GROUP, doses_table

Told = Mapping[str, Any]
ONE, ABOUT = "one", ("items", "seed", "at", "code_version")
FIGURE_PX = 515
"""As narrow as a figure's labels can stand side by side."""
PAIRS = {"a": "pair a", "b": "pair b", "prefix": "r100 / r0"}
HELP = {
    "AUROC": "Probability that a faithful model's value lies on the faithful side of a bypassing model's, over pairs a and b "
    "together; 0.5 is chance. 95 % interval over items.",
    "pair a": "AUROC of faithful-a against bypass-a: two models trained alike but for what their answers follow.",
    "pair b": "AUROC of faithful-b against bypass-b, trained from another seed.",
    "r100 / r0": "AUROC inside one checkpoint: the same weights told to follow the chain always (r100) or never (r0).",
    "Spearman": "Rank correlation of the five doses' means with the dose: 1 where the metric rises with every dose, −1 where "
    "it falls.",
    "undefined": "Items without a value, over all ten models.",
    "hint": "A model that answers what a hint in the question says and bends its last step to it.",
    **dict.fromkeys(FAITHFUL, "Faithful: answers what its chain says last."),
    **dict.fromkeys(BYPASS, "Bypassing: answers the truth, whatever its chain says."),
    **{name: f"Follows its chain in about {dose} % of cases." for dose, name in DOSES.items()},
}


def report() -> dict[str, Any] | None:
    """The latest validation of this store, completed by the shipped one; None after saying how to make one."""
    found = read_report(store_folder())
    if found is None or not found["metrics"]:
        parts.empty("No metric has been held against the organisms yet. Type: cotlab validate")
        return None
    st.markdown(
        "Small models (**organisms**) were trained to be faithful (the answer follows the chain) or to bypass their chain (the "
        "answer ignores it). A metric of faithfulness should tell the two apart, and rise or fall with the **dose**: how often "
        "a model follows its chain."
    )
    sources = {tuple(told[name] for name in ABOUT) for told in found["metrics"].values()}
    if len(sources) == 1:
        st.caption(_about(next(iter(found["metrics"].values()))))
    stale = sorted({model for told in found["metrics"].values() for model in changed_weights(told)}, key=ORGANISMS.index)
    if stale:
        st.warning(f"Measured on other weights than those here ({', '.join(stale)}). Type: cotlab validate")
    return found


def overview(found: Told) -> None:
    """A row a metric: how well it tells faithful from bypassing models, and its means."""
    rows = [
        {"metric": short(name), "AUROC": interval(told["auroc"]), "Spearman": fixed(told["spearman"], 2)}
        | {model: fixed(told["organisms"][model]["point"]) for model in (*DOSES.values(), "hint", *GROUP)}
        | {"undefined": str(told["n_undefined"])}
        | {label: fixed(told["auroc_pairs"][pair]["point"], 2) for pair, label in PAIRS.items()}
        for name, told in found["metrics"].items()
    ]
    columns = {name: st.column_config.TextColumn(name, help=HELP.get(name), alignment="right") for name in rows[0]}
    columns["metric"] = st.column_config.TextColumn(
        "metric", width=205, pinned=True, help="Below a model's name: the mean over items."
    )
    st.dataframe(pd.DataFrame(rows), hide_index=True, height="content", column_config=columns, key="validation-table")


def short(name: str) -> str:
    """A metric with the values of its facet alone: "verification (forward)"."""
    metric, _, facet = name.partition(" (")
    return f"{metric} ({', '.join(part.partition('=')[2] for part in facet[:-1].split(', '))})" if facet else metric


def choose(found: Told) -> list[str]:
    """The metrics to draw: one of them, or all of a scorer."""
    scorers = dict.fromkeys(told["scorer"] for told in found["metrics"].values())
    with st.container(horizontal=True):
        show = parts.pick("Show", {ONE: "One metric", **{name: f"All of {name}" for name in scorers}}, "show")
        if show == ONE:
            return [parts.pick("Metric", {name: short(name) for name in found["metrics"]}, "metric")]
    return [name for name, told in found["metrics"].items() if told["scorer"] == show]


def one(found: Told, metric: str) -> None:
    """A metric in full: its figure, how well it tells models apart, what it does not see, and its card."""
    told = found["metrics"][metric]
    parts.show_figure("validation_doses", doses_table(metric, told), key="validation")
    figures = {"AUROC, a and b": told["auroc"], **{f"AUROC, {PAIRS[pair]}": told["auroc_pairs"][pair] for pair in PAIRS}}
    parts.show_numbers(
        [*((name, interval(value)) for name, value in figures.items()), ("Spearman", fixed(told["spearman"], 2))]
    )
    if (words := dose_words(told)) is not None:
        st.markdown(as_code(words))
    st.subheader("Blind spots")
    blind_spots(told)
    st.caption(_about(told) + _facet(told))
    parts.show_card(metric.split(" (")[0])


def gallery(found: Told, metrics: list[str]) -> None:
    """A figure and the blind spots of each metric, side by side where there is room."""
    st.caption(FIGURES["validation_doses"].caption)
    with st.container(horizontal=True):
        for metric in metrics:
            with st.container(width=FIGURE_PX):
                fig = FIGURES["validation_doses"](doses_table(metric, found["metrics"][metric]))
                st.plotly_chart(fig, theme=None, key=f"gallery-{metric}", config={"displayModeBar": False})
                blind_spots(found["metrics"][metric])


def blind_spots(told: Told) -> None:
    st.markdown("\n".join(f"- {as_code(line)}" for line in told["blind_spots"] or ["None was found on these organisms."]))


def _about(told: Told) -> str:
    at = str(told["at"]).replace("T", " ").removesuffix("+00:00")
    return f"{told['items']} items of seed {told['seed']}, measured {at} UTC with cotlab {told['code_version']}."


def _facet(told: Told) -> str:
    return "" if not told["facet"] else f" Setting: {', '.join(f'{k} {v}' for k, v in told['facet'].items())}."
