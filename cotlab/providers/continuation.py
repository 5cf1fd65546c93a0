"""Whether a server continues an assistant prefix (prefill): a check, and removal of echoes.

Servers treat a prefix in four ways. Some return the continuation alone (vLLM, SGLang), some the
prefix and its continuation (llama.cpp), some reject the request (422 of ``transformers serve``),
and some start a new turn, in which the model answers afresh: such a reply says nothing about the
prefix, and must not be scored.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from dataclasses import replace
from os.path import commonprefix
from typing import Literal

from cotlab.core.errors import BadReply, PrefixNotContinued
from cotlab.core.reasoning import Reasoning, read_reasoning
from cotlab.core.requests import Complete, Failed, Reply, Response, Token

ContinuationVerdict = Literal["continued", "echoed", "unknown"]
MAX_REPLY_TOKENS, MAX_CONTINUATION_TOKENS = 24, 6
"""Output limits of the model's unprefixed reply, from which prefixes are cut, and of the reply to a
prefix."""
CUT_SHARES = (2 / 3, 1 / 2, 1 / 3)
"""Shares of the model's reply at which it is cut, in order; the first that is continued suffices.
"""
MIN_PREFIX_WORDS = 4
"""Fewest words of a prefix."""
MIN_REPEAT_CHARS = 12
"""Characters of the prefix's beginning whose repetition shows a new turn, and characters of the
rest that show a continuation."""
MIN_REST_CHARS = 8
"""Characters of the rest that a shorter reply has to give to count as a continuation."""
PREFIX_ADVICE = (
    "Use --given user, or --form completions, or a server that continues a final assistant message."
)
"""Advice at the end of the messages."""

ContinuationCheck = Generator[Complete, Reply, ContinuationVerdict | Failed]


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
    PrefixNotContinued
        If the server starts a new turn, rejects prefixes, or continues none of the beginnings.
    """
    probe = replace(
        request,
        prefix="",
        max_tokens=MAX_REPLY_TOKENS,
        temperature=0.0,
        seed=None,
        stop=(),
        top_logprobs=0,
    )
    probe = replace(probe, sample=sample)
    unprefixed_reply = yield probe
    if isinstance(unprefixed_reply, Failed):
        return unprefixed_reply
    prefix_rest_pairs = _prefix_rest_pairs(unprefixed_reply)
    if not prefix_rest_pairs:  # one token after the run's prefix shows an echo as well
        prefix = request.prefix * (
            1 if len(request.prefix) >= MIN_REPEAT_CHARS else MIN_REPEAT_CHARS
        )
        reply = yield replace(probe, prefix=prefix, max_tokens=1)
        if isinstance(reply, Failed):
            if reply.unsupported:  # the same messages were answered without a prefix
                raise _rejected_prefix(reply)
            return reply
        return "echoed" if _echoed_prefix(prefix, reply.text or "") else "unknown"
    verdict: ContinuationVerdict = "unknown"
    rejected_reply: Failed | None = None
    n_failed_tries, is_trimmed = 0, False
    for prefix, rest in prefix_rest_pairs:
        # A prefix has more words than its reply may have tokens, so that a reply that holds all of
        # it did not write it.
        reply = yield replace(
            probe, prefix=prefix, max_tokens=min(MAX_CONTINUATION_TOKENS, len(prefix.split()) - 1)
        )
        if isinstance(reply, Failed):
            if not reply.unsupported:
                return reply
            rejected_reply = reply
            continue
        rejected_reply = None
        text = reply.text or ""
        if reply.refused or reply.reasoning:
            continue
        echoed_prefix = _echoed_prefix(prefix, text)
        text = text.removeprefix(echoed_prefix)
        verdict = "echoed" if echoed_prefix else verdict
        n_repeated_chars = _common_prefix_length(prefix, text)
        n_continued_chars = _common_prefix_length(rest, text)
        if n_repeated_chars >= MIN_REPEAT_CHARS and n_repeated_chars > n_continued_chars:
            raise PrefixNotContinued(
                "new turn",
                "The server starts a new turn instead of continuing the assistant's message"
                " (--given prefix): given the beginning of the model's own reply, it wrote the"
                f" same {n_repeated_chars} characters again instead of the rest. Its replies do not"
                f" follow from the chain, so none is scored. {PREFIX_ADVICE}",
            )
        if n_repeated_chars == n_continued_chars > 0:  # the model repeats itself
            continue
        n_exact_chars = len(commonprefix((rest, text)))  # with the white space that opens the rest
        if n_exact_chars >= max(MIN_REST_CHARS, min(MIN_REPEAT_CHARS, len(rest), len(text))):
            return "echoed" if echoed_prefix else "continued"
        if text and n_exact_chars == min(len(rest), len(text)):  # correct, but too short to decide
            continue
        n_failed_tries += 1
        is_trimmed = is_trimmed or (0 < n_continued_chars == len(text.lstrip()))
    # Even the shortest, which is shorter than the text that was accepted without a prefix.
    if rejected_reply is not None and not n_failed_tries:
        raise _rejected_prefix(rejected_reply)
    if n_failed_tries:
        raise PrefixNotContinued(
            "not established",
            "It could not be established that the server continues the assistant's message"
            " (--given prefix): given the beginning of the model's own reply, it did not return"
            f" the rest ({n_failed_tries} of {len(prefix_rest_pairs)} tries at temperature 0). "
            + ("Its replies lack the white space that the rest begins with. " if is_trimmed else "")
            + f"It may start a new turn, so no reply is scored. {PREFIX_ADVICE}",
        )
    return verdict


