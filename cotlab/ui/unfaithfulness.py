"""The tab Unfaithfulness of a run: rates by classifier and category, and judges' scores."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import streamlit as st

from cotlab.analysis.paired import SCORE_METRIC
from cotlab.analysis.tables.declare import FigureChoice, FigureData
from cotlab.analysis.tables.several_runs import graded_classifiers
from cotlab.analysis.tables.unfaithfulness import (
    JUDGE_METRIC,
    PROCESS_METRIC,
    RATIO_METRIC,
    RESULT_METRIC,
    SIZE_UNITS,
    UNFAITHFULNESS_SCORERS,
)
from cotlab.analysis.verdict.validated import (
    TESTED_TITLE,
    UNTESTED,
    classifier_record,
    load_classifier_validation,
)
from cotlab.analysis.view import RunView
from cotlab.figures.style import ALL_CLASSIFIERS
from cotlab.store.database import store_folder
from cotlab.ui import cached, charts, components
from cotlab.ui.linked import show_linked
from cotlab.ui.more import render_more
from cotlab.ui.pickers import pick_options, run_labels, select_option, without_archived
from cotlab.ui.run_notes import render_category_split
from cotlab.ui.text import escape_markdown
from cotlab.ui.verdict import record_link
from cotlab.ui.verdict_number import render_verdict_number


class UnfaithfulnessView(NamedTuple):
    """What the tab Unfaithfulness shows."""

    runs: list[RunView]
    """The run of the tab, and those that are shown beside it."""
    classifier: str | None
    """The chosen classifier; "all" for all of them, None where there is none."""
    classifiers: list[str]
    """The classifiers that have scores."""

    @property
    def choice(self) -> FigureChoice:
        """What each figure shows."""
        return FigureChoice(runs=",".join(run.id for run in self.runs))

    @property
    def chosen_classifiers(self) -> list[str]:
        """The chosen classifier, or all where all are chosen."""
        return self.classifiers if self.classifier == ALL_CLASSIFIERS else [str(self.classifier)]

    def show(self, name: str, classifier: str | None = None) -> FigureData | None:
        """Show a figure of the runs, of one classifier where it has one."""
        return charts.show(self.runs[0], name, self.choice._replace(classifier=classifier))


def render_unfaithfulness_tab(run: RunView) -> None:
    """Show how often the responses of a run, and of others beside it, are unfaithful."""
    view = select_unfaithfulness_runs(run)
    render_verdict_number(run.id)
    for row in view.runs:
        render_category_split(row, names_run=len(view.runs) > 1)
    if view.classifier is None:
        st.info("No chosen run has scores of a classifier: run the scorer unfaithfulness.")
    else:
        render_unfaithful_rates(view)
    render_more(
        "by threshold, by category, agreement of the classifiers, judge, and length of the chains",
        *([] if view.classifier is None else [partial(render_rates_in_detail, view)]),
        partial(render_judges, view),
        partial(render_chain_sizes, view),
    )
    render_unfaithfulness_notes(view)


def select_unfaithfulness_runs(run: RunView) -> UnfaithfulnessView:
    """Choose runs beside this one, and a classifier."""
    rows = without_archived(
        [row for row in cached.stored_runs() if cached.has_scorer(row, *UNFAITHFULNESS_SCORERS)],
        "run",
        "also",
    )
    others = {row.id: row for row in rows if row.id != run.id}
    also = pick_options(
        "Beside it",
        run_labels(list(others.values())),
        "also",
        (),
        help="Runs of other models, epochs or conditions. Rates on other items differ by them.",
    )
    view = UnfaithfulnessView([run, *(others[run_id] for run_id in also)], None, [])
    for row in view.runs[1:]:
        components.warn_if_partial(row)
    rates = cached.run_figure_table(run, "unfaithful_rates", view.choice)
    if not isinstance(rates, FigureData):
        return view
    names = rates.options["classifier"]
    labels = {name: name for name in names}
    if ALL_CLASSIFIERS in labels:
        labels[ALL_CLASSIFIERS] = "All side by side"
    classifier = select_option("Classifier", labels, "classifier")
    return view._replace(
        classifier=classifier, classifiers=[name for name in names if name != ALL_CLASSIFIERS]
    )


def render_unfaithful_rates(view: UnfaithfulnessView) -> None:
    """Show the rate of each run by the chosen classifier, or by all of them."""
    if unvalidated_text := _unvalidated_text(view.chosen_classifiers):
        st.markdown(escape_markdown(unvalidated_text))
    view.show("unfaithful_rates", view.classifier)
    _render_tested_classifiers(view.chosen_classifiers)
    components.show_cards(SCORE_METRIC, "unfaithful_rate")


def _unvalidated_text(classifiers: Sequence[str]) -> str:
    """Return which classifiers may not be believed; "" where all of them may."""
    known = load_classifier_validation(str(store_folder()), classifiers)
    unvalidated = [name for name, validation in known.items() if not validation.is_usable]
    if not unvalidated:
        return ""
    verb = "has" if len(unvalidated) == 1 else "have"
    names = ", ".join(unvalidated)
    return (
        f"{names} {verb} not been shown to tell models of known behaviour apart (table below the"
        " figure): draw no conclusion from that rate."
    )


def _render_tested_classifiers(classifiers: Sequence[str]) -> None:
    """Say of each classifier whether it tells models of known behaviour apart."""
    rows = [
        [
            {"text": name},
            {
                "text": known.text,
                "link": None if known == UNTESTED else record_link(classifier_record(name)),
            },
        ]
        for name, known in load_classifier_validation(str(store_folder()), classifiers).items()
    ]
    content = {
        "title": "What is known of each classifier",
        "columns": ({"title": "Classifier"}, {"title": TESTED_TITLE}),
        "rows": rows,
    }
    show_linked("table", content, key="tested-classifiers")


def render_rates_in_detail(view: UnfaithfulnessView) -> None:
    """Show the rate by threshold and by category, and how well the classifiers agree."""
    chosen = view.chosen_classifiers
    graded = graded_classifiers(cached.cached_run_view(view.runs[0]), view.choice.runs)
    st.header("Does the threshold matter?")
    if ungraded := [name for name in chosen if name not in graded]:
        st.caption(
            f"Classifier {escape_markdown(', '.join(ungraded))}: each score here is 0 or 1, so"
            " there is no threshold: every one above 0 gives the same rate."
        )
    for name in [name for name in chosen if name in graded][:1]:
        view.show("threshold_sweep", name)
    st.header("By category")
    view.show("unfaithful_by_category", chosen[0])
    st.header("Do the classifiers agree?")
    view.show("classifier_agreement")
    components.show_card("classifier_kappa")


def render_judges(view: UnfaithfulnessView) -> None:
    """Show the judges' scores, where the runs have any."""
    st.header("Judge")
    if view.show("judge_by_epoch") is None:
        st.caption("The scorer judge compares a base and a fine-tuned run, pair by pair.")
    else:
        components.show_cards(JUDGE_METRIC, "judge_order_effect", "judge_length_rho")


