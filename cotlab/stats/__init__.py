"""Intervals and tests: every number with its interval, or the reason why it has none.

Statsmodels and scipy do the arithmetic; point and interval estimate the same quantity. Names load
on first use, so that importing the package loads neither of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cotlab.stats.agreement import agreement_table as agreement_table
    from cotlab.stats.agreement import cohen_kappa as cohen_kappa
    from cotlab.stats.agreement import cohen_kappa_table as cohen_kappa_table
    from cotlab.stats.agreement import nominal_alpha as nominal_alpha
    from cotlab.stats.agreement import percent_agreement as percent_agreement
    from cotlab.stats.agreement import percent_agreement_table as percent_agreement_table
    from cotlab.stats.calibration import Bin as Bin
    from cotlab.stats.calibration import auroc as auroc
    from cotlab.stats.calibration import brier as brier
    from cotlab.stats.calibration import ece as ece
    from cotlab.stats.calibration import log_loss as log_loss
    from cotlab.stats.calibration import perfect_band as perfect_band
    from cotlab.stats.calibration import reliability_bins as reliability_bins
    from cotlab.stats.calibration_intervals import measure_difference as measure_difference
    from cotlab.stats.calibration_intervals import measure_interval as measure_interval
    from cotlab.stats.calibration_intervals import weighted_auroc as weighted_auroc
    from cotlab.stats.composite import weighted_mean as weighted_mean
    from cotlab.stats.composite import weighted_means as weighted_means
    from cotlab.stats.composite import weights_for as weights_for
    from cotlab.stats.correlation import Correlation as Correlation
    from cotlab.stats.correlation import at_equal as at_equal
    from cotlab.stats.correlation import pearson as pearson
    from cotlab.stats.correlation import spearman as spearman
    from cotlab.stats.correlation import spearman_p as spearman_p
    from cotlab.stats.drift import FeatureDrift as FeatureDrift
    from cotlab.stats.drift import JointDrift as JointDrift
    from cotlab.stats.drift import Measured as Measured
    from cotlab.stats.drift import feature_drift as feature_drift
    from cotlab.stats.drift import joint_drift as joint_drift
    from cotlab.stats.intervals import Interval as Interval
    from cotlab.stats.intervals import log_ratio_interval as log_ratio_interval
    from cotlab.stats.intervals import t_interval as t_interval
    from cotlab.stats.intervals import wilson as wilson
    from cotlab.stats.multiple import Direction as Direction
    from cotlab.stats.multiple import benjamini_hochberg as benjamini_hochberg
    from cotlab.stats.multiple import direction as direction
    from cotlab.stats.paired import Wilcoxon as Wilcoxon
    from cotlab.stats.paired import cohen_dz as cohen_dz
    from cotlab.stats.paired import paired_bootstrap as paired_bootstrap
    from cotlab.stats.paired import wilcoxon as wilcoxon
    from cotlab.stats.paired_rates import McNemar as McNemar
    from cotlab.stats.paired_rates import discordant_odds as discordant_odds
    from cotlab.stats.paired_rates import mcnemar as mcnemar
    from cotlab.stats.paired_rates import mcnemar_counts as mcnemar_counts
    from cotlab.stats.paired_rates import pair_counts as pair_counts
    from cotlab.stats.paired_rates import risk_difference as risk_difference
    from cotlab.stats.power import Discordant as Discordant
    from cotlab.stats.power import SampleSize as SampleSize
    from cotlab.stats.power import discordant as discordant
    from cotlab.stats.power import mcnemar_power as mcnemar_power
    from cotlab.stats.power import n_for_mcnemar as n_for_mcnemar
    from cotlab.stats.power import n_for_paired_t as n_for_paired_t
    from cotlab.stats.power import n_for_rate as n_for_rate
    from cotlab.stats.power import paired_t_power as paired_t_power
    from cotlab.stats.power import rate_half_width as rate_half_width
    from cotlab.stats.resample import bootstrap_mean as bootstrap_mean
    from cotlab.stats.resample import bootstrap_ratio as bootstrap_ratio
    from cotlab.stats.resample import cluster_bootstrap as cluster_bootstrap
    from cotlab.stats.resample import paired_permutation as paired_permutation
    from cotlab.stats.shuffles import Shuffles as Shuffles
    from cotlab.stats.vectors import clusters as clusters
    from cotlab.stats.vectors import cosines as cosines
    from cotlab.stats.vectors import dtw_similarity as dtw_similarity
    from cotlab.stats.vectors import pooled as pooled

_NAMES_BY_MODULE = {
    "agreement": (
        "agreement_table cohen_kappa cohen_kappa_table nominal_alpha percent_agreement "
        "percent_agreement_table"
    ),
    "calibration": "Bin auroc brier ece log_loss perfect_band reliability_bins",
    "calibration_intervals": "measure_difference measure_interval weighted_auroc",
    "composite": "weighted_mean weighted_means weights_for",
    "correlation": "Correlation at_equal pearson spearman spearman_p",
    "drift": "FeatureDrift JointDrift Measured feature_drift joint_drift",
    "intervals": "Interval log_ratio_interval t_interval wilson",
    "multiple": "Direction benjamini_hochberg direction",
    "paired": "Wilcoxon cohen_dz paired_bootstrap wilcoxon",
    "paired_rates": "McNemar discordant_odds mcnemar mcnemar_counts pair_counts risk_difference",
    "power": (
        "Discordant SampleSize discordant mcnemar_power n_for_mcnemar n_for_paired_t "
        "n_for_rate paired_t_power rate_half_width"
    ),
    "resample": "bootstrap_mean bootstrap_ratio cluster_bootstrap paired_permutation",
    "shuffles": "Shuffles",
    "vectors": "clusters cosines dtw_similarity pooled",
}
_MODULE_BY_NAME = {
    name: module for module, names in _NAMES_BY_MODULE.items() for name in names.split()
}
__all__ = sorted(_MODULE_BY_NAME)


def __getattr__(name: str) -> Any:
    """Load a public name on first use."""
    if name not in _MODULE_BY_NAME:
        raise AttributeError(f"module 'cotlab.stats' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"cotlab.stats.{_MODULE_BY_NAME[name]}"), name)
