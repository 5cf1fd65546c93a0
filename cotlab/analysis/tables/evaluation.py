"""Tables of an evaluation of signals against labels, for its page and its figure."""

from __future__ import annotations

import pandas as pd

from cotlab.analysis.evaluation.measure import NoLabelledChains, evaluate_chains
from cotlab.analysis.evaluation.results import TargetResult, headline
from cotlab.analysis.evaluation.signals import EvaluationData, load_labelled_chains
from cotlab.analysis.tables.declare import FigureChoice, FigureData, NoTable, figure_table
from cotlab.analysis.view import RunView
from cotlab.review.labelling.truth import TARGETS, load_truth, target_values
from cotlab.stats.intervals import interval_columns

MAX_SIGNALS = 40
"""Most signals that are drawn; those with the highest AUROC."""


def signal_table(result: TargetResult, max_signals: int = MAX_SIGNALS) -> pd.DataFrame:
    """Return the AUROC of each signal, baselines first, as the figure signal_aurocs wants it."""
    return pd.DataFrame(
        [
            {
                "signal": signal.name,
                "is_baseline": signal.is_baseline,
                **interval_columns(signal.auroc),
                "n": signal.n,
                "n_undefined": signal.n_undefined,
                "text": signal.verdict,
            }
            for signal in result.signals[:max_signals]
        ]
    )


@figure_table()
def signal_aurocs(view: RunView, choice: FigureChoice) -> FigureData:
    """Return how well each signal tells, on the labels of a run."""
    truth = load_truth(view.store, [view.run_id])
    target = next(
        (name for name in TARGETS if target_values(truth, name).dropna().nunique() == 2), None
    )
    if target is None:
        raise NoTable("its chains have no labels of both kinds")
    try:
        labelled = load_labelled_chains(view.store, [view.run_id], seed=view.plan.seed)
        data = EvaluationData(labelled, view.plan.seed)
        evaluation = evaluate_chains(data, targets=[target], with_details=False)
    except NoLabelledChains as error:
        raise NoTable(str(error)) from error
    (result,) = evaluation.targets
    return FigureData(signal_table(result), f"Target: {result.what}. {headline(result)}")
