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

_RUN_MODULE, _ITEM_MODULE = "cotlab.analysis.tables.run", "cotlab.analysis.tables.item"
_SEVERAL_RUNS_MODULE = "cotlab.analysis.tables.several_runs"
_CALIBRATION_MODULE = "cotlab.analysis.tables.calibration"
FIGURE_TABLES = Registry(
    "figure of a run",
    {
        "answer_change_scale": "cotlab.analysis.tables.answer_change:ANSWER_CHANGE_SCALE",
        "ccs_by_position": f"{_RUN_MODULE}:CCS_BY_POSITION",
        "modes_by_metric": f"{_RUN_MODULE}:MODES_BY_METRIC",
        "rrr_by_mode": f"{_RUN_MODULE}:RRR_BY_MODE",
        "ccs_ranking": f"{_ITEM_MODULE}:CCS_RANKING",
        "reliability_parts": f"{_RUN_MODULE}:RELIABILITY_PARTS",
        "signal_correlation": f"{_RUN_MODULE}:SIGNAL_CORRELATION",
        "diagnosis_rates": f"{_RUN_MODULE}:DIAGNOSIS_RATES",
        "item_parts": f"{_ITEM_MODULE}:ITEM_PARTS",
        "verification_links": f"{_ITEM_MODULE}:VERIFICATION_LINKS",
        "chain_cosines": f"{_ITEM_MODULE}:CHAIN_COSINES",
        "answer_changes_by_perturbation": f"{_RUN_MODULE}:ANSWER_CHANGES_BY_PERTURBATION",
        "robustness_by_perturbation": f"{_RUN_MODULE}:ROBUSTNESS_BY_PERTURBATION",
        "perturbation_cells": f"{_RUN_MODULE}:PERTURBATION_CELLS",
        "item_cells": f"{_ITEM_MODULE}:ITEM_CELLS",
        "cmi_density": f"{_RUN_MODULE}:CMI_DENSITY",
        "drop_density": f"{_RUN_MODULE}:DROP_DENSITY",
        "span_heatmap": f"{_RUN_MODULE}:SPAN_HEATMAP",
        "span_heatmap_sources": f"{_RUN_MODULE}:SPAN_HEATMAP_SOURCES",
        "layer_profile": f"{_RUN_MODULE}:LAYER_PROFILE",
        "mediation_indices": f"{_RUN_MODULE}:MEDIATION_INDICES",
        "item_density": f"{_ITEM_MODULE}:ITEM_DENSITY",
        "drops_by_donor": f"{_ITEM_MODULE}:DROPS_BY_DONOR",
        "entropy_by_step": f"{_ITEM_MODULE}:ENTROPY_BY_STEP",
        "unfaithful_rates": f"{_SEVERAL_RUNS_MODULE}:UNFAITHFUL_RATES",
        "threshold_sweep": f"{_SEVERAL_RUNS_MODULE}:THRESHOLD_SWEEP",
        "unfaithful_by_category": f"{_SEVERAL_RUNS_MODULE}:UNFAITHFUL_BY_CATEGORY",
        "classifier_agreement": f"{_SEVERAL_RUNS_MODULE}:CLASSIFIER_AGREEMENT",
        "judge_by_epoch": f"{_SEVERAL_RUNS_MODULE}:JUDGE_BY_EPOCH",
        "chain_size": f"{_SEVERAL_RUNS_MODULE}:CHAIN_SIZE",
        "process_result": f"{_SEVERAL_RUNS_MODULE}:PROCESS_RESULT",
        "paired_differences": f"{_SEVERAL_RUNS_MODULE}:PAIRED_DIFFERENCES",
        "headline_differences": (
            "cotlab.analysis.tables.headline_differences:HEADLINE_DIFFERENCES"
        ),
        "chain_lengths": f"{_RUN_MODULE}:CHAIN_LENGTHS",
        "label_agreement": f"{_RUN_MODULE}:LABEL_AGREEMENT",
        "validation_doses": f"{_RUN_MODULE}:VALIDATION_DOSES",
        "feature_distributions": "cotlab.analysis.tables.drift:FEATURE_DISTRIBUTIONS",
        "drift_scores": "cotlab.analysis.tables.drift:DRIFT_SCORES",
        "drift_over_time": "cotlab.analysis.tables.drift:DRIFT_OVER_TIME",
        "reliability_diagram": f"{_CALIBRATION_MODULE}:RELIABILITY_DIAGRAM",
        "score_histogram": f"{_CALIBRATION_MODULE}:SCORE_HISTOGRAM",
        "calibrator_curves": f"{_CALIBRATION_MODULE}:CALIBRATOR_CURVES",
        "calibrator_comparison": f"{_CALIBRATION_MODULE}:CALIBRATOR_COMPARISON",
        "threshold_volumes": "cotlab.analysis.tables.decisions:THRESHOLD_VOLUMES",
        "signal_aurocs": "cotlab.analysis.tables.evaluation:SIGNAL_AUROCS",
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
