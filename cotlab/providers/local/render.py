"""Requests to token ids, and characters of a text to token positions.

The same rendered text is generated from, scored and patched.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any, NamedTuple

from jinja2 import TemplateError

from cotlab.core.errors import Unsupported
from cotlab.core.requests import PREFIX_INDEX, Complete, Locate, Located, LogProb, Patched, Span
from cotlab.core.vocabulary import unknown_word
from cotlab.providers.local.load import LoadedModel, max_positions

_SIGNS = frozenset("+-*/=")
"""Signs of arithmetic: a chain without them says something else."""


class AnswerIds(NamedTuple):
    """Ids of a text and its answer."""

    ids: list[int]
    """Token ids of both."""
    n_answer: int
    """How many of the last ids are the answer's."""


def render_prompt(loaded_model: LoadedModel, request: Complete | LogProb | Locate | Patched) -> str:
    """Return the text that the model continues.

    It is rendered by the model's chat template, or as ``Q: question`` and the prefix without one.
    """
    if loaded_model.has_chat_template:
        messages = [{"role": "system", "content": request.system}] if request.system else []
        messages += [{"role": m.role, "content": m.content} for m in request.messages]
        try:
            chat_text = loaded_model.tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True
            )
        except TemplateError as error:
            raise Unsupported(
                f"the model's chat template does not take these turns: {error}"
            ) from error
        return f"{chat_text}{request.prefix}"
    question = "\n".join(m.content for m in request.messages)
    return f"{loaded_model.prompt_prefix}Q: {question}\n{request.prefix}"


def encode(loaded_model: LoadedModel, text: str) -> list[int]:
    """Token ids of ``text``.

    Raises
    ------
    Unsupported
        If a piece of the text is outside the model's vocabulary, the tokenizer drops one, or the
        text leaves no room for a reply.
    """
    if getattr(loaded_model.tokenizer, "is_fast", False):
        ids, offsets = encode_with_offsets(loaded_model, text)
        _check_vocabulary(loaded_model, text, ids, offsets)
        return ids
    encoding = loaded_model.tokenizer(text, add_special_tokens=not loaded_model.has_chat_template)
    ids = _remove_end_token(loaded_model, text, encoding["input_ids"])
    _check_vocabulary(loaded_model, text, ids)
    return ids


def encode_with_offsets(
    loaded_model: LoadedModel, text: str
) -> tuple[list[int], list[tuple[int, int]]]:
    """Return the token ids of ``text`` and each one's (first, end) characters.

    Raises
    ------
    Unsupported
        If the tokenizer gives no offsets.
    """
    if not getattr(loaded_model.tokenizer, "is_fast", False):
        raise Unsupported(
            "the tokenizer gives no character offsets, so nothing can be located in a text or"
            " scored there"
        )
    encoding = loaded_model.tokenizer(
        text, add_special_tokens=not loaded_model.has_chat_template, return_offsets_mapping=True
    )
    ids = _remove_end_token(loaded_model, text, encoding["input_ids"])
    return ids, [(int(start), int(end)) for start, end in encoding["offset_mapping"][: len(ids)]]


def encode_with_answers(
    loaded_model: LoadedModel, text: str, answers: Sequence[str]
) -> list[AnswerIds]:
    """Return for each answer the ids of ``text + answer`` and the number of the answer's."""
    answer_ids = []
    for answer in answers:
        full_text = text + answer
        ids, offsets = encode_with_offsets(loaded_model, full_text)
        _check_vocabulary(loaded_model, full_text, ids, offsets)
        n_answer = sum(1 for start, end in offsets if end > len(text) and end > start)
        if not n_answer:
            raise Unsupported("an answer to be scored is empty")
        answer_ids.append(AnswerIds(ids, n_answer))
    return answer_ids


def _remove_end_token(loaded_model: LoadedModel, text: str, ids: Sequence[int]) -> list[int]:
    """Return ``ids`` without the end of text that some tokenizers append."""
    end_id = loaded_model.tokenizer.eos_token_id
    has_added_end = (
        len(ids) > 0
        and end_id is not None
        and ids[-1] == end_id
        and not text.endswith(loaded_model.tokenizer.eos_token)
    )
    return list(ids[:-1] if has_added_end else ids)


