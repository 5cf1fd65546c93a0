"""Drive a scorer's program with replies, and replies that are a pure function of the request."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from cotlab.core.requests import (
    Complete,
    Embed,
    Entail,
    Failed,
    Locate,
    Located,
    LogProb,
    Patched,
    Reply,
    Request,
    Response,
    StepRewards,
    Token,
)
from cotlab.text.prompts.comparison import support_prompt


class Driven(NamedTuple):
    """A program that has ended."""

    result: Any
    """What it returned: the scores of an item, or the constants of a preparation."""
    rounds: tuple[tuple[Any, ...], ...]
    """The requests of each round."""
    replies: Mapping[str, Reply]
    """Every reply that it was sent, by request key."""

    @property
    def requests(self) -> list[Any]:
        """The requests of all rounds."""
        return [request for round_ in self.rounds for request in round_]


def drive_rounds(
    program: Generator[Sequence[Request], Sequence[Reply], Any],
    answer_round: Callable[[Sequence[Request]], Sequence[Reply]],
) -> Driven:
    """Run a program to its end, answering a round at a time."""
    rounds: list[tuple[Request, ...]] = []
    sent: dict[str, Reply] = {}
    replies: Sequence[Reply] | None = None
    while True:
        try:
            round_ = next(program) if replies is None else program.send(replies)
        except StopIteration as end:
            return Driven(end.value, tuple(rounds), sent)
        rounds.append(tuple(round_))
        replies = answer_round(round_)
        sent |= {reply.key: reply for reply in replies}


def drive(
    program: Generator[Sequence[Request], Sequence[Reply], Any],
    reply: Callable[[Any], Reply],
) -> Driven:
    """Run a program to its end, answering each request."""
    return drive_rounds(program, lambda round_: [reply(request) for request in round_])


def batch_replies(model: Any, round_: Sequence[Request]) -> list[Reply]:
    """Return the replies of a local model; what it cannot take is unsupported."""
    return [
        Failed(request.key, str(reply), 0, unsupported=True)
        if isinstance(reply, Exception)
        else reply
        for request, reply in zip(round_, model.send_batch(round_), strict=True)
    ]


def finish(
    program: Generator[Sequence[Request], Sequence[Reply], Any],
    replies: Sequence[Reply] | None = None,
) -> Any:
    """Send a program its last replies (None: it asks nothing), and return what it returns."""
    try:
        round_ = next(program) if replies is None else program.send(replies)
    except StopIteration as end:
        return end.value
    raise AssertionError(f"it asks for more: {round_}")


@dataclass(frozen=True)
class Body:
    """A reply without its key."""

    text: str | None = None
    top: tuple[tuple[str, float], ...] | None = None
    missing: str = ""
    number: float | None = None


def answer(request: Request, body: Body) -> Reply:
    if body.missing in ("failed", "unsupported"):
        return Failed(
            request.key, "the server was away", 3, unsupported=body.missing == "unsupported"
        )
    tokens = (
        ()
        if body.top is None
        else (Token(body.text or "x", -0.5, body.top), Token(".", -0.1, body.top))
    )
    if isinstance(request, LogProb) and request.top_logprobs and body.top is not None:
        tokens = in_tokens("".join(request.answers), body.top)
    elif (
        isinstance(request, Complete)
        and request.top_logprobs
        and not request.prefix
        and body.top is not None
    ):
        tokens = in_tokens(body.text or "", body.top)
    spread = random.Random(request.key)
    if isinstance(request, Embed):
        vectors = tuple(tuple(spread.gauss(0, 1) for _ in range(3)) for _ in request.texts)
        return Response(request.key, vectors=vectors, refused=body.missing == "refused")
    if isinstance(request, Complete):
        verdict = verdict_for(request)
        text = verdict if verdict and body.text == constant().text else body.text
        return Response(
            request.key,
            text,
            tokens=tokens,
            # a reply whose last sentence ended was not cut off
            finish="stop"
            if (verdict and text == verdict) or (text or "").endswith(".")
            else spread.choice(("stop", "length")),
            refused=body.missing == "refused",
        )
    if isinstance(request, Locate):
        places = [
            (100 * (span.part + 2) + span.start, max(1, (span.end - span.start) // 3))
            for span in request.spans
        ]
        pieces = ("x",) * (100 * (len(request.messages) + 2))
        positions = tuple(tuple(range(a, a + n)) for a, n in places)
        return Response(request.key, located=Located(positions, pieces, 3))
    n = (
        len(request.answers)
        if isinstance(request, LogProb)
        else len(request.rows)
        if isinstance(request, Patched)
        else len(request.steps)
        if isinstance(request, StepRewards)
        else 1
    )
    reply = Response(
        request.key,
        numbers=tuple(
            spread.random()
            if isinstance(request, Entail | StepRewards)
            else body.number or -spread.random() * 9
            for _ in range(n)
        ),
    )
    if isinstance(request, StepRewards):
        return replace(reply, refused=body.missing == "refused")
    if isinstance(request, LogProb) and request.top_logprobs:
        return replace(reply, tokens=tokens, refused=body.missing == "refused")
    return reply


VERDICT = '{"score": 4, "reason": "the steps of response 2 are not used"}'
"""What a judge says that reads nothing and always blames what stands second."""


CONFIDENCE = "0.9"
"""What a verifier says that reads nothing and finds that every step follows."""
CRITIC_VERDICTS = {
    "first_wrong_step": '{"checks": "none is read", "first_wrong_step": 1}',
    "legibility": '{"reason": "short", "legibility": 0.5, "question_coverage": 1}',
}
"""What a critic says that reads nothing, by a key of the form that it is asked for."""


def asks_for_verdict(request: Request) -> bool:
    return isinstance(request, Complete) and '{"score": NUMBER' in request.system


def is_support_question(request: Complete) -> bool:
    """Whether it is asked how sure a model is that a step follows from those before."""
    asked = support_prompt("", "").messages[0].content.splitlines()[-1]
    return bool(request.messages) and request.messages[-1].content.endswith(asked)


def verdict_for(request: Complete) -> str | None:
    """What a judge, critic or verifier says that reads nothing; None where none is asked."""
    if asks_for_verdict(request):
        return VERDICT
    if is_support_question(request):
        return CONFIDENCE
    keys = request.reply_schema.get("properties", {})
    return next((text for key, text in CRITIC_VERDICTS.items() if key in keys), None)


def in_tokens(text: str, *tops: tuple[tuple[str, float], ...]) -> tuple[Token, ...]:
    """``text`` as tokens, a word with the white space before it each; the lists of alternatives
    take turns."""
    words = re.findall(r"\s*\S+|\s+$", text)
    return tuple(Token(word, -0.5, tops[i % len(tops)]) for i, word in enumerate(words))


def distribution(weights: list[float], kept: int) -> tuple[tuple[str, float], ...]:
    total = sum(weights)
    listed = [(f" {i}", math.log(w / total)) for i, w in enumerate(weights) if w > 0]
    return tuple(sorted(listed, key=lambda pair: -pair[1])[:kept])


def constant(missing: str = "") -> Body:
    text = "Step 1: 7 + 5 = 12.\nStep 2: 12 - 3 = 9.\nSo the answer is 9."
    return Body(text, distribution([0.7, 0.2, 0.1], 3), missing)


def following(request: Request) -> Response:
    """A model that follows its chain: every question has another answer, and patching the chain
    costs it most."""
    if isinstance(request, Complete) and request.prefix.endswith("So the answer is"):
        told = sum(map(ord, request.prefix + request.messages[0].content)) % 1000
        reply = answer(request, replace(constant(), text=f" {told}."))
    elif isinstance(request, Patched):
        numbers = tuple(-0.5 if row.at and row.at[0] >= 200 else -1.0 for row in request.rows)
        reply = Response(request.key, numbers=numbers)
    elif (
        isinstance(request, Complete | LogProb) and request.top_logprobs
    ):  # ever less sure from token to token
        told = "Step 1: 7 + 5 = 12.\nStep 2: 12 - 3 = 9.\nStep 3: 9 + 1 = 10.\nSo the answer is 10."
        reply = answer(request, replace(constant(), text=told))
        assert isinstance(reply, Response)
        sure = [distribution([20.0, *[float(i)] * 4], 5) for i in range(len(reply.tokens))]
        reply = replace(
            reply,
            tokens=tuple(replace(t, top=top) for t, top in zip(reply.tokens, sure, strict=True)),
        )
    else:
        reply = answer(request, replace(constant(), number=-0.1))
    assert isinstance(reply, Response)
    return reply
