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
        targets = self._all_targets()
        if name not in targets:
            raise UnknownName(self.kind, name, tuple(targets))
        return targets[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all_targets())

    def __len__(self) -> int:
        return len(self._all_targets())

    def __contains__(self, name: object) -> bool:
        return name in self._all_targets()

    def _all_targets(self) -> dict[str, str]:
        if self._outside is None:
            self._outside = {e.name: e.value for e in entry_points(group=self.group)}
        return {**self._outside, **self._targets}


PROVIDERS = Registry(
    "provider",
    {
        "organism": "cotlab.providers.local.organism:open_on_demand",
        "local": "cotlab.providers.local.provider:open_local",
        "embedder": "cotlab.providers.local.embedder:open_embedder",
        "symbolic": "cotlab.providers.symbolic:Symbolic",
        "nli": "cotlab.providers.local.nli:open_nli",
        "prm": "cotlab.providers.local.process_reward:open_process_reward",
        "openai": "cotlab.providers.openai:OpenAI",
        "anthropic": "cotlab.providers.anthropic:Anthropic",
        "google": "cotlab.providers.google:Google",
        "openai_compat": "cotlab.providers.openai_compat:OpenAICompat",
        "echo": "cotlab.providers.offline:Echo",
        "scripted": "cotlab.providers.offline:Scripted",
        "recorded": "cotlab.providers.offline:Recorded",
    },
    "cotlab.providers",
)
SCORERS = Registry(
    "scorer",
    {
        "ablation": "cotlab.metrics.ablation:step_ablation",
        "mediation": "cotlab.metrics.mediation.scorer:mediation",
        "entropy": "cotlab.metrics.entropy:entropy",
        "diversity": "cotlab.metrics.diversity:diversity",
        "tool_trace": "cotlab.metrics.tool_trace:tool_trace",
        "repair": "cotlab.metrics.repair:repair",
        "text_features": "cotlab.metrics.text_features:text_features",
        "verification": "cotlab.metrics.verification:verification",
        "consistency": "cotlab.metrics.consistency:consistency",
        "robustness": "cotlab.metrics.robustness:robustness",
        "causal": "cotlab.metrics.causal:causal",
        "flags": "cotlab.metrics.flags:flags",
        "composite": "cotlab.metrics.composite:composite",
        "unfaithfulness": "cotlab.metrics.unfaithfulness:unfaithfulness",
        "process_reward": "cotlab.metrics.process_reward:process_reward",
        "judge": "cotlab.metrics.judge:judge",
        "critic": "cotlab.metrics.critic:critic",
        "rubric": "cotlab.metrics.critic:rubric",
    },
    "cotlab.scorers",
)
_FIGURES_BY_MODULE = {
    "steps": ("ccs_by_position", "ccs_ranking", "modes_by_metric", "rrr_by_mode"),
    "chains": ("entropy_by_step", "chain_lengths", "verification_links"),
    "mediation": (
        "cmi_density",
        "drop_density",
        "layer_profile",
        "item_density",
        "mediation_indices",
        "drops_by_donor",
        "span_heatmap",
    ),
    "robustness": (
        "answer_changes_by_perturbation",
        "robustness_by_perturbation",
        "perturbation_cells",
        "item_cells",
    ),
    "reliability": (
        "reliability_parts",
        "item_parts",
        "signal_correlation",
        "chain_cosines",
        "diagnosis_rates",
    ),
    "comparison": ("paired_differences", "classifier_agreement", "label_agreement"),
    "unfaithfulness": (
        "unfaithful_rates",
        "unfaithful_by_category",
        "threshold_sweep",
        "judge_by_epoch",
        "chain_size",
        "process_result",
    ),
    "validation": ("validation_doses",),
    "answer_change": ("answer_change_scale",),
    "drift": ("feature_distributions", "drift_scores", "drift_over_time"),
    "scores": ("reliability_diagram", "score_histogram", "threshold_volumes"),
    "calibration": ("calibrator_curves", "calibrator_comparison"),
    "evaluation": ("signal_aurocs",),
}
"""Module of cotlab.figures → figures that it builds; a figure's builder has its name."""
FIGURES = Registry(
    "figure",
    {
        name: f"cotlab.figures.{module}:{name}"
        for module, names in _FIGURES_BY_MODULE.items()
        for name in names
    },
    "cotlab.figures",
)
