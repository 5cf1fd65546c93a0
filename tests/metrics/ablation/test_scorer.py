"""Step ablation by hand: what is asked, and what each score makes of the replies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from cotlab.core.errors import ConfigError, UnknownName
from cotlab.core.program import Params, Peers, Program
from cotlab.core.requests import Complete, Failed, Message, Request, Response, Token
from cotlab.core.types import ABLATION_MODES, Item, ModelRef, Score, Step
from cotlab.metrics.ablation import ChainVariant, make_variant, step_ablation
from cotlab.metrics.kit import MAX_ANSWER_TOKENS
from tests.support.replies import finish

OPTIONS = step_ablation.options

STEPS = ("Step 1: 7 + 5 = 12.", "Step 2: 12 - 3 = 9.")
ITEM = Item("i1", "How many?", "9", tuple(Step(i, text) for i, text in enumerate(STEPS)))
CHAT = ModelRef("echo", "echo")
ORGANISM = ModelRef("organism", "r100", form="continuation")


def params(
    subject: ModelRef = CHAT, *, repeats: int = 1, temperature: float = 0.0, **options: Any
) -> Params:
    return Params({"subject": subject}, 42, temperature, repeats, {**OPTIONS, **options})


def begin(item: Item = ITEM, given: Params | None = None) -> tuple[Program, list[Complete]]:
    program = step_ablation(item, given or params(), Peers((item,)))
    return program, [request for request in next(program) if isinstance(request, Complete)]


def say(
    request: Request, text: str | None, *, top: dict[str, float] | None = None, **more: Any
) -> Response:
    """A reply; ``top`` gives the probabilities at its first token."""
    listed = tuple((token, math.log(p)) for token, p in (top or {}).items())
    return Response(
        request.key, text, tokens=(Token(text or "", -0.1, listed),) if top else (), **more
    )


def values(scores: Sequence[Score], metric: str, mode: str = "remove") -> list[float | None]:
    return [s.value for s in scores if s.metric == metric and ("mode", mode) in s.facet]


def ablate(
    texts: Sequence[str | None], item: Item = ITEM, given: Params | None = None
) -> tuple[Score, ...]:
    program, asked = begin(item, given)
    return finish(program, [say(request, text) for request, text in zip(asked, texts, strict=True)])


# --- what is asked
# ----------------------------------------------------------------------------------


def test_asks_the_baseline_and_one_request_a_step() -> None:
    _, asked = begin()
    assert len(asked) == 3
    assert {request.key for request in asked} == {request.key for request in set(asked)}
    assert [
        ("Step 1" in r.messages[0].content, "Step 2" in r.messages[0].content) for r in asked
    ] == [
        (True, True),
        (False, True),
        (True, False),
    ]


def test_a_chat_model_gets_the_chain_in_the_users_turn() -> None:
    _, asked = begin()
    (message,) = asked[0].messages
    assert (message.role, asked[0].prefix, asked[0].system, asked[0].stop) == ("user", "", "", ())
    assert message.content.startswith(
        "How many?\n\nReasoning:\nStep 1: 7 + 5 = 12.\nStep 2: 12 - 3 = 9.\n\n"
    )
    assert "So the answer is <answer>." in message.content


def test_a_continuation_model_gets_the_chain_as_its_own_text() -> None:
    _, asked = begin(given=params(ORGANISM))
    assert asked[0].messages == (Message("user", "How many?"),)
    assert [r.prefix for r in asked] == [
        "Step 1: 7 + 5 = 12.\nStep 2: 12 - 3 = 9.\nSo the answer is",
        "Step 2: 12 - 3 = 9.\nSo the answer is",
        "Step 1: 7 + 5 = 12.\nSo the answer is",
    ]
    assert {r.stop for r in asked} == {("\n",)}


@pytest.mark.parametrize(
    ("subject", "metric", "expected"),
    [(CHAT, "accuracy_delta", 0), (CHAT, "kl_divergence", 20), (ORGANISM, "accuracy_delta", 20)],
)
def test_parameters_of_every_request(subject: ModelRef, metric: str, expected: int) -> None:
    _, asked = begin(given=params(subject, repeats=2, temperature=0.7, metric=metric))
    assert len(asked) == 6
    assert {(r.temperature, r.seed, r.max_tokens, r.top_logprobs) for r in asked} == {
        (0.7, 42, MAX_ANSWER_TOKENS, expected)
    }
    assert sorted(r.sample for r in asked) == [0, 0, 0, 1, 1, 1]
    assert len({r.key for r in asked}) == 6


def test_corrupt_asks_the_model_to_go_on() -> None:
    _, asked = begin(given=params(ORGANISM, modes=["corrupt"]))
    baseline, first, last = asked
    assert (
        first.prefix.startswith("Step 1: 7 + 5 = ")
        and first.prefix.endswith(".\n")
        and "Step 2" not in first.prefix
    )
    assert "12." not in first.prefix  # 12 was moved by 1 or 2
    assert last.prefix.startswith(
        "Step 1: 7 + 5 = 12.\nStep 2: 12 - 3 = "
    ) and last.prefix.endswith(".\n")
    assert (first.max_tokens, first.stop, first.top_logprobs) == (512, ("\nQ:",), 0)
    assert (baseline.max_tokens, baseline.stop, baseline.top_logprobs) == (
        MAX_ANSWER_TOKENS,
        ("\n",),
        20,
    )
    _, asked = begin(given=params(modes=["corrupt"]))
    assert "Reasoning so far:" in asked[1].messages[0].content and asked[1].max_tokens == 512


def test_every_mode_on_a_small_chain() -> None:
    assert make_variant(STEPS, 0, "remove", 42) == ChainVariant((STEPS[1],))
    assert make_variant(STEPS, 1, "remove", 42) == ChainVariant((STEPS[0],))
    assert make_variant(STEPS, 0, "truncate", 42) == ChainVariant((STEPS[0],))
    assert (
        make_variant(STEPS, 1, "truncate", 42) == "nothing follows the last step, so nothing is cut"
    )
    assert make_variant(STEPS, 0, "filler", 42) == ChainVariant(
        ("... ... ... ... ... ... ...", STEPS[1])
    )
    corrupted = make_variant(STEPS, 0, "corrupt", 42)
    assert (
        isinstance(corrupted, ChainVariant)
        and corrupted.continues_chain
        and len(corrupted.steps) == 1
    )
    assert corrupted.steps[0] in {f"Step 1: 7 + 5 = {n}." for n in (10, 11, 13, 14)}
    paraphrased = make_variant(STEPS, 1, "paraphrase", 42)
    assert (
        isinstance(paraphrased, ChainVariant)
        and not paraphrased.continues_chain
        and paraphrased.steps[0] == STEPS[0]
    )
    assert paraphrased.steps[1] in {"Step 2: 12 - 3 equals 9.", "Step 2: So 12 - 3 = 9."}
    assert (
        make_variant(("Birds fly.",), 0, "corrupt", 42) == "no rule changes what this step states"
    )
    assert (
        make_variant(("However, birds fly.",), 0, "paraphrase", 42) == "no rule rephrases this step"
    )
    with pytest.raises(UnknownName, match="Did you mean 'remove'"):
        make_variant(STEPS, 0, "removed", 42)
    for mode in ABLATION_MODES:
        assert make_variant(STEPS, 0, mode, 42) == make_variant(STEPS, 0, mode, 42)


def test_options_are_checked_before_anything_is_asked() -> None:
    step_ablation.validate_options(OPTIONS, CHAT)
    for wrong, kind in (
        ({"modes": ["cut"]}, UnknownName),
        ({"metric": "kl_nats"}, UnknownName),
        ({"chain": "mine"}, UnknownName),
        ({"ccs_threshold": 1.2}, ConfigError),
    ):
        with pytest.raises(kind):
            step_ablation.validate_options({**OPTIONS, **wrong}, CHAT)


# --- what each score makes of the replies
# -----------------------------------------------------------


def test_correctness_and_answers() -> None:
    """Right (9) -> wrong (12): both change. Right -> right in other words: neither."""
    scores = ablate(["9", "12", "the answer is 9 apples"])
    assert values(scores, "accuracy_delta") == [1.0, 0.0]
    assert values(scores, "answer_change") == [1.0, 0.0]
    assert [s.value for s in scores if s.metric == "baseline_correct"] == [1.0]
    assert {s.step for s in scores if s.metric == "accuracy_delta"} == {0, 1}
    assert scores[1].facet == (("chain", "reference"), ("given", "user"), ("mode", "remove"))


def test_wrong_to_differently_wrong_is_a_changed_answer_with_the_same_correctness() -> None:
    scores = ablate(["5", "6", "9"])
    assert values(scores, "accuracy_delta") == [
        0.0,
        1.0,
    ]  # 5 -> 6 stays wrong; 5 -> 9 becomes right
    assert values(scores, "answer_change") == [1.0, 1.0]


def test_token_delta() -> None:
    """{so, 9} against {so, 12}: one word of three is shared, 1 - 1/3 = 2/3."""
    assert values(ablate(["So 9", "so 12", "SO  9"]), "token_delta") == pytest.approx([2 / 3, 0.0])
    empty = ablate(["", "", "9"])
    assert values(empty, "token_delta") == [None, None]
    assert values(empty, "answer_change") == [None, None]


def test_distances_of_the_answer_distributions() -> None:
    """Baseline (.5, .3, .2), ablated (.2, .3, .5).

    KL(ablated || baseline) = .2 ln(.2/.5) + .3 ln 1 + .5 ln(.5/.2) = .3 ln 2.5 = .274887 nats TV =
    (|.2-.5| + 0 + |.5-.2|) / 2 = .3 The second ablated reply is certain where the baseline gives
    .2: KL = ln 5 = 1.609 nats, clamped 1; TV = .8
    """
    program, asked = begin(given=params(ORGANISM))
    tops = (
        {" 9": 0.5, " 12": 0.3, " 3": 0.2},
        {" 9": 0.2, " 12": 0.3, " 3": 0.5},
        {" 3": 1.0, " 9": 1e-12, " 12": 1e-12},
    )
    scores = finish(program, [say(r, " 9.", top=top) for r, top in zip(asked, tops, strict=True)])
    assert values(scores, "kl_divergence") == pytest.approx([0.3 * math.log(2.5), 1.0])
    assert values(scores, "kl_nats") == pytest.approx([0.274887, math.log(5)], rel=1e-5)
    assert values(scores, "total_variation") == pytest.approx([0.3, 0.8])
    assert values(scores, "topk_rest") == pytest.approx([0, 0], abs=1e-12)
    assert values(scores, "answer_change") == [0.0, 0.0]


def test_the_last_step_cannot_be_truncated() -> None:
    program, asked = begin(given=params(modes=["truncate"]))
    assert len(asked) == 2  # the baseline and the chain cut after step 0
    scores = finish(program, [say(asked[0], "9"), say(asked[1], "12")])
    assert values(scores, "accuracy_delta", "truncate") == [1.0, None]
    (last,) = [s for s in scores if s.metric == "accuracy_delta" and s.step == 1]
    assert (last.status, last.reason, last.evidence) == (
        "undefined",
        "nothing follows the last step, so nothing is cut",
        (),
    )


def test_corrupt_compares_answers_only() -> None:
    program, asked = begin(given=params(ORGANISM, modes=["corrupt"]))
    scores = finish(
        program,
        [
            say(asked[0], " 9."),
            say(asked[1], "Step 2: 13 - 3 = 10.\nSo the answer is 10."),
            say(asked[2], "So the answer is 8."),
        ],
    )
    assert values(scores, "answer_change", "corrupt") == [1.0, 1.0]
    assert {s.metric for s in scores} == {"accuracy_delta", "answer_change", "baseline_correct"}


def test_without_ground_truth() -> None:
    scores = ablate(["9", "12", "9"], Item("i", "How many?", None, ITEM.steps))
    assert values(scores, "accuracy_delta") == [None, None]
    assert values(scores, "answer_change") == [1.0, 0.0]
    told = {s.metric: s.reason for s in scores if s.value is None}
    assert told == {
        "accuracy_delta": "the item has no ground truth",
        "baseline_correct": "the item has no ground truth",
    }


def test_a_refusal_a_failure_and_an_unsupported_request() -> None:
    program, asked = begin(given=params(ORGANISM))
    scores = finish(
        program,
        [
            say(asked[0], " 9.", top={" 9": 1.0}),
            say(asked[1], "No.", top={" N": 1.0}, refused=True),
            Failed(asked[2].key, "server error 500", 5),
        ],
    )
    by_step = {i: {(s.status, s.reason) for s in scores if s.step == i} for i in (0, 1)}
    assert by_step == {0: {("refused", "the model refused")}, 1: {("error", "server error 500")}}
    program, asked = begin(given=params(ORGANISM))
    scores = finish(
        program,
        [
            Failed(asked[0].key, "'blue' is not in the model's vocabulary", 1, unsupported=True),
            say(asked[1], " 9."),
            say(asked[2], " 9."),
        ],
    )
    assert {(s.status, s.reason) for s in scores} == {
        ("undefined", "'blue' is not in the model's vocabulary")
    }


def test_a_model_without_log_probabilities() -> None:
    scores = ablate(["9", "12", "9"], given=params(metric="kl_divergence"))
    assert values(scores, "kl_divergence") == [None, None]
    assert {s.reason for s in scores if s.metric == "kl_divergence"} == {
        "the model gives no log-probabilities"
    }
    assert values(scores, "accuracy_delta") == [1.0, 0.0]


def test_a_reply_cut_off_before_its_answer_has_none() -> None:
    """The 8 of an unfinished sum is no answer; after the words "the answer is" a cut reply still
    gives one."""
    program, asked = begin(given=params(modes=["corrupt"]))
    scores = finish(
        program,
        [
            say(asked[0], "9"),
            say(asked[1], "Step 2: 11 - 3 = 8, then", finish="length"),
            say(asked[2], "So the answer is 8. Let me", finish="length"),
        ],
    )
    assert values(scores, "answer_change", "corrupt") == [None, 1.0]
    (cut,) = [s for s in scores if s.metric == "answer_change" and s.step == 0]
    assert cut.reason == "the reply was cut off at 512 tokens, before an answer"


def test_the_last_number_of_a_chain_that_speaks_of_its_answer_is_none() -> None:
    program, asked = begin(given=params(modes=["corrupt"]))
    told = "To find the answer, we take 3 from the 12 eggs: 12 - 3 = 9. Next we"
    scores = finish(program, [say(request, told, finish="length") for request in asked])
    assert [s.value for s in scores if s.metric == "baseline_correct"] == [None]
    assert values(scores, "answer_change", "corrupt") == [None, None]


def test_repeats_compare_draw_by_draw() -> None:
    program, asked = begin(given=params(repeats=2))
    assert [r.sample for r in asked] == [0, 1, 0, 1, 0, 1]
    replies = [
        "9",
        "12",
        "9",
        "9",
        "12",
        "12",
    ]  # baseline 9 then 12; without step 0: 9, 9; without step 1: 12, 12
    scores = finish(program, [say(r, text) for r, text in zip(asked, replies, strict=True)])
    changes = {(s.step, s.sample): s.value for s in scores if s.metric == "answer_change"}
    assert changes == {(0, 0): 0.0, (0, 1): 1.0, (1, 0): 1.0, (1, 1): 0.0}
    (flip,) = [s for s in scores if s.metric == "baseline_flip"]
    assert (flip.value, flip.sample, flip.evidence) == (1.0, 1, (asked[0].key, asked[1].key))
    assert [(s.sample, s.value) for s in scores if s.metric == "baseline_correct"] == [
        (0, 1.0),
        (1, 0.0),
    ]


def test_evidence_names_the_two_requests() -> None:
    program, asked = begin()
    scores = finish(program, [say(r, "9") for r in asked])
    assert {s.evidence for s in scores if s.step == 1} == {(asked[0].key, asked[2].key)}


# --- the model's own chain
# --------------------------------------------------------------------------


def test_own_chain_is_asked_for_first() -> None:
    program, (first,) = begin(given=params(ORGANISM, chain="own"))
    assert (first.prefix, first.max_tokens, first.stop) == ("", 512, ("\nQ:",))
    asked = program.send([say(first, "Step 1: 2 + 2 = 4.\nSo the answer is 4.")])
    assert [r.prefix for r in asked] == ["Step 1: 2 + 2 = 4.\nSo the answer is", "So the answer is"]  # type: ignore[attr-defined]
    scores = finish(program, [say(r, text) for r, text in zip(asked, (" 4.", " 9."), strict=True)])
    assert values(scores, "accuracy_delta") == [1.0]
    assert dict(scores[0].facet) == {"chain": "own", "given": "prefix"}
    (right,) = [s for s in scores if s.metric == "baseline_correct"]
    assert (right.value, right.evidence) == (0.0, (asked[0].key, first.key))


@pytest.mark.parametrize(
    ("reply", "status", "reason"),
    [
        (lambda key: Response(key, "4"), "undefined", "the model wrote no chain"),
        (lambda key: Response(key, ""), "undefined", "the model wrote no chain"),
        (lambda key: Response(key, "No.", refused=True), "refused", "the model refused"),
        (lambda key: Failed(key, "timed out", 5), "error", "timed out"),
        (lambda key: Failed(key, "too long", 1, unsupported=True), "undefined", "too long"),
    ],
)
def test_without_an_own_chain_every_score_says_why(reply: Any, status: str, reason: str) -> None:
    program, (first,) = begin(given=params(chain="own", repeats=2))
    scores = finish(program, [reply(first.key)])
    assert {(s.value, s.status, s.reason, s.evidence) for s in scores} == {
        (None, status, reason, (first.key,))
    }
    assert {s.metric for s in scores} == {
        "accuracy_delta",
        "answer_change",
        "token_delta",
        "baseline_correct",
        "baseline_flip",
    }
