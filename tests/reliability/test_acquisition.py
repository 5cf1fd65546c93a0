"""What is labelled next: near a threshold, unlike each other, never twice, and items without a
score by a share."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotlab.reliability.acquisition import choose_next_labels

RNG = np.random.default_rng(1)
SCORES, FEATURES = RNG.random(200), RNG.normal(size=(200, 4))


def rows(*args: object, **more: object) -> list[int]:
    return [choice.row for choice in choose_next_labels(*args, **more).choices]  # type: ignore[arg-type]


def test_only_items_near_a_threshold_are_chosen() -> None:
    chosen = rows(SCORES, FEATURES, (0.3, 0.8), 15, epsilon=0.05)
    assert len(set(chosen)) == 15
    assert all(min(abs(SCORES[i] - 0.3), abs(SCORES[i] - 0.8)) <= 0.05 for i in chosen)


def test_an_item_is_near_to_its_own_thresholds_alone() -> None:
    own = [(0.8,) if i % 2 else (0.3,) if i % 4 else () for i in range(200)]
    chosen = rows(SCORES, FEATURES, (0.3, 0.8), 15, epsilon=0.1, item_thresholds=own)
    assert len(set(chosen)) == 15
    assert all(min(abs(SCORES[i] - one) for one in own[i] or (0.3, 0.8)) <= 0.1 for i in chosen)
    with pytest.raises(ValueError, match="3 sets of thresholds"):
        rows(SCORES, FEATURES, (0.3,), 15, item_thresholds=own[:3])


def test_the_first_lies_at_the_boundary_and_the_next_is_the_farthest_from_it() -> None:
    features = np.array([[0.0], [1.0], [5.0], [9.0], [2.0]])
    assert rows([0.5, 0.52, 0.53, 0.54, 0.9], features, [0.5], 3, epsilon=0.1) == [0, 3, 2]


def test_what_is_labelled_is_kept_away_from() -> None:
    features = np.array([[0.0], [1.0], [5.0], [9.0]])
    assert rows([0.5] * 4, features, [0.5], 1, is_labelled=[False, False, False, True]) == [0]


def test_chosen_items_lie_farther_apart_than_random_ones() -> None:
    chosen = rows(np.full(200, 0.5), FEATURES, [0.5], 12)

    def least(some: list[int]) -> float:
        return min(
            float(np.linalg.norm(FEATURES[i] - FEATURES[j])) for i, j in combinations(some, 2)
        )

    random = [
        least(list(np.random.default_rng(k).choice(200, 12, replace=False))) for k in range(50)
    ]
    assert least(chosen) > max(random)


def test_too_few_near_ones_widen_the_band_and_that_is_said() -> None:
    found = choose_next_labels([0.1, 0.2, 0.3, 0.9], np.zeros((4, 1)), [0.25], 3, epsilon=0.06)
    assert {choice.row for choice in found.choices} == {0, 1, 2} and found.epsilon > 0.15 - 1e-9
    assert found.note.startswith("only 2 unlabelled items lie within 0.06")


def test_items_without_a_score_are_a_share_of_their_own() -> None:
    scores = SCORES.copy()
    scores[:50] = np.nan
    found = choose_next_labels(scores, FEATURES, [0.5], 20, unscored_share=0.2)
    blind = [choice for choice in found.choices if choice.row < 50]
    assert (
        len(found.choices) == 20
        and len(blind) == 4
        and all(choice.reason.startswith("no r_cal") for choice in blind)
    )
    assert not [i for i in rows(scores, FEATURES, [0.5], 20, unscored_share=0.0) if i < 50]
    none = choose_next_labels([float("nan")] * 30, np.zeros((30, 2)), [0.5], 10)
    assert len(none.choices) == 10 and "drawn at random" in none.note


def test_missing_features_are_no_reason_to_be_left_out() -> None:
    features = FEATURES.copy()
    features[::3, 1] = np.nan
    assert any(i % 3 == 0 for i in rows(np.full(200, 0.5), features, [0.5], 10))


@given(st.integers(1, 40), st.integers(0, 30), st.integers(0, 30), st.integers(0, 10))
def test_never_twice_never_labelled_and_as_many_as_there_are(
    k: int, scored: int, blind: int, had: int
) -> None:
    n = scored + blind + had
    scores = [0.4] * scored + [float("nan")] * blind + [0.5] * had
    taken = [False] * (scored + blind) + [True] * had
    chosen = rows(scores, np.arange(2.0 * n).reshape(n, 2), [0.5], k, is_labelled=taken)
    assert len(chosen) == len(set(chosen)) == min(k, scored + blind) and all(
        i < scored + blind for i in chosen
    )


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"k": 0}, "at least 1"),
        ({"epsilon": 0.0}, "above 0"),
        ({"thresholds": []}, "at least one"),
        ({"unscored_share": 2}, "share"),
        ({"features": np.zeros((3, 1))}, "rows of features"),
    ],
)
def test_wrong_arguments_are_told(more: dict[str, object], said: str) -> None:
    known = {"r_cal": [0.5, 0.5], "features": np.zeros((2, 1)), "thresholds": [0.5], "k": 1} | more
    with pytest.raises(ValueError, match=said):
        choose_next_labels(**known)  # type: ignore[arg-type]