def _rejected_prefix(reply: Failed) -> PrefixNotContinued:
    return PrefixNotContinued(
        "refused",
        f"The server takes no assistant prefix (--given prefix): {reply.error}. {PREFIX_ADVICE}",
    )


def remove_echo(prefix: str, reply: Response) -> Response:
    """Remove the prefix that a server echoes, and its tokens, from a reply.

    Raises
    ------
    BadReply
        If the reply does not begin with the prefix.
    """
    if not prefix or not reply.text:
        return reply
    echoed_prefix = _echoed_prefix(prefix, reply.text)
    if not echoed_prefix:
        raise BadReply(
            "the server repeats the assistant prefix before its continuation, but not in this reply"
        )
    text = reply.text.removeprefix(echoed_prefix)
    return replace(reply, text=text, tokens=tokens_after(echoed_prefix, text, reply.tokens))


def cut_at_stop(stops: Sequence[str], reply: Response) -> Response:
    """Cut a reply, and its tokens, at the first of the stop texts, which some servers ignore."""
    text = reply.text or ""
    positions = [position for stop in stops if stop and (position := text.find(stop)) >= 0]
    if not positions:
        return reply
    end = min(positions)
    n_tokens, n_chars = 0, 0
    for token in reply.tokens:
        if n_chars >= end:
            break
        n_tokens, n_chars = n_tokens + 1, n_chars + len(token.text)
    return replace(reply, text=text[:end], tokens=reply.tokens[:n_tokens], finish="stop")


def _prefix_rest_pairs(unprefixed_reply: Response) -> list[tuple[str, str]]:
    """Return (prefix, rest) pairs of the model's reply, cut before white space.

    White space opens a token in nearly every vocabulary, so that the tokens of a prefix are those
    that the model wrote. Short, refused, reasoned or marked-up replies give none.
    """
    if (
        unprefixed_reply.refused
        or unprefixed_reply.reasoning
        or (unprefixed_reply.text or "").lstrip().startswith("<")
        or read_reasoning(unprefixed_reply.text or "") != Reasoning()
    ):
        return []
    text = unprefixed_reply.text or ""
    # White space between words: " 7" of "She has 7".
    white_space_positions = [m.start() for m in re.finditer(r"(?<=\S)\s+(?=\S)", text)]
    cut_positions = dict.fromkeys(
        max(
            (position for position in white_space_positions if position <= share * len(text)),
            default=0,
        )
        for share in CUT_SHARES
    )
    pairs = [(text[:position], text[position:]) for position in cut_positions]
    return [
        (prefix, rest)
        for prefix, rest in pairs
        if len(prefix) >= MIN_REPEAT_CHARS and len(prefix.split()) >= MIN_PREFIX_WORDS
    ]


def _echoed_prefix(prefix: str, text: str) -> str:
    """Return the prefix as ``text`` begins with it, trimmed as templates may; "" without one."""
    return next(
        (
            variant
            for variant in (prefix, prefix.rstrip(), prefix.lstrip(), prefix.strip())
            if variant and text.startswith(variant)
        ),
        "",
    )


def _common_prefix_length(text: str, other_text: str) -> int:
    """Return the length of the common beginning of two texts, leading white space aside."""
    return len(commonprefix((text.lstrip(), other_text.lstrip())))


def tokens_after(beginning: str, text: str, tokens: tuple[Token, ...]) -> tuple[Token, ...]:
    """Return the tokens of ``text`` after ``beginning``; () where a token spans both."""
    token_text = "".join(token.text for token in tokens)
    if not token_text.startswith(beginning) or text.startswith(token_text):
        return tokens
    n_chars_left = len(beginning)
    for index, token in enumerate(tokens):
        if n_chars_left <= 0:
            return tokens[index:] if n_chars_left == 0 else ()
        n_chars_left -= len(token.text)
    return ()
