"""Requests to token ids, and characters of a text to token positions.

The same rendered text is generated from, scored and patched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from jinja2 import TemplateError

from cotlab.core.errors import Unsupported
from cotlab.core.requests import PREFIX, Complete, Locate, Located, LogProb, Patched, Span
from cotlab.providers.local.load import Loaded


class Scored(NamedTuple):
    """Ids of a text and its answer."""

    ids: list[int]
    """Token ids of both."""
    n: int
    """How many of the last ids are the answer's."""


def render(loaded: Loaded, request: Complete | LogProb | Locate | Patched) -> str:
    """Return the text that the model continues.

    It is rendered by the model's chat template, or as ``Q: question`` and the prefix without one.
    """
    if loaded.has_chat_template:
        messages = [{"role": "system", "content": request.system}] if request.system else []
        messages += [{"role": m.role, "content": m.content} for m in request.messages]
        try:
            turn = loaded.tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True
            )
        except TemplateError as error:
            raise Unsupported(
                f"the model's chat template does not take these turns: {error}"
            ) from error
        return f"{turn}{request.prefix}"
    question = "\n".join(m.content for m in request.messages)
    return f"{loaded.start}Q: {question}\n{request.prefix}"


def encode(loaded: Loaded, text: str) -> list[int]:
    """Token ids of ``text``.

    Raises
    ------
    Unsupported
        If a piece of the text is outside the model's vocabulary, or the text leaves no room for a
        reply.
    """
    ids = _open_ended(
        loaded,
        text,
        loaded.tokenizer(text, add_special_tokens=not loaded.has_chat_template)["input_ids"],
    )
    _check_vocabulary(loaded, text, ids)
    return ids


def offsets_of(loaded: Loaded, text: str) -> tuple[list[int], list[tuple[int, int]]]:
    """Return the token ids of ``text`` and each one's (first, end) characters.

    Raises
    ------
    Unsupported
        If the tokenizer gives no offsets.
    """
    if not getattr(loaded.tokenizer, "is_fast", False):
        raise Unsupported(
            "the tokenizer tells no character offsets, so nothing can be located in a text or"
            " scored there"
        )
    coded = loaded.tokenizer(
        text, add_special_tokens=not loaded.has_chat_template, return_offsets_mapping=True
    )
    ids = _open_ended(loaded, text, coded["input_ids"])
    return ids, [(int(start), int(end)) for start, end in coded["offset_mapping"][: len(ids)]]


def encode_with_answers(loaded: Loaded, text: str, answers: Sequence[str]) -> list[Scored]:
    """Return for each answer the ids of ``text + answer`` and the number of the answer's."""
    out = []
    for answer in answers:
        full_text = text + answer
        ids, offsets = offsets_of(loaded, full_text)
        _check_vocabulary(loaded, full_text, ids)
        n = sum(1 for start, end in offsets if end > len(text) and end > start)
        if not n:
            raise Unsupported("an answer to be scored is empty")
        out.append(Scored(ids, n))
    return out


def context_length(loaded: Loaded) -> int:
    """Return the longest text in tokens, prompt and reply together.

    Some models without a limit say -1.
    """
    limit = getattr(loaded.model.config.get_text_config(), "max_position_embeddings", None)
    return limit if isinstance(limit, int) and limit > 0 else 1 << 20


def _open_ended(loaded: Loaded, text: str, ids: Sequence[int]) -> list[int]:
    """Return ``ids`` without the end of text that some tokenizers append."""
    end = loaded.tokenizer.eos_token_id
    added = (
        len(ids) > 0
        and end is not None
        and ids[-1] == end
        and not text.endswith(loaded.tokenizer.eos_token)
    )
    return list(ids[:-1] if added else ids)


def _check_vocabulary(loaded: Loaded, text: str, ids: Sequence[int]) -> None:
    unknown = loaded.tokenizer.unk_token_id
    if unknown is not None and unknown in ids:
        for i, (start, end) in zip(*offsets_of(loaded, text), strict=True):
            # A token of no characters opens a text; it stands for no word.
            if i == unknown and end > start:
                # A token may span white space alone; then the next word is the unknown one.
                word = text[start:end].strip() or next(iter(text[start:].split()), "")
                raise Unsupported(f"{word!r} is not in the model's vocabulary")
    if len(ids) >= context_length(loaded):
        raise Unsupported(
            f"the text has {len(ids)} tokens, the model takes fewer than {context_length(loaded)}"
        )


def locate(loaded: Loaded, request: Locate, layers: int) -> Located:
    """Return the token positions of the request's spans.

    Raises
    ------
    Unsupported
            If the tokenizer gives no offsets, the template changes a message, or a token crosses
        the end
        of a span. Positions are never guessed.
    """
    text = render(loaded, request)
    encode(loaded, text)  # raises for unknown words and for a text that is too long
    _, offsets = offsets_of(loaded, text)
    positions = tuple(
        _tokens_inside(text, offsets, *_locate_span(loaded, request, text, span))
        for span in request.spans
    )
    dtype = str(next(loaded.model.parameters()).dtype).removeprefix("torch.")
    return Located(positions, tuple(text[a:b] for a, b in offsets), layers, dtype)


def _locate_span(loaded: Loaded, request: Locate, text: str, span: Span) -> tuple[int, int]:
    """Return start and end of a span in the rendered text."""
    if span.part == PREFIX:
        begin = len(text) - len(request.prefix)
        return begin + span.start, begin + span.end
    content = request.messages[span.part].content
    before = text[: len(text) - len(request.prefix)] if request.prefix else text
    # Many templates trim a message, and change nothing else.
    rendered = content if content in before else content.strip()
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
    """Return the token that stands for dots: the first of a few spellings with one token."""
    for text in (" ...", "...", " .", "."):
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        if len(ids) == 1 and ids[0] != tokenizer.unk_token_id:
            return int(ids[0])
    raise Unsupported("the model has no token for dots, so it has no filler chain")
