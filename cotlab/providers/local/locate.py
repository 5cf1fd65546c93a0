"""Where characters of a text lie among its tokens; what cannot be told is refused, never guessed."""

from __future__ import annotations

from typing import Any

from cotlab.core.errors import Unsupported
from cotlab.core.requests import PREFIX, Locate, Located, Span
from cotlab.providers.local.load import Loaded
from cotlab.providers.local.render import encode, offsets_of, render


def locate(loaded: Loaded, request: Locate, layers: int) -> Located:
    """The token positions of the request's spans.

    Raises
    ------
    Unsupported
        If the tokenizer gives no offsets, the template changes a message, or a token reaches over
        the end of a span.
    """
    text = render(loaded, request)
    encode(
        loaded, text
    )  # a word that the model does not know, or a text that is too long for it, is told first
    _, offsets = offsets_of(loaded, text)
    positions = tuple(
        _tokens_inside(text, offsets, *_locate_span(loaded, request, text, span))
        for span in request.spans
    )
    dtype = str(next(loaded.model.parameters()).dtype).removeprefix("torch.")
    return Located(positions, tuple(text[a:b] for a, b in offsets), layers, dtype)


def _locate_span(loaded: Loaded, request: Locate, text: str, span: Span) -> tuple[int, int]:
    """Start and end of a span in the rendered text."""
    if span.part == PREFIX:
        begin = len(text) - len(request.prefix)
        return begin + span.start, begin + span.end
    content = request.messages[span.part].content
    before = text[: len(text) - len(request.prefix)] if request.prefix else text
    rendered = (
        content if content in before else content.strip()
    )  # many templates trim a message, and nothing else
    if not rendered or before.count(rendered) != 1:
        raise Unsupported(
            "a part of the question cannot be located in the rendered text, or stands there more"
            " than once"
        )
    first = before.index(rendered)
    begin = first - content.index(rendered)
    return max(first, begin + span.start), min(first + len(rendered), begin + span.end)


def _tokens_inside(
    text: str, offsets: list[tuple[int, int]], start: int, end: int
) -> tuple[int, ...]:
    positions = []
    for i, (a, b) in enumerate(offsets):
        if a >= b or b <= start or a >= end:
            continue
        outside = text[a : max(a, start)] + text[min(b, end) : b]
        if outside.strip():
            raise Unsupported(
                f"the token {text[a:b]!r} reaches over the end of what is to be located"
            )
        if text[max(a, start) : min(b, end)].strip() or not outside:
            positions.append(i)
    if not positions:
        raise Unsupported("what is to be located has no token of its own")
    return tuple(positions)


def filler_id(tokenizer: Any) -> int:
    """The token that stands for dots: the first of a few spellings that is one known token."""
    for text in (" ...", "...", " .", "."):
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        if len(ids) == 1 and ids[0] != tokenizer.unk_token_id:
            return int(ids[0])
    raise Unsupported("the model has no token for dots, so it has no filler chain")
