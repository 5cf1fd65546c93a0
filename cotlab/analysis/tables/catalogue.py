"""Every figure that a run can have, by name, and the table that it is drawn from."""

from __future__ import annotations

from collections.abc import Mapping

from cotlab.analysis.tables.declare import DEFAULT_CHOICE, Choice, FigureData, FigureTable, NoFigure
from cotlab.analysis.view import RunView
from cotlab.core.registry import Registry

_RUN, _ITEM = "cotlab.analysis.tables.run", "cotlab.analysis.tables.item"
_RUNS, _CALIBRATION = "cotlab.analysis.tables.several_runs", "cotlab.analysis.tables.calibration"
TABLES = Registry(
    "figure of a run",
    {
        "ccs_by_position": f"{_RUN}:CCS_BY_POSITION",
        "modes_by_metric": f"{_RUN}:MODES_BY_METRIC",
        "rrr_by_mode": f"{_RUN}:RRR_BY_MODE",
        "ccs_ranking": f"{_ITEM}:CCS_RANKING",
        "reliability_parts": f"{_RUN}:RELIABILITY_PARTS",
        "signal_correlation": f"{_RUN}:SIGNAL_CORRELATION",
        "diagnosis_rates": f"{_RUN}:DIAGNOSIS_RATES",
        "item_parts": f"{_ITEM}:ITEM_PARTS",
        "verification_links": f"{_ITEM}:VERIFICATION_LINKS",
        "chain_cosines": f"{_ITEM}:CHAIN_COSINES",
        "robustness_by_perturbation": f"{_RUN}:ROBUSTNESS_BY_PERTURBATION",
        "perturbation_cells": f"{_RUN}:PERTURBATION_CELLS",
        "item_cells": f"{_ITEM}:ITEM_CELLS",
        "cmi_density": f"{_RUN}:CMI_DENSITY",
        "span_heatmap": f"{_RUN}:SPAN_HEATMAP",
        "span_heatmap_sources": f"{_RUN}:SPAN_HEATMAP_SOURCES",
        "layer_profile": f"{_RUN}:LAYER_PROFILE",
        "mediation_indices": f"{_RUN}:MEDIATION_INDICES",
        "item_density": f"{_ITEM}:ITEM_DENSITY",
        "drops_by_donor": f"{_ITEM}:DROPS_BY_DONOR",
        "entropy_by_step": f"{_ITEM}:ENTROPY_BY_STEP",
        "unfaithful_rates": f"{_RUNS}:UNFAITHFUL_RATES",
        "threshold_sweep": f"{_RUNS}:THRESHOLD_SWEEP",
        "unfaithful_by_category": f"{_RUNS}:UNFAITHFUL_BY_CATEGORY",
        "classifier_agreement": f"{_RUNS}:CLASSIFIER_AGREEMENT",
        "judge_by_epoch": f"{_RUNS}:JUDGE_BY_EPOCH",
        "chain_size": f"{_RUNS}:CHAIN_SIZE",
        "process_result": f"{_RUNS}:PROCESS_RESULT",
        "paired_differences": f"{_RUNS}:PAIRED_DIFFERENCES",
        "chain_lengths": f"{_RUN}:CHAIN_LENGTHS",
        "label_agreement": "cotlab.analysis.tables.review:LABEL_AGREEMENT",
        "validation_doses": f"{_RUN}:VALIDATION_DOSES",
        "feature_distributions": "cotlab.analysis.tables.drift:FEATURE_DISTRIBUTIONS",
        "drift_scores": "cotlab.analysis.tables.drift:DRIFT_SCORES",
        "drift_over_time": "cotlab.analysis.tables.drift:DRIFT_OVER_TIME",
        "reliability_diagram": f"{_CALIBRATION}:RELIABILITY_DIAGRAM",
        "score_histogram": f"{_CALIBRATION}:SCORE_HISTOGRAM",
        "calibrator_curves": f"{_CALIBRATION}:CALIBRATOR_CURVES",
        "calibrator_comparison": f"{_CALIBRATION}:CALIBRATOR_COMPARISON",
        "threshold_volumes": "cotlab.analysis.tables.review:THRESHOLD_VOLUMES",
    },
    "cotlab.figure_tables",
)
"""Name to a `FigureTable`. A name is that of its figure, with a word more where one figure shows
two things."""


def figure_table(
    view: RunView, name: str, choice: Choice = DEFAULT_CHOICE
) -> FigureData | NoFigure:
    """Return the table of one figure of a run, or why the run does not have it.

    Raises
    ------
    UnknownName
        If no figure has this name.
    ConfigError
        If the run does not have what was chosen.
    """
    known: FigureTable = TABLES[name]
    return known(view, choice)


def figures_of(
    view: RunView, choice: Choice = DEFAULT_CHOICE
) -> Mapping[str, FigureData | NoFigure]:
    """Every figure by name, with its table or the reason why the run does not have it."""
    return {name: figure_table(view, name, choice) for name in TABLES}