def render_chain_sizes(view: UnfaithfulnessView) -> None:
    """Show the length of the chains, and their ratio of process words to result words."""
    st.header("The chains")
    sizes = cached.run_figure_table(view.runs[0], "chain_size", view.choice)
    if isinstance(sizes, FigureData):
        labels = {name: SIZE_UNITS[name] for name in sizes.options["metric"]}
        metric = select_option("Length in", labels, "size")
        charts.show(view.runs[0], "chain_size", view.choice._replace(metric=metric))
        components.show_cards(*labels)
    view.show("process_result")
    components.show_cards(PROCESS_METRIC, RESULT_METRIC, RATIO_METRIC)


def render_unfaithfulness_notes(view: UnfaithfulnessView) -> None:
    """Explain the intervals, and link to the paired comparison."""
    st.caption(
        "Rates have Wilson intervals, lengths t, ratios log-t, all 95 % over items. Each"
        " item counts separately, which makes intervals too narrow where prompts repeat."
        " Runs whose intervals overlap may still differ: they share their items, so compare"
        " them in pairs."
    )
    if len(view.runs) > 1:
        is_base = ["base" in run.plan.tags.values() for run in view.runs]
        base = view.runs[is_base.index(True) if any(is_base) else 0]
        query = [("base", base.id), *(("other", r.id) for r in view.runs if r is not base)]
        components.page_link("compare", "Compare in pairs", "compare_arrows", query)
