"""Every feature of a drift check has a description."""

from __future__ import annotations

from cotlab.review.release.features import NUMERIC_COLUMNS
from cotlab.ui.text import FEATURE_DESCRIPTIONS


def test_each_feature_has_its_words() -> None:
    assert set(FEATURE_DESCRIPTIONS) == set(NUMERIC_COLUMNS) and all(
        word.strip() and not word.endswith(".") for word in FEATURE_DESCRIPTIONS.values()
    )
