"""Thresholds suggested from labels, computed once for each state of labels and calibrator."""

from __future__ import annotations

from collections.abc import Callable

from cotlab.core.errors import CotlabError, StoreError
from cotlab.reliability.thresholds import Costs
from cotlab.review.release.suggest import ThresholdSuggestion, suggest_by_cost, suggest_by_precision
from cotlab.ui import cached


def cost_suggestions(
    runs: tuple[str, ...], costs: Costs, label_state: tuple[int, ...]
) -> list[ThresholdSuggestion]:
    """Return thresholds of least cost; CotlabError where there are none."""
    return _suggestions_or_raise(_suggest_from_costs(runs, costs, label_state))


def target_suggestions(
    runs: tuple[str, ...], target_share: float, label_state: tuple[int, ...]
) -> list[ThresholdSuggestion]:
    """Return thresholds for a share of right answers; CotlabError where there are none."""
    return _suggestions_or_raise(_suggest_from_target(runs, target_share, label_state))


@cached.cache_by_store(32, "Trying thresholds on the labels")
def _suggest_from_costs(
    runs: tuple[str, ...], costs: Costs, label_state: tuple[int, ...]
) -> list[ThresholdSuggestion] | str:
    return _suggestions_or_reason(
        lambda: suggest_by_cost(cached.store(), runs or None, costs, seed=42)
    )


@cached.cache_by_store(32, "Trying thresholds on the labels")
def _suggest_from_target(
    runs: tuple[str, ...], target_share: float, label_state: tuple[int, ...]
) -> list[ThresholdSuggestion] | str:
    return _suggestions_or_reason(
        lambda: suggest_by_precision(cached.store(), runs or None, target_share)
    )


def _suggestions_or_reason(
    suggest: Callable[[], list[ThresholdSuggestion]],
) -> list[ThresholdSuggestion] | str:
    """Return suggestions, or why there are none: what is raised would not be cached."""
    try:
        return suggest()
    except StoreError:
        raise  # another try may do
    except CotlabError as error:
        return str(error)


def _suggestions_or_raise(result: list[ThresholdSuggestion] | str) -> list[ThresholdSuggestion]:
    if isinstance(result, str):
        raise CotlabError(result)
    return result