def _check_vocabulary(
    loaded_model: LoadedModel,
    text: str,
    ids: Sequence[int],
    offsets: Sequence[tuple[int, int]] | None = None,
) -> None:
    """Raise Unsupported for words without a token, and for a text that is too long.

    ``offsets`` are the tokens' (first, end) characters; None where the tokenizer gives none.
    """
    unknown_id = loaded_model.tokenizer.unk_token_id
    if unknown_id is not None and unknown_id in ids:
        for i, (start, end) in zip(*encode_with_offsets(loaded_model, text), strict=True):
            # A token of no characters opens a text; it stands for no word.
            if i == unknown_id and end > start:
                pieces = loaded_model.tokenizer.get_vocab().keys()
                raise Unsupported(unknown_word(text, start, end, pieces).reason)
    if offsets is not None and _drops_text(loaded_model, text, ids, offsets):
        raise Unsupported(
            "the tokenizer drops letters, digits or signs of the text, so the model would not read"
            " all of it. Its vocabulary has no tokens for them, or config.json names another kind"
            " of model than the tokenizer's"
        )
    if len(ids) >= max_positions(loaded_model.model):
        raise Unsupported(
            f"the text has {len(ids)} tokens, the model takes fewer than"
            f" {max_positions(loaded_model.model)}"
        )


def _drops_text(
    loaded_model: LoadedModel, text: str, ids: Sequence[int], offsets: Sequence[tuple[int, int]]
) -> bool:
    """Return whether letters, digits or signs of a text are in none of its tokens.

    Its tokens are read again, for the places that the library gives are moved where it drops a
    character. A tokenizer may write a character as several, and never as none.
    """
    text_ids = [i for i, (start, end) in zip(ids, offsets, strict=True) if end > start]
    reread_text = loaded_model.tokenizer.decode(text_ids, clean_up_tokenization_spaces=False)
    if "".join(reread_text.split()) == "".join(text.split()):
        return False
    n_expected = min(map(_n_read, (text, unicodedata.normalize("NFKC", text))))
    return _n_read(reread_text) < n_expected


def _n_read(text: str) -> int:
    """Count the characters that a chain's meaning rests on."""
    return sum(character.isalnum() or character in _SIGNS for character in text)


def locate_spans(loaded_model: LoadedModel, request: Locate, n_layers: int) -> Located:
    """Return the token positions of the request's spans.

    Raises
    ------
    Unsupported
            If the tokenizer gives no offsets, the template changes a message, or a token crosses
        the end of a span. Positions are never guessed.
    """
    text = render_prompt(loaded_model, request)
    encode(loaded_model, text)  # raises for unknown words and for a text that is too long
    _, offsets = encode_with_offsets(loaded_model, text)
    positions = tuple(
        _tokens_inside(text, offsets, *_locate_span(loaded_model, request, text, span))
        for span in request.spans
    )
    dtype = str(next(loaded_model.model.parameters()).dtype).removeprefix("torch.")
    return Located(
        positions,
        tuple(text[token_start:token_end] for token_start, token_end in offsets),
        n_layers,
        dtype,
    )


def _locate_span(
    loaded_model: LoadedModel, request: Locate, text: str, span: Span
) -> tuple[int, int]:
    """Return start and end of a span in the rendered text."""
    if span.part == PREFIX_INDEX:
        base_position = len(text) - len(request.prefix)
        return base_position + span.start, base_position + span.end
    content = request.messages[span.part].content
    text_before_prefix = text[: len(text) - len(request.prefix)] if request.prefix else text
    # Many templates trim a message, and change nothing else.
    rendered_content = content if content in text_before_prefix else content.strip()
    if not rendered_content or text_before_prefix.count(rendered_content) != 1:
        raise Unsupported(
            "a part of the question cannot be located in the rendered text, or stands there more"
            " than once"
        )
    content_start = text_before_prefix.index(rendered_content)
    base_position = content_start - content.index(rendered_content)
    return max(content_start, base_position + span.start), min(
        content_start + len(rendered_content), base_position + span.end
    )


def _tokens_inside(
    text: str, offsets: list[tuple[int, int]], span_start: int, span_end: int
) -> tuple[int, ...]:
    positions = []
    for i, (token_start, token_end) in enumerate(offsets):
        if token_start >= token_end or token_end <= span_start or token_start >= span_end:
            continue
        outside_text = (
            text[token_start : max(token_start, span_start)]
            + text[min(token_end, span_end) : token_end]
        )
        if outside_text.strip():
            raise Unsupported(
                f"the token {text[token_start:token_end]!r} reaches over the end of what is to be"
                " located"
            )
        if (
            text[max(token_start, span_start) : min(token_end, span_end)].strip()
            or not outside_text
        ):
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
