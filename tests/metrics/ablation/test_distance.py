"""Distances of replies by hand, and bounds that hold for any two lists of log-probabilities."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotlab.core.requests import Response, Token
from cotlab.metrics.ablation import (
    answer_distribution,
    distribution_divergence,
    jaccard_distance,
)


def logs(**probabilities: float) -> dict[str, float]:
    return {token: math.log(p) for token, p in probabilities.items()}


def reply(*tokens: str | tuple[str, dict[str, float]]) -> Response:
    listed = [
        (
            Token(t, -0.1)
            if isinstance(t, str)
            else Token(t[0], -0.1, tuple((k, math.log(p)) for k, p in t[1].items()))
        )
        for t in tokens
    ]
    return Response("k", "".join(t.text for t in listed), tokens=tuple(listed))


# --- words
# --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("", "", 0.0),
        ("", "a", 1.0),
        ("So the answer", "so THE answer", 0.0),
        ("a b c", "b c d", 0.5),  # 2 of {a, b, c, d} are shared
        ("a a a", "a", 0.0),  # a set of words, not a bag
        ("12.", "12", 1.0),  # punctuation belongs to the word
    ],
)
def test_jaccard_distance(first: str, second: str, expected: float) -> None:
    assert jaccard_distance(first, second) == pytest.approx(expected)


@given(st.text(), st.text())
def test_jaccard_is_a_distance(first: str, second: str) -> None:
    assert 0 <= jaccard_distance(first, second) <= 1
    assert jaccard_distance(first, second) == jaccard_distance(second, first)
    assert jaccard_distance(first, first) == 0


# --- distributions
# ------------------------------------------------------------------------------------


def test_full_lists() -> None:
    """(.2, .3, .5) against (.5, .3, .2): KL = .3 ln 2.5 = .274887 nats, TV = .3, no rest."""
    found = distribution_divergence(logs(a=0.2, b=0.3, c=0.5), logs(a=0.5, b=0.3, c=0.2))
    assert found == pytest.approx((0.274887, 0.3, 0.0), abs=1e-6)


def test_the_direction_of_kl_is_from_the_ablated_side() -> None:
    """KL((1/2, 1/2) || (9/10, 1/10)) = ½ ln(.5/.9) + ½ ln(.5/.1) = .510826; the other way .368064
    nats."""
    even, skewed = logs(a=0.5, b=0.5), logs(a=0.9, b=0.1)
    assert distribution_divergence(even, skewed).kl == pytest.approx(0.510826, abs=1e-6)
    assert distribution_divergence(skewed, even).kl == pytest.approx(0.368064, abs=1e-6)


def test_lists_without_a_common_token() -> None:
    """Two certain answers that differ: total variation 1, and KL as large as float32 can tell, -ln
    1e-7 = 16.118 nats."""
    found = distribution_divergence(logs(paris=1.0), logs(rome=1.0))
    assert found == pytest.approx((-math.log(1e-7), 1.0, 0.0), abs=1e-6)


def test_unlisted_rests_count_as_little_as_the_lists_allow() -> None:
    """{a: .6, rest .4} against {a: .6, rest .4}: perhaps equal. {a: .6} against {b: .9}: b may take
    the .4, a the .1.

    TV = ½ (|.4 − .9| + |.6 − .1|) = .5; KL = .4 ln(.4/.9) + .6 ln(.6/.1) = .750684 nats
    """
    assert distribution_divergence(logs(a=0.6), logs(a=0.6)) == pytest.approx((0, 0, 0.4))
    assert distribution_divergence(logs(a=0.6), logs(b=0.9)) == pytest.approx(
        (0.750684, 0.5, 0.4), abs=1e-6
    )


WEIGHTS = st.lists(st.floats(1e-6, 1), min_size=2, max_size=8)


@given(WEIGHTS, WEIGHTS, st.integers(1, 8), st.integers(1, 8))
def test_cut_lists_give_lower_bounds_of_the_distances_of_the_whole(
    first: list[float], second: list[float], kept_first: int, kept_second: int
) -> None:
    n = min(len(first), len(second))
    p, q = ([math.log(w / sum(side[:n])) for w in side[:n]] for side in (first, second))

    def cut(side: list[float], kept: int) -> dict[str, float]:
        return {str(i): side[i] for i in sorted(range(n), key=lambda i: -side[i])[:kept]}

    whole = distribution_divergence(cut(p, n), cut(q, n))
    part = distribution_divergence(cut(p, kept_first), cut(q, kept_second))
    assert whole.kl == pytest.approx(
        math.fsum(math.exp(a) * (a - b) for a, b in zip(p, q, strict=True)), abs=1e-6
    )
    assert -1e-9 <= part.kl <= whole.kl + 1e-5
    assert 0 <= part.total_variation <= whole.total_variation + 1e-9
    assert distribution_divergence(cut(p, kept_first), cut(p, kept_first)).kl == pytest.approx(
        0, abs=1e-9
    )


# --- where the answer begins
# --------------------------------------------------------------------------


def test_the_distribution_of_the_token_that_starts_the_answer() -> None:
    told = reply("So", " it is", (" 12", {" 12": 0.75, " 9": 0.25}), ".")
    assert answer_distribution(told, "", "12") == pytest.approx(logs(**{" 12": 0.75, " 9": 0.25}))


def test_the_last_mention_counts_but_after_a_cue_the_first() -> None:
    told = reply((" 12", {"a": 1.0}), ", for 7 + 5 =", (" 12", {"b": 1.0}))
    assert answer_distribution(told, "", "12") == {"b": 0.0}
    assert answer_distribution(told, "So the answer is", "12") == {"a": 0.0}


def test_a_mention_in_the_chain_is_no_answer() -> None:
    told = reply("<think>", (" 12", {"a": 1.0}), "?", "</think>", (" Twelve", {"b": 1.0}))
    assert answer_distribution(told, "", "12") is None
    assert answer_distribution(told, "So the answer is", "12") is None
    assert answer_distribution(told, "", "Twelve") == {"b": 0.0}


def test_an_answer_over_several_tokens_starts_at_its_first() -> None:
    told = reply("is", (" 1", {"x": 1.0}), (",0", {"y": 1.0}), ("80", {"z": 1.0}))
    assert answer_distribution(told, "", "1,080") == {"x": 0.0}


def test_a_continued_cue_begins_with_the_answer() -> None:
    told = reply((" twelve", {" twelve": 1.0}), ".")
    assert answer_distribution(told, "So the answer is", None) == {" twelve": 0.0}
    assert answer_distribution(told, "", None) is None
    assert answer_distribution(told, "", "13") is None


def test_no_distribution_without_lists_or_where_they_are_none() -> None:
    assert answer_distribution(Response("k", "12"), "So", "12") is None
    assert answer_distribution(reply("12"), "So", "12") is None
    assert answer_distribution(reply(("12", {"a": 0.9, "b": 0.8})), "So", "12") is None
    nonsense = Response("k", "12", tokens=(Token("12", 0, (("a", 1e308), ("b", math.nan))),))
    assert answer_distribution(nonsense, "So", "12") is None


def test_tokens_that_decode_to_one_text_are_one() -> None:
    doubled = Response(
        "k", "12", tokens=(Token("12", 0, (("�", math.log(0.25)), ("�", math.log(0.5)))),)
    )
    assert answer_distribution(doubled, "So", "12") == {"�": pytest.approx(math.log(0.75))}
