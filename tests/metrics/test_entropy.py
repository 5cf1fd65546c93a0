"""Entropy over the steps of a chain by hand: what is asked, how tokens find their step, and what
each score makes of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from cotlab.core.errors import ConfigError, UnknownName
from cotlab.core.program import Params, Peers, Program
from cotlab.core.requests import Complete, Failed, LogProb, Message, Request, Response, Token
from cotlab.core.types import Item, ModelRef, Score, Step
from cotlab.metrics.entropy import (
    CARDS,
    MAX_ENTROPY,
    entropy,
    spearman_trend,
    token_entropy,
    token_starts,
    tokens_by_step,
)
from cotlab.providers.local.provider import LocalModel, open_organism
from cotlab.suites.wordproblems import make_suite
from tests.support.replies import finish

OPTIONS = entropy.options

STEPS = ("Go left.", "Go right.", "Go up.", "Go down.")
ITEM = Item("i1", "Where?", "down", tuple(Step(i, text) for i, text in enumerate(STEPS)))
ORGANISM = ModelRef("organism", "r100", form="continuation")
CHAT = ModelRef("echo", "echo")


def params(subject: ModelRef = ORGANISM, **options: Any) -> Params:
    return Params({"subject": subject}, options={**OPTIONS, **options})


def begin(given: Params, item: Item = ITEM) -> tuple[Program, Request]:
    program = entropy(item, given, Peers((item,)))
    (request,) = next(program)
    return program, request


def uniform(n: int) -> tuple[tuple[str, float], ...]:
    """n equally likely tokens: their entropy is ln n."""
    return tuple((f"t{i}", -math.log(n)) for i in range(n))


def worded(*sizes: Sequence[int], steps: Sequence[str] = STEPS) -> tuple[Token, ...]:
    """Two tokens a step and the line end; step i's two tokens are uniform over ``sizes[i]``
    alternatives."""
    found = []
    for text, pair in zip(steps, sizes, strict=True):
        for word, n in zip((text[:2], text[2:]), pair, strict=True):
            found.append(Token(word, -1.0, uniform(n)))
        found.append(Token("\n", -1.0, uniform(19)))  # between steps: counted in none
    return tuple(found)


def scored(*sizes: Sequence[int], **options: Any) -> tuple[Score, ...]:
    program, request = begin(params(**options))
    return finish(program, [Response(request.key, numbers=(-1.0,), tokens=worded(*sizes))])


def values(scores: Sequence[Score], metric: str) -> list[float | None]:
    return [score.value for score in scores if score.metric == metric]


# --- one token
# --------------------------------------------------------------------------------------


def test_uniform_over_twenty_gives_ln_twenty() -> None:
    assert token_entropy(uniform(20)) == pytest.approx(math.log(20), abs=1e-12)


def test_the_rest_of_the_mass_counts_as_one_token() -> None:
    # 1/2, 1/4 listed, 1/4 left: ½ ln 2 + ¼ ln 4 + ¼ ln 4 = 1.5 ln 2
    assert token_entropy((("a", math.log(0.5)), ("b", math.log(0.25)))) == pytest.approx(
        1.5 * math.log(2), abs=1e-12
    )
    # 20 alternatives of 1/21 each and a rest of 1/21: the largest value there is
    assert token_entropy(tuple((str(i), -math.log(21)) for i in range(20))) == pytest.approx(
        MAX_ENTROPY, abs=1e-12
    )


def test_it_is_a_lower_bound() -> None:
    assert token_entropy(uniform(1000)[:20]) < math.log(1000)  # type: ignore[operator]
    assert token_entropy(uniform(1000)) <= MAX_ENTROPY  # type: ignore[operator]
    assert token_entropy((("a", 0.0), ("b", -math.inf))) == 0


@pytest.mark.parametrize(
    "top", [(), (("a", math.nan),), (("a", 0.5),), (("a", -0.1), ("b", -0.1)), (("a", -math.inf),)]
)
def test_what_is_no_distribution_has_no_entropy(top: tuple[tuple[str, float], ...]) -> None:
    assert token_entropy(top) is None


# --- tokens to steps
# --------------------------------------------------------------------------------


def tokens(*texts: str) -> list[Token]:
    return [Token(text, -1.0) for text in texts]


@pytest.mark.parametrize(
    ("pieces", "text", "starts"),
    [
        (("Go", " left", ".", "\n", "Up"), "Go left.\nUp", [0, 3, 7, 8, 9]),
        ((" Go", " on"), "Go on", [0, 3]),  # the vendor leaves out the first space
        (("Go", " on"), " Go on", [1, 4]),
        (("Go", " on", ".\nQ", ":"), "Go on.", [0, 3, 5]),  # cut at a stop word
        (("2", " \ufffd", "\ufffd", " 3"), "2 × 3", [0, 2, 2, 4]),  # a character in two tokens
        (("a", "\ufffd", "\ufffd", "\ufffd", "b"), "a…b", [0, 1, 1, 1, 2]),
        (("a", "\ufffd", "\ufffd", "\nQ", ":"), "a×", [0, 1, 1]),  # both
        (("a", "bytes: \\xe2\\x80", "\\xa6", "b"), "a …b", [0, 2, 2, 3]),  # the bytes spelt out
        (("a", "\\xe2", "b"), "a\\xe2b", [0, 1, 5]),  # and a text that spells them
        (("\n\n", "Go", " on"), "Go on", [-1, 0, 3]),  # white space that the vendor cut off
        ((" ", "Go", "  ", "on"), " Go  on", [0, 1, 3, 5]),
    ],
)
def test_where_tokens_begin(pieces: tuple[str, ...], text: str, starts: list[int]) -> None:
    assert token_starts(tokens(*pieces), text) == starts


@pytest.mark.parametrize(
    ("pieces", "text"), [(("Go", " up"), "Go on"), (("Go",), "Go on"), ((), "Go")]
)
def test_tokens_that_are_not_the_text_have_no_place(pieces: tuple[str, ...], text: str) -> None:
    assert token_starts(tokens(*pieces), text) is None


def test_a_token_over_two_steps_belongs_to_the_one_it_begins_in() -> None:
    found = tokens_by_step(tokens("Go", ".\nUp", "."), "Go.\nUp.", [(0, 3), (4, 7)])
    assert found is not None and [[token.text for token in step] for step in found] == [
        ["Go", ".\nUp"],
        ["."],
    ]


# --- what is asked
# ----------------------------------------------------------------------------------


def test_a_given_chain_is_scored_as_the_models_own_turn() -> None:
    _, request = begin(params())
    chain = "Go left.\nGo right.\nGo up.\nGo down.\n"
    assert request == LogProb(
        ORGANISM, (Message("user", "Where?"),), (chain,), prefix="", top_logprobs=20
    )


def test_the_own_chain_is_asked_for_as_ablation_does_with_alternatives() -> None:
    from cotlab.metrics.ablation import step_ablation

    given = Params({"subject": ORGANISM}, options={**step_ablation.options, "chain": "own"})
    (asked,) = next(step_ablation(ITEM, given, Peers((ITEM,))))
    _, request = begin(params(chain="own"))
    assert isinstance(asked, Complete) and request == replace(asked, top_logprobs=20)


def test_options_are_checked_before_anything_is_asked() -> None:
    entropy.validate_options(OPTIONS, CHAT)
    with pytest.raises(UnknownName):
        entropy.validate_options({**OPTIONS, "chain": "mine"}, CHAT)
    with pytest.raises(ConfigError, match="jump_nats"):
        entropy.validate_options({**OPTIONS, "jump_nats": -1}, CHAT)


# --- what is made of it
# -----------------------------------------------------------------------------


def test_mean_and_peak_of_a_step() -> None:
    scores = scored((2, 8), (1, 1), (4, 4), (1, 16))
    ln = math.log
    assert values(scores, "step_entropy") == pytest.approx(
        [2 * ln(2), 0, 2 * ln(2), 2 * ln(2)], abs=1e-9
    )
    assert values(scores, "step_entropy_peak") == pytest.approx(
        [3 * ln(2), 0, 2 * ln(2), 4 * ln(2)], abs=1e-9
    )
    assert {score.evidence for score in scores} == {(begin(params())[1].key,)}


def test_a_jump_after_rising_entropy_is_flagged() -> None:
    # 0, ln 2 = 0.69, ln 8 = 2.08: over the mean before by 0.69, then by 1.73; the second step had
    # risen already
    scores = scored((1, 1), (2, 2), (8, 8), (8, 8))
    assert values(scores, "entropy_jump") == [
        None,
        1.0,
        1.0,
        1.0,
    ]  # the last: 2.08 − mean(0, 0.69, 2.08) = 1.16
    assert values(scores, "entropy_rise") == [None, None, 1.0, 1.0]


def test_a_jump_out_of_falling_entropy_is_no_rise() -> None:
    scores = scored((2, 2), (1, 1), (8, 8), (1, 1))
    assert values(scores, "entropy_jump") == [None, 0.0, 1.0, 0.0]
    assert values(scores, "entropy_rise") == [None, None, 0.0, 0.0]


def test_the_threshold_of_a_jump() -> None:
    assert values(scored((1, 1), (2, 2), (1, 1), (1, 1), jump_nats=0.7), "entropy_jump")[1] == 0.0
    assert values(scored((1, 1), (2, 2), (1, 1), (1, 1), jump_nats=0.6), "entropy_jump")[1] == 1.0


@pytest.mark.parametrize(
    ("sizes", "rho"),
    [
        ((1, 2, 4, 8), 1.0),
        ((8, 4, 2, 1), -1.0),
        ((2, 1, 4, 8), 0.8),
    ],  # the last: 1 − 6·2/(4·15) = 0.8
)
def test_trend(sizes: tuple[int, ...], rho: float) -> None:
    assert values(scored(*((n, n) for n in sizes)), "entropy_trend") == [pytest.approx(rho)]


def test_no_trend_of_two_steps_or_of_equal_ones() -> None:
    assert (
        spearman_trend([1.0, None, 2.0]) is None and spearman_trend([1.0, 1.0, 1.0 + 1e-12]) is None
    )
    (score,) = [s for s in scored((3, 3), (3, 3), (3, 3), (3, 3)) if s.metric == "entropy_trend"]
    assert (score.value, score.reason) == (None, "every step has the same entropy")


def test_a_token_without_a_list_makes_its_step_undefined_and_no_other() -> None:
    program, request = begin(params())
    given = list(worded((2, 2), (2, 2), (8, 8), (8, 8)))
    given[3] = replace(given[3], top=())
    scores = finish(program, [Response(request.key, numbers=(-1.0,), tokens=tuple(given))])
    assert [value is None for value in values(scores, "step_entropy")] == [
        False,
        True,
        False,
        False,
    ]
    assert values(scores, "entropy_rise") == [
        None,
        None,
        None,
        None,
    ]  # each compares with the step that has none
    assert values(scores, "entropy_jump")[2] == 1.0


# --- what is missing
# --------------------------------------------------------------------------------


def told(scores: Sequence[Score]) -> set[tuple[str, str | None]]:
    assert [score.metric for score in scores] == [card.name for card in CARDS]
    return {(score.status, score.reason) for score in scores}


def test_a_given_chain_needs_a_local_model() -> None:
    program = entropy(ITEM, params(CHAT), Peers((ITEM,)))
    end = finish(program)
    assert told(end) == {
        ("undefined", "only a local model tells the entropy of a given chain: --chain own")
    }


def test_missing_replies_keep_their_status() -> None:
    def asked(make: Any) -> tuple[Score, ...]:
        program, request = begin(params(CHAT, chain="own"))
        return finish(program, [make(request.key)])

    assert told(asked(lambda key: Failed(key, "away", 3))) == {("error", "away")}
    assert told(asked(lambda key: Failed(key, "no", 1, unsupported=True))) == {("undefined", "no")}
    assert told(asked(lambda key: Response(key, "No.", refused=True))) == {
        ("refused", "the model refused")
    }
    plain = Response("", "1. Go left.\n2. Go up.")
    assert told(asked(lambda key: replace(plain, key=key))) == {
        ("undefined", "the model gives no log-probabilities")
    }
    hidden = replace(
        plain, reasoning="1. Go left.\n2. Go up.", tokens=worded((2, 2), steps=STEPS[:1])
    )
    why = "the vendor tells the reasoning without its log-probabilities"
    assert told(asked(lambda key: replace(hidden, key=key))) == {("undefined", why)}
    other = replace(plain, tokens=worded((2, 2), steps=STEPS[:1]))
    why = "the tokens with log-probabilities do not add up to the text of the chain"
    assert told(asked(lambda key: replace(other, key=key))) == {("undefined", why)}


# --- an organism
# ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def organism() -> LocalModel:
    return open_organism(ORGANISM)


@pytest.mark.parametrize("chain", ["reference", "own"])
def test_a_real_organism(organism: LocalModel, chain: str) -> None:
    defined = 0
    for item in make_suite(8, seed=3).items:
        program, request = begin(params(organism.ref, chain=chain), item)
        (reply,) = organism.send_batch([request])
        assert isinstance(reply, Response)
        scores = finish(program, [reply])
        found = values(scores, "step_entropy")
        assert all(value is not None and 0 <= value <= MAX_ENTROPY for value in found), scores
        peaks = values(scores, "step_entropy_peak")
        assert all(peak >= mean for peak, mean in zip(peaks, found, strict=True))  # type: ignore[operator]
        if chain == "reference":
            assert len(found) == len(item.steps)
        defined += len(found)
    assert defined >= 16


def test_alternatives_leave_the_numbers_of_a_given_chain_as_they_are(organism: LocalModel) -> None:
    item = make_suite(1, seed=3).items[0]
    _, request = begin(params(organism.ref), item)
    assert isinstance(request, LogProb)
    two = replace(request, answers=(request.answers[0], "Step 1: 3 + 4 = 7.\n"))
    full, bare = organism.send_batch([two, replace(two, top_logprobs=0)])
    assert isinstance(full, Response) and isinstance(bare, Response)
    assert full.numbers == pytest.approx(bare.numbers, abs=1e-5)
    assert not bare.tokens and {len(token.top) for token in full.tokens} == {20}
    assert math.fsum(token.logprob for token in full.tokens) == pytest.approx(
        sum(full.numbers or ()), abs=1e-5
    )
    assert [pair for token in full.tokens for pair in token.top if pair[1] > 1e-6] == []


def test_the_entropy_of_a_token_is_that_of_the_whole_vocabulary_or_less(
    organism: LocalModel,
) -> None:
    """Twenty alternatives and the rest against every token of the vocabulary: Σ −p ln p over all of
    them."""
    item = make_suite(1, seed=3).items[0]
    _, request = begin(params(organism.ref), item)
    assert isinstance(request, LogProb)
    all_, some = organism.send_batch([replace(request, top_logprobs=10**6), request])
    assert (
        isinstance(all_, Response)
        and isinstance(some, Response)
        and len(all_.tokens) == len(some.tokens) > 10
    )
    for whole, part in zip(all_.tokens, some.tokens, strict=True):
        exact = -math.fsum(math.exp(logp) * logp for _, logp in whole.top)
        bound = token_entropy(part.top)
        assert bound is not None and bound <= exact + 1e-5
        assert bound == pytest.approx(
            exact, abs=0.05
        )  # an organism is sure enough for 20 to say nearly all
