"""Providers, scorers and figures by name, imported on first use.

Other packages add their own through entry points of the same group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from cotlab.core.errors import MissingExtra, UnknownName


class Registry(Mapping[str, Any]):
    """A lazy mapping of names to ``"module:attribute"`` targets.

    Parameters
    ----------
    kind : str
        What is registered, for messages: "provider".
    targets : mapping of str to str
    group : str
        Entry-point group that other packages use.

    Raises
    ------
    UnknownName
        From ``registry[name]``, with the closest known name.
    MissingExtra
        If the target's module needs a package that is not installed.
    """

    def __init__(self, kind: str, targets: Mapping[str, str], group: str) -> None:
        self.kind, self.group, self._targets = kind, group, dict(targets)
        self._outside: dict[str, str] | None = None

    def add(self, name: str, target: str) -> None:
        """Register a ``"module:attribute"`` target under a name."""
        self._targets[name] = target

    def __getitem__(self, name: str) -> Any:
        module, _, attribute = self.require(name).partition(":")
        try:
            return getattr(import_module(module), attribute)
        except ModuleNotFoundError as missing:
            if missing.name is None or missing.name.split(".")[0] == "cotlab":
                raise
            raise MissingExtra(f"{self.kind} {name!r}", missing.name) from missing

    def require(self, name: str) -> str:
        """Return the target of ``name`` without importing it; UnknownName if there is none."""
        targets = self._all()
        if name not in targets:
            raise UnknownName(self.kind, name, tuple(targets))
        return targets[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __contains__(self, name: object) -> bool:
        return name in self._all()

    def _all(self) -> dict[str, str]:
        if self._outside is None:
            self._outside = {e.name: e.value for e in entry_points(group=self.group)}
        return {**self._outside, **self._targets}


PROVIDERS = Registry(
    "provider",
    {
        "organism": "cotlab.providers.local.provider:open_organism",
        "local": "cotlab.providers.local.provider:open_local",
        "embedder": "cotlab.providers.local.embedder:open_embedder",
        "symbolic": "cotlab.providers.symbolic:Symbolic",
        "nli": "cotlab.providers.local.nli:open_nli",
        "openai": "cotlab.providers.openai:OpenAI",
        "anthropic": "cotlab.providers.anthropic:Anthropic",
        "google": "cotlab.providers.google:Google",
        "openai_compat": "cotlab.providers.openai_compat:OpenAICompat",
        "echo": "cotlab.providers.offline:Echo",
        "scripted": "cotlab.providers.offline:Scripted",
    },
    "cotlab.providers",
)
SCORERS = Registry(
    "scorer",
    {
        "ablation": "cotlab.metrics.ablation.scorer:step_ablation",
        "mediation": "cotlab.metrics.mediation.scorer:mediation",
        "entropy": "cotlab.metrics.entropy:entropy",
        "diversity": "cotlab.metrics.diversity.scorer:diversity",
        "tool_trace": "cotlab.metrics.tool_trace:tool_trace",
        "repair": "cotlab.metrics.repair:repair",
        "verification": "cotlab.metrics.verification.scorer:verification",
        "consistency": "cotlab.metrics.consistency.scorer:consistency",
        "robustness": "cotlab.metrics.robustness.scorer:robustness",
        "causal": "cotlab.metrics.causal.scorer:causal",
        "flags": "cotlab.metrics.flags.scorer:flags",
        "composite": "cotlab.metrics.composite.scorer:composite",
        "unfaithfulness": "cotlab.metrics.unfaithfulness.scorer:unfaithfulness",
        "judge": "cotlab.metrics.judge.scorer:judge",
        "ratings": "cotlab.metrics.ratings:ratings",
    },
    "cotlab.scorers",
)
FIGURES = Registry(
    "figure",
    {
        "ccs_by_position": "cotlab.figures.steps:ccs_by_position",
        "ccs_ranking": "cotlab.figures.steps:ccs_ranking",
        "modes_by_metric": "cotlab.figures.steps:modes_by_metric",
        "rrr_by_mode": "cotlab.figures.steps:rrr_by_mode",
        "entropy_by_step": "cotlab.figures.chains:entropy_by_step",
        "chain_lengths": "cotlab.figures.chains:chain_lengths",
        "cmi_density": "cotlab.figures.mediation:cmi_density",
        "layer_profile": "cotlab.figures.mediation:layer_profile",
        "span_heatmap": "cotlab.figures.span_heatmap:span_heatmap",
        "item_density": "cotlab.figures.mediation:item_density",
        "mediation_indices": "cotlab.figures.mediation:mediation_indices",
        "drops_by_donor": "cotlab.figures.mediation:drops_by_donor",
        "robustness_by_perturbation": "cotlab.figures.robustness:robustness_by_perturbation",
        "perturbation_cells": "cotlab.figures.robustness:perturbation_cells",
        "item_cells": "cotlab.figures.robustness:item_cells",
        "reliability_parts": "cotlab.figures.reliability:reliability_parts",
        "item_parts": "cotlab.figures.reliability:item_parts",
        "signal_correlation": "cotlab.figures.reliability:signal_correlation",
        "chain_cosines": "cotlab.figures.reliability:chain_cosines",
        "diagnosis_rates": "cotlab.figures.reliability:diagnosis_rates",
        "verification_links": "cotlab.figures.chains:verification_links",
        "paired_differences": "cotlab.figures.comparison:paired_differences",
        "unfaithful_rates": "cotlab.figures.unfaithfulness:unfaithful_rates",
        "unfaithful_by_category": "cotlab.figures.unfaithfulness:unfaithful_by_category",
        "threshold_sweep": "cotlab.figures.unfaithfulness:threshold_sweep",
        "judge_by_epoch": "cotlab.figures.unfaithfulness:judge_by_epoch",
        "chain_size": "cotlab.figures.unfaithfulness:chain_size",
        "process_result": "cotlab.figures.unfaithfulness:process_result",
        "classifier_agreement": "cotlab.figures.comparison:classifier_agreement",
        "label_agreement": "cotlab.figures.comparison:label_agreement",
        "validation_doses": "cotlab.figures.validation:validation_doses",
        "feature_distributions": "cotlab.figures.drift:feature_distributions",
        "drift_scores": "cotlab.figures.drift:drift_scores",
        "drift_over_time": "cotlab.figures.drift_time:drift_over_time",
        "reliability_diagram": "cotlab.figures.scores:reliability_diagram",
        "score_histogram": "cotlab.figures.scores:score_histogram",
        "calibrator_curves": "cotlab.figures.calibration:calibrator_curves",
        "calibrator_comparison": "cotlab.figures.calibration:calibrator_comparison",
        "threshold_volumes": "cotlab.figures.scores:threshold_volumes",
    },
    "cotlab.figures",
)
