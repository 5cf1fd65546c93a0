"""Names of metrics on pages: each says what it is, and no two are alike."""

from __future__ import annotations

from collections import Counter

from cotlab.core.registry import SCORERS
from cotlab.ui.metric_names import METRIC_NAMES, metric_name


def test_each_metric_has_a_name_of_its_own_for_readers() -> None:
    cards = {card.name for scorer in SCORERS.values() for card in scorer.cards}
    counts = Counter(map(metric_name, cards))
    assert [name for name, n in counts.items() if n > 1] == []
    features = {card.name for card in SCORERS["text_features"].cards}  # named by their own words
    assert cards - features - METRIC_NAMES.keys() == set()
