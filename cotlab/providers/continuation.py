"""Whether a server continues an assistant prefix (prefill): a check, and removal of echoes.

Servers treat a prefix in four ways. Some return the continuation alone (vLLM, SGLang), some the
prefix and its continuation (llama.cpp), some reject the request (422 of ``transformers serve``),
and some start a new turn, in which the model answers afresh: such a reply says nothing about the
prefix, and must not be scored.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import replace
from os.path import commonprefix
from typing import Literal

from cotlab.core.errors import BadReply, SelfTestFailed
from cotlab.core.requests import Complete, Failed, Reply, Response, Token

Verdict = Literal["continues", "echoes", "unknown"]
REPLY_TOKENS, REST_TOKENS = 24, 6
"""Output limits of the model's unprefixed reply, from which prefixes are cut, and of the reply to a
prefix."""
CUTS = (2 / 3, 1 / 2, 1 / 3)
"""Shares of the model's reply at which it is cut, in order; the first that is continued suffices.
"""
MIN_PREFIX_WORDS = 4
"""Fewest words of a prefix."""
MIN_REPEAT_CHARS = 12
"""Characters of the prefix's beginning whose repetition shows a new turn, and characters of the
rest that show a continuation."""
MIN_REST_CHARS = 8
"""Characters of the rest that a shorter reply has to give to count as a continuation."""
ADVICE = "Use --given user, or a server that continues a final assistant message."
"""Advice at the end of the messages."""

ContinuationCheck = Generator[Complete, Reply, Verdict | Failed]


def check_continuation(request: Complete, sample: int) -> ContinuationCheck:
    """Find out how a server treats the prefix of ``request``, by two small requests, four at most.

    The model's own greedy reply is cut in two and its beginning given back as a prefix. A server
    that continues returns the rest, whatever the model knows: no prompt of ours and no right answer
    is involved. A server that starts a new turn returns the beginning again, or something else. One
    that echoes returns the prefix and more, which is longer than the reply's limit allows.

    Parameters
    ----------
    request : Complete
        The first request with a prefix; its messages are sent.
    sample : int
        Distinguishes the requests of each check, so that no reply of an earlier server is reused.

    Returns
    -------
    Verdict or Failed
        "unknown" where the check cannot be made: the model's reply is too short to be cut, begins
        with markup or reasoning, or repeats itself. Failed where a request got no reply, so that
        nothing is known and another request has to be tried.

    Raises
    ------
    SelfTestFailed
        If the server starts a new turn, rejects prefixes, or continues none of the beginnings.
    """
    probe = replace(
        request,
        prefix="",
        max_tokens=REPLY_TOKENS,
        temperature=0.0,
        seed=None,
        stop=(),
        top_logprobs=0,
    )
    probe = replace(probe, sample=sample)
    unprefixed = yield probe
    if isinstance(unprefixed, Failed):
        return unprefixed
    cuts = _cuts(unprefixed)
    if not cuts:  # one token after the run's prefix shows an echo as well
        prefix = request.prefix * (
            1 if len(request.prefix) >= MIN_REPEAT_CHARS else MIN_REPEAT_CHARS
        )
        reply = yield replace(probe, prefix=prefix, max_tokens=1)
        if isinstance(reply, Failed):
            return reply
        return "echoes" if _echoed(prefix, reply.text or "") else "unknown"
    verdict: Verdict = "unknown"
    rejected: Failed | None = None
    tried, trimmed = 0, False
    for prefix, rest in cuts:
        # A prefix has more words than its reply may have tokens, so that a reply that holds all of
        # it did not write it.
        reply = yield replace(
            probe, prefix=prefix, max_tokens=min(REST_TOKENS, len(prefix.split()) - 1)
        )
        if isinstance(reply, Failed):
            if not reply.unsupported:
                return reply
            rejected = reply
            continue
        rejected = None
        text = reply.text or ""
        if reply.refused or reply.reasoning:
            continue
        echoed = _echoed(prefix, text)
        text = text.removeprefix(echoed)
        verdict = "echoes" if echoed else verdict
        restart, match = _shared(prefix, text), _shared(rest, text)
        if restart >= MIN_REPEAT_CHARS and restart > match:
            raise SelfTestFailed(
                "The server starts a new turn instead of continuing the assistant's message"
                " (--given prefix): given the beginning of the model's own reply, it wrote the"
                f" same {restart} characters again instead of the rest. Its replies do not follow"
                f" from the chain, so none is scored. {ADVICE}"
            )
        if restart == match > 0:  # the model repeats itself
            continue
        exact = len(commonprefix((rest, text)))  # with the white space that opens the rest
        if exact >= max(MIN_REST_CHARS, min(MIN_REPEAT_CHARS, len(rest), len(text))):
            return "echoes" if echoed else "continues"
        if text and exact == min(len(rest), len(text)):  # correct, but too short to decide
            continue
        tried += 1
        trimmed = trimmed or (0 < match == len(text.lstrip()))
    # Even the shortest, which is shorter than the text that was accepted without a prefix.
    if rejected is not None and not tried:
        raise SelfTestFailed(
            f"The server takes no assistant prefix (--given prefix): {rejected.error}. {ADVICE}"
        )
    if tried:
        raise SelfTestFailed(
            "It could not be established that the server continues the assistant's message"
            " (--given prefix): given the beginning of the model's own reply, it did not return"
            f" the rest ({tried} of {len(cuts)} tries at temperature 0). "
            + ("Its replies lack the white space that the rest begins with. " if trimmed else "")
            + f"It may start a new turn, so no reply is scored. {ADVICE}"
        )
    return verdict


def without_echo(prefix: str, reply: Response) -> Response:
    """Remove the prefix that a server echoes, and its tokens, from a reply.

    Raises
    ------
    BadReply
        If the reply does not begin with the prefix.
    """
    if not prefix or not reply.text:
        return reply
    echoed = _echoed(prefix, reply.text)
    if not echoed:
        raise BadReply(
            "the server repeats the assistant prefix before its continuation, but not in this reply"
        )
    text = reply.text.removeprefix(echoed)
    return replace(reply, text=text, tokens=_tokens_after(echoed, text, reply.tokens))


def _cuts(unprefixed: Response) -> list[tuple[str, str]]:
    """Return (prefix, rest) pairs of the model's reply, cut before white space.

    White space opens a token in nearly every vocabulary, so that the tokens of a prefix are those
    that the model wrote. Short, refused, reasoned or marked-up replies give none.
    """
    if (
        unprefixed.refused
        or unprefixed.reasoning
        or (unprefixed.text or "").lstrip().startswith("<")
    ):
        return []
    text = unprefixed.text or ""
    # White space between words: " 7" of "She has 7".
    blanks = [m.start() for m in re.finditer(r"(?<=\S)\s+(?=\S)", text)]
    positions = dict.fromkeys(
        max((at for at in blanks if at <= part * len(text)), default=0) for part in CUTS
    )
    pairs = [(text[:at], text[at:]) for at in positions]
    return [
        (prefix, rest)
        for prefix, rest in pairs
        if len(prefix) >= MIN_REPEAT_CHARS and len(prefix.split()) >= MIN_PREFIX_WORDS
    ]


def _echoed(prefix: str, text: str) -> str:
    """Return the prefix as ``text`` begins with it, trimmed as templates may; "" without one."""
    return next(
        (
            p
            for p in (prefix, prefix.rstrip(), prefix.lstrip(), prefix.strip())
            if p and text.startswith(p)
        ),
        "",
    )


def _shared(text: str, other: str) -> int:
    """Return the length of the common beginning of two texts, leading white space aside."""
    return len(commonprefix((text.lstrip(), other.lstrip())))


def _tokens_after(echoed: str, text: str, tokens: tuple[Token, ...]) -> tuple[Token, ...]:
    """Return the tokens of ``text`` after those of ``echoed``; () where a token spans both."""
    listed = "".join(token.text for token in tokens)
    if not listed.startswith(echoed) or text.startswith(listed):
        return tokens
    left = len(echoed)
    for n, token in enumerate(tokens):
        if left <= 0:
            return tokens[n:] if left == 0 else ()
        left -= len(token.text)
    return ()
