"""What a reply of a server holds beside the continuation: an echoed prefix, text after a stop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cotlab.core.errors import BadReply
from cotlab.core.requests import Response, Token


def remove_echo(prefix: str, reply: Response) -> Response:
    """Remove the prefix that a server echoes, and its tokens, from a reply.

    Raises
    ------
    BadReply
        If the reply does not begin with the prefix.
    """
    if not prefix or not reply.text:
        return reply
    echo = echoed_prefix(prefix, reply.text)
    if not echo:
        raise BadReply(
            "the server repeats the assistant prefix before its continuation, but not in this reply"
        )
    text = reply.text.removeprefix(echo)
    return replace(reply, text=text, tokens=tokens_after(echo, text, reply.tokens))


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


def echoed_prefix(prefix: str, text: str) -> str:
    """Return the prefix as ``text`` begins with it, trimmed as templates may; "" without one."""
    return next(
        (
            variant
            for variant in (prefix, prefix.rstrip(), prefix.lstrip(), prefix.strip())
            if variant and text.startswith(variant)
        ),
        "",
    )


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
