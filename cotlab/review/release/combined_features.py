"""The features that a combined fit may read, wherever a run has measured them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from cotlab.core.errors import UnknownName
from cotlab.metrics.composite import FEATURE_SOURCES, FeatureSource
from cotlab.metrics.text_features import NAME as TEXT_FEATURES
from cotlab.reliability.combination import DOMAIN_FEATURE
from cotlab.text.chain_features.chain import FAMILIES

ANSWER_FEATURE = "answer_correct"
"""Whether the chain's answer is right, by the item's ground truth, else as its file says."""
LENGTH_FEATURES = ("text_characters", "text_steps")
"""What the baseline ``length`` is fitted on."""
CAUSAL_SOURCES: Mapping[str, FeatureSource] = {
    "ccs_corrupt": ("ablation", "answer_change", {"mode": "corrupt"}),
    "mass_lost": ("mediation", "mass_lost", {"source": "filler", "span": "all"}),
}
VERIFIER_SOURCES: Mapping[str, FeatureSource] = {
    "critic_sound": ("critic", "critic_sound", {}),
    "legibility": ("rubric", "legibility", {}),
    "question_coverage": ("rubric", "question_coverage", {}),
    "process_reward_min": ("process_reward", "process_reward_min", {}),
    "process_reward_product": ("process_reward", "process_reward_product", {}),
    "process_reward_last": ("process_reward", "process_reward_last", {}),
}
_COMPOSITE_FEATURES = ("C", "R", "V", "D", "F", "agreement", "coverage")
TEXT_SOURCES: Mapping[str, FeatureSource] = {
    name: (TEXT_FEATURES, name, {}) for names in FAMILIES.values() for name in names
}
COMBINED_SOURCES: Mapping[str, FeatureSource] = {
    **{name: FEATURE_SOURCES[name] for name in _COMPOSITE_FEATURES},
    **CAUSAL_SOURCES,
    "arithmetic_ok": ("verification", "arithmetic_ok", {}),
    **VERIFIER_SOURCES,
    **TEXT_SOURCES,
}
"""Feature → (scorer, metric, facet); beside them ``ANSWER_FEATURE``."""
_FAMILY_BY_TEXT_FEATURE = {name: family for family, names in FAMILIES.items() for name in names}
FAMILY_BY_FEATURE: Mapping[str, str] = {
    **{
        name: _FAMILY_BY_TEXT_FEATURE.get(name, scorer)
        for name, (scorer, _, _) in COMBINED_SOURCES.items()
    },
    ANSWER_FEATURE: "answer_correctness",
}
"""Feature → its family: of the text features their own, else the scorer."""
COMBINED_FEATURES = tuple(FAMILY_BY_FEATURE)
"""Every feature that a combined fit may read."""


def measured_features(
    table: pd.DataFrame, *, without: Sequence[str] = (), by_domain: bool = False
) -> tuple[str, ...]:
    """Return the features of a table that some row has, in the order of ``COMBINED_FEATURES``.

    Parameters
    ----------
    table : DataFrame
    without : sequence of str
        Features, or families of them, to leave out.
    by_domain : bool
        Add an intercept for each domain.

    Raises
    ------
    UnknownName
        If there is no such feature or family.
    """
    families = dict.fromkeys(FAMILY_BY_FEATURE.values())
    for name in without:
        if name not in FAMILY_BY_FEATURE and name not in families:
            raise UnknownName("feature", name, [*families, *COMBINED_FEATURES])
    names = [
        name
        for name, family in FAMILY_BY_FEATURE.items()
        if not {name, family} & set(without) and name in table and table[name].notna().any()
    ]
    return (*names, *([DOMAIN_FEATURE] if by_domain else []))
