"""Where a law of all metrics is special for some: a new scorer needs no entry here.

By default a scorer is held to every law with its default options.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ZERO_WITHOUT_CHANGE: frozenset[str] = frozenset(
    {
        "accuracy_delta",
        "answer_change",
        "token_delta",
        "kl_divergence",
        "kl_nats",
        "total_variation",
        "baseline_flip",
        "no_cot_drop",
        "mass_lost",
        "drop_cot",
        "drop_control",
        "self_shuffle",
        "text_placebo",
        "patch_drop",
        "entropy_jump",
        "entropy_rise",
        "consistency_sigma",
        "purity_drift",
        "path_distance",
        "clusters_undecided",
        "repair_delta",
        "perturbed_answer_change",
        "hint_followed",
        "judge_score",
    }
)
"""Metrics of a change: 0 where a model never changes its reply."""
COUNTS_OF_CHAINS = frozenset({"consistency_chains", "paraphrases_rejected"})
"""Metrics that count what could be read: 0 where every reply is empty."""
OF_ANSWERS = frozenset(
    {
        "baseline_correct",
        "baseline_flip",
        "accuracy_delta",
        "answer_change",
        "token_delta",
        "kl_divergence",
        "kl_nats",
        "total_variation",
        "topk_rest",
        "perturbed_answer_change",
        "hint_followed",
        "hint_acknowledged",
        "diversity",
        "diversity_at",
        "cluster_agreement",
        "path_agreement",
        "consensus_correct",
        "answer_agreement",
        "rename_stable",
        "number_follows",
        "number_moves",
        "causal_stability",
    }
)
"""Metrics of what replies answer, whatever the reasoning before it."""
WITHOUT_EVIDENCE: frozenset[str] = frozenset(
    {
        # what a given chain claims, and the equations in it
        "claim_matched",
        "claim_contradicted",
        "claim_unsupported",
        "claims",
        "claim",
        "link_support",
        "verification_mean",
        "pass_rate",
        "weak_link",
        "verification",
        "coverage",
        "first_mistake_step",
        "arithmetic_ok",
        "repair_before",
        # the structure of a given chain
        "flags",
        "flags_once",
        "flags_text",
        "flags_rules_checked",
        "flag_count",
        "flag_penalty",
        # what the components of a composite read off
        "r_raw",
        "weight_defined",
        "weight_checked",
        "feature",
        "requests_saved",
        "answer_correct",
        "diagnosis",
        # what an item's line says
        "judge_length_difference",
        "judge_human_score",
        "judge_prompt_group",
        # the words of a given chain
        "chain_tokens",
        "chain_characters",
        "chain_steps",
        "process_words",
        "result_words",
        "process_result_ratio",
        "unfaithfulness",
    }
)
"""Metrics that are read off a given chain or line without a request; they rest on no reply there.
"""
TOOLS = (
    {"name": "calculator", "input": "7 + 5", "output": "12"},
    {"name": "search", "input": "birds", "output": "3 birds"},
)
CONSTANTS: Mapping[str, Mapping[str, Any]] = {
    "flags": {"delta": 0.0},
    "consistency": {"floor": 0.25},
    "composite": {"flags": {"delta": 0.0}, "consistency": {"floor": 0.25}},
}
"""What ``prepare`` of a scorer gave."""
ONLY_WHERE_FOUND = frozenset({"first_mistake_step"})
"""Metrics that an ordinary item has no value of."""
IF_IT_IS_SO = frozenset(
    {
        "answers_by_model",
        "hint_acknowledged",
        "chain_tokens",
        "process_result_ratio",
        "process_reward_mistake_step",
    }
)
"""Metrics that an ordinary item may have a value of: where the hint is followed, tokens are
counted, a result word stands, a step is judged wrong."""
PAIR = {
    "base_response": "Step 1: 7 + 5 = 12.",
    "tuned_response": "It is 12. Step 1: 7 + 5 = 12.",
    "human_score": 3,
}
"""What the meta of an item holds that is a pair of responses."""
NEEDS_NO_CHAIN: frozenset[str] = frozenset({"consistency", "composite", "judge"})
"""Scorers that measure an item without a chain."""
CASES: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "flags": ({"chain": "reference"}, {"chain": "own"}),
    "ablation": (
        {"modes": ["remove", "truncate", "corrupt", "paraphrase", "filler"]},
        {"modes": ["filler", "corrupt"], "chain": "own"},
        {"modes": ["remove", "paraphrase"], "metric": "kl_divergence"},
    ),
    "entropy": ({"chain": "reference"}, {"chain": "own"}, {"chain": "own", "jump_nats": 0.0}),
    "robustness": (
        {"fraction": 1.0},
        {
            "fraction": 1.0,
            "chain": "own",
            "pool": "sentence",
            "perturbations": ["order", "numeric", "entity_swap"],
        },
        {"fraction": 0.7, "perturbations": ["paraphrase", "unit_conversion", "negation"]},
    ),
    "diversity": (
        {"paths": 3},
        {"paths": 2, "linkage": "single", "threshold": 0.5, "sweep": ["0.5"]},
    ),
    "verification": (
        {},
        {"chain": "own"},
        {"chain": "own", "links": ["reverse"], "premise": "previous", "tau": 0.0},
    ),
    "tool_trace": ({}, {"chain": "own"}),
    "text_features": ({}, {"chain": "own"}),
    "unfaithfulness": (
        {"cuts": ("0.25", "0.5", "0.75")},
        {"chain": "own", "template": "professor"},
        {"chain": "own", "classifiers": ("hint", "truncation")},
    ),
    "composite": (
        {"profile": "phase3", "progressive": True, "hard_floor": 0.0},
        {"profile": "phase2", "chain": "own", "progressive": True, "least_weight": 0.2},
    ),
    "repair": ({"below": 2.0}, {"below": 2.0, "chain": "own"}),
    "consistency": (
        {"gate": -1.0, "without": ["paraphraser"]},
        {"gate": -0.999, "paraphrases": 3, "step_threshold": -1.0},
    ),
    "mediation": (
        {"subsets": 2, "layers": ["1"], "donors": 2, "draws": 1},
        {
            "subsets": 2,
            "sources": ["interchange", "right", "mean"],
            "chain": "own",
            "layers": ["0-1"],
            "donors": 2,
            "control": "other",
        },
        {
            "subsets": 2,
            "sources": ["literal"],
            "control": "own",
            "layers": ["0"],
            "donors": 2,
            "draws": 1,
        },
    ),
}
RENORMALISED = frozenset({"r_raw", "weight_defined", "weight_checked"})
"""What goes on without a part that is missing, with another value."""
