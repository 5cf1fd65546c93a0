"""Every figure that a run can have, by name, and the table that it is drawn from."""

from __future__ import annotations

from collections.abc import Mapping

from cotlab.analysis.tables.declare import (
    DEFAULT_CHOICE,
    FigureChoice,
    FigureData,
    FigureTable,
    MissingFigure,
    RecordedChoice,
)
from cotlab.analysis.view import RunView
from cotlab.core.registry import Registry

_NAMES = (
    ("answer_change", "answer_change_scale"),
    ("run", "ccs_by_position modes_by_metric rrr_by_mode"),
    ("item", "ccs_ranking"),
    ("run", "reliability_parts signal_correlation diagnosis_rates"),
    ("item", "item_parts verification_links chain_cosines"),
    ("run", "answer_changes_by_perturbation robustness_by_perturbation perturbation_cells"),
    ("item", "item_cells"),
    ("run", "cmi_density drop_density span_heatmap span_heatmap_sources layer_profile"),
    ("run", "mediation_indices"),
    ("item", "item_density drops_by_donor entropy_by_step"),
    ("several_runs", "unfaithful_rates threshold_sweep unfaithful_by_category"),
    ("several_runs", "classifier_agreement judge_by_epoch chain_size process_result"),
    ("several_runs", "paired_differences"),
    ("several_runs", "headline_differences"),
    ("run", "chain_lengths label_agreement validation_doses"),
    ("drift", "feature_distributions drift_scores drift_over_time"),
    ("calibration", "reliability_diagram score_histogram calibrator_curves calibrator_comparison"),
    ("calibration", "threshold_volumes"),
    ("evaluation", "signal_aurocs"),
)
"""Module of this package, and the figures whose tables it makes, in the order of a list."""
FIGURE_TABLES = Registry(
    "figure of a run",
    {
        name: f"cotlab.analysis.tables.{module}:{name}"
        for module, names in _NAMES
        for name in names.split()
    },
    "cotlab.figure_tables",
)
"""Name to a `FigureTable`. A name is that of its figure, with a word more where one figure shows
two things."""


def make_figure_table(
    view: RunView, name: str, choice: FigureChoice = DEFAULT_CHOICE
) -> FigureData | MissingFigure:
    """Return the table of one figure of a run, or why the run does not have it.

    Raises
    ------
    UnknownName
        If no figure has this name.
    ConfigError
        If the run does not have what was chosen.
    """
    table_maker: FigureTable = FIGURE_TABLES[name]
    recorded_choice = RecordedChoice(*choice)
    result = table_maker(view, recorded_choice)
    if isinstance(result, MissingFigure):
        return result
    return result._replace(options=recorded_choice.options)


def make_all_figure_tables(
    view: RunView, choice: FigureChoice = DEFAULT_CHOICE
) -> Mapping[str, FigureData | MissingFigure]:
    """Return every figure by name, with its table or the reason for having none."""
    return {name: make_figure_table(view, name, choice) for name in FIGURE_TABLES}
