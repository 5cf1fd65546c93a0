"""Batched decoding with a KV cache. Each row has its own seed and shape: batching changes none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from transformers import DynamicCache

from cotlab.core.errors import ConfigError
from cotlab.core.requests import Token
from cotlab.providers.local.batching import (
    LENGTH_MULTIPLE,
    MAX_SHARED_LENGTH,
    PROMPT_LENGTH_MULTIPLE,
    padded_length,
    round_up,
)
from cotlab.providers.local.load import LOAD_ERRORS, LoadedModel, first_line, max_positions
from cotlab.providers.local.render import AnswerIds


@dataclass(slots=True)
class Decoding:
    """One row to decode, and what was decoded so far."""

    ids: list[int]
    """Token ids of the prompt."""
    max_new_tokens: int
    """Most tokens to generate."""
    temperature: float = 0.0
    """0 decodes greedily."""
    seed: int = 0
    """Seed of this row's samples."""
    n_alternatives: int = 0
    """Alternatives listed for each token."""
    stop: tuple[str, ...] = ()
    """Stop sequences."""
    generated_ids: list[int] = field(default_factory=list)
    """Token ids generated so far."""
    tokens: list[Token] = field(default_factory=list)
    """Generated tokens with log-probabilities, where ``n_alternatives`` is set."""
    finish: str = ""
    """Why it ended, "stop" or "length"; "" while it runs."""
    generator: torch.Generator | None = None
    """Generator of the samples, made at the first."""
    length_multiple: int = PROMPT_LENGTH_MULTIPLE
    """Number whose multiples the prompt is padded to."""


@dataclass(slots=True)
class _RunningBatch:
    """Rows that are decoded together."""

    rows: list[Decoding]
    """Rows, of which some may have ended."""
    next_ids: torch.Tensor
    """Token ids that the model has yet to read: tensor (rows, tokens)."""
    mask: torch.Tensor
    """Which tokens are no padding: tensor (rows, all tokens)."""
    cache: DynamicCache
    """Keys and values of the tokens that the model has read."""

    def read_next(self, loaded_model: LoadedModel) -> torch.Tensor:
        """Let the model read ``next_ids``; return the logits of the tokens after them."""
        logits: torch.Tensor = loaded_model.model(
            input_ids=self.next_ids,
            attention_mask=self.mask,
            position_ids=_position_ids(self.mask)[:, -self.next_ids.shape[1] :],
            past_key_values=self.cache,
            logits_to_keep=1,
        ).logits[:, -1]
        return logits

    def remaining(self, token_ids: list[int], row_multiple: int) -> list[_RunningBatch]:
        """Return the batches that go on with ``token_ids``, one for each row.

        Rows of different padded lengths part at ``MAX_SHARED_LENGTH``.
        """
        length = self.mask.shape[1]
        running_indices = [i for i, row in enumerate(self.rows) if not row.finish]
        lengths = {i: _padded_length_so_far(self.rows[i]) for i in running_indices}
        self.next_ids = torch.tensor(token_ids, device=self.mask.device)[:, None]
        batches = [self]
        if length >= MAX_SHARED_LENGTH and any(n < length for n in lengths.values()):
            batches = [
                self._selected([i for i in running_indices if lengths[i] == n], n, row_multiple)
                for n in sorted(set(lengths.values()))
            ]
        elif not running_indices:
            return []
        elif round_up(len(running_indices), row_multiple) <= len(self.rows) // 2:
            batches = [self._selected(running_indices, max(lengths.values()), row_multiple)]
        for batch in batches:
            batch.mask = torch.cat([batch.mask, batch.mask.new_ones(len(batch.rows), 1)], 1)
        return batches

    def _selected(self, indices: list[int], length: int, row_multiple: int) -> _RunningBatch:
        """Return a batch of some rows, padded to full rows, and of the last ``length`` tokens."""
        n_padding = round_up(len(indices), row_multiple) - len(indices)
        rows = [self.rows[i] for i in indices] + _padding_rows(self.rows[0].ids, n_padding)
        selected = torch.tensor(indices + indices[:1] * n_padding, device=self.mask.device)
        cache = DynamicCache()
        for layer, states in enumerate(self.cache.layers):
            keys, values = states.keys[selected], states.values[selected]
            cache.update(keys[:, :, -length:], values[:, :, -length:], layer)
        return _RunningBatch(rows, self.next_ids[selected], self.mask[selected, -length:], cache)


class TokenTexts:
    """Text of token ids as it stands after other text.

    Many tokenizers drop the space before a first word.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer, self._text_by_id = tokenizer, dict[int, str]()
        self._context_ids: list[int] = tokenizer("a", add_special_tokens=False)["input_ids"][-1:]
        self._context_text = self._decode(self._context_ids)

    def __getitem__(self, token_id: int) -> str:
        """Return the text of one token, decoded once."""
        if token_id not in self._text_by_id:
            self._text_by_id[token_id] = self.text([token_id])
        return self._text_by_id[token_id]

    def text(self, ids: Sequence[int]) -> str:
        """Return the text of token ids."""
        full_text = self._decode([*self._context_ids, *ids])
        return (
            full_text[len(self._context_text) :]
            if full_text.startswith(self._context_text)
            else self._decode(ids)
        )

    def _decode(self, ids: Sequence[int]) -> str:
        text: str = self._tokenizer.decode(list(ids), clean_up_tokenization_spaces=False)
        return text


@torch.inference_mode()
def generate(
    loaded_model: LoadedModel,
    rows: Sequence[Decoding],
    token_texts: TokenTexts,
    n_rows: int,
    row_multiple: int,
) -> None:
    """Decode all rows to their end, in place.

    Parameters
    ----------
    rows : sequence of Decoding
        All of one padded length, or of at most ``MAX_SHARED_PROMPT_LENGTH``.
    n_rows : int
        Rows of the first batch: beyond ``rows`` it is padding.
    row_multiple : int
        Rows that ended leave the batch once they are half of it; its rows stay a multiple of this.
    """
    end_ids, max_length = _end_ids(loaded_model), max_positions(loaded_model.model)
    if loaded_model.reads_whole:
        for row in rows:
            while not row.finish:
                logits = _whole_logits(loaded_model, [*row.ids, *row.generated_ids], 1)
                (token_id,) = _choose_next_ids(logits, [row], token_texts)
                _append_token(row, token_id, end_ids, token_texts, max_length)
        return
    first_rows = [*rows, *_padding_rows(rows[0].ids, n_rows - len(rows))]
    ids, mask = _pad_left(
        [row.ids for row in first_rows], max(map(prompt_length, rows)), loaded_model.device
    )
    batches = [_RunningBatch(first_rows, ids, mask, DynamicCache())]
    while batches:
        batch = batches.pop()
        token_ids = _choose_next_ids(batch.read_next(loaded_model), batch.rows, token_texts)
        for row, token_id in zip(batch.rows, token_ids, strict=True):
            _append_token(row, token_id, end_ids, token_texts, max_length)
        batches += batch.remaining(token_ids, row_multiple)


@torch.inference_mode()
def score_answers(loaded_model: LoadedModel, rows: Sequence[AnswerIds], n_rows: int) -> list[float]:
    """Return the sum of the answer tokens' log-probabilities in nats, float32, a row each.

    Parameters
    ----------
    rows : sequence of AnswerIds
        All of one ``answer_shape``.
    n_rows : int
        Rows of the batch: beyond ``rows`` it is padding.
    """
    if loaded_model.reads_whole:
        return [
            -float(
                torch.nn.functional.cross_entropy(
                    _whole_logits(loaded_model, row.ids, row.n_answer + 1)[:-1],
                    torch.tensor(row.ids[-row.n_answer :], device=loaded_model.device),
                    reduction="sum",
                )
            )
            for row in rows
        ]
    id_rows = [row.ids for row in rows] + [rows[0].ids] * (n_rows - len(rows))
    max_length, n_logits = answer_shape(rows[0])
    ids, mask = _pad_left(id_rows, max_length, loaded_model.device)
    max_answer_length = n_logits - 1
    logits = loaded_model.model(
        input_ids=ids,
        attention_mask=mask,
        position_ids=_position_ids(mask),
        logits_to_keep=max_answer_length + 1,
    ).logits.float()
    vocabulary_log_probs = logits.log_softmax(-1)[:, :-1]
    log_probs = vocabulary_log_probs.gather(2, ids[:, -max_answer_length:, None])[..., 0]
    return [
        float(log_probs[i, max_answer_length - row.n_answer :].sum()) for i, row in enumerate(rows)
    ]


def _whole_logits(loaded_model: LoadedModel, ids: Sequence[int], n_logits: int) -> torch.Tensor:
    """Return the logits of a text's last positions, read in one pass without padding.

    Returns
    -------
    tensor (n_logits, vocabulary), float32
    """
    logits: torch.Tensor = loaded_model.model(
        input_ids=torch.tensor([list(ids)], device=loaded_model.device),
        logits_to_keep=n_logits,
        use_cache=False if loaded_model.reads_whole else None,
    ).logits
    return logits[0, -n_logits:].float()


def prompt_length(row: Decoding) -> int:
    """Return the length that a prompt is padded to."""
    return padded_length(len(row.ids), row.length_multiple)


def answer_shape(row: AnswerIds) -> tuple[int, int]:
    """Return the padded length of a row, and of how many of its last positions logits are made."""
    return padded_length(len(row.ids)), round_up(row.n_answer + 1, LENGTH_MULTIPLE // 2)


def _padding_rows(ids: list[int], n: int) -> list[Decoding]:
    return [Decoding(ids, 0, finish="padding") for _ in range(n)]


def _padded_length_so_far(row: Decoding) -> int:
    """Return the tokens of a row that were read, with the padding of a batch of its length."""
    return prompt_length(row) + len(row.generated_ids) - 1


@torch.inference_mode()
def score_tokens(
    loaded_model: LoadedModel, row: AnswerIds, n_alternatives: int, token_texts: TokenTexts
) -> tuple[float, list[Token]]:
    """Return a row's sum as `score_answers`, and its answer's tokens with alternatives.

    One row at a time: an answer may be a whole chain, and each of its tokens needs the logits of
    the whole vocabulary.
    """
    logits = _whole_logits(loaded_model, row.ids, row.n_answer + 1)[:-1]
    answer = torch.tensor(row.ids[-row.n_answer :], device=loaded_model.device)
    log_normalizer = logits.logsumexp(-1, keepdim=True)
    log_probs = (logits.gather(1, answer[:, None]) - log_normalizer)[:, 0]
    best_logits, best_ids = logits.topk(min(n_alternatives, logits.shape[-1]), dim=-1)
    token_rows = zip(
        answer.tolist(),
        log_probs.tolist(),
        best_ids.tolist(),
        (best_logits - log_normalizer).tolist(),
        strict=True,
    )
    tokens = []
    for i, log_prob, alternative_ids, alternative_log_probs in token_rows:
        pairs = tuple(
            (token_texts[t], round(v, 7))
            for t, v in zip(alternative_ids, alternative_log_probs, strict=True)
            if math.isfinite(v)
        )
        tokens.append(Token(token_texts[i], round(log_prob, 7), pairs))
    return float(log_probs.double().sum()), tokens


_PROBE_TEXT = "Q: Mia has 7 shells. She finds 4. How many?\nStep 1: 7 + 4 = 11."
_N_PROBE_TOKENS = 24


@torch.inference_mode()
def choose_reading(loaded_model: LoadedModel) -> LoadedModel:
    """Return the model, with ``reads_whole`` set where padding or the cache changes its numbers.

    Two texts of a few tokens are read in one pass each, and padded in a batch with the cache.

    Raises
    ------
    ConfigError
        If the model does not read them, gives NaN, or a token changes the numbers before it.
    """
    model, whole = loaded_model.model, replace(loaded_model, reads_whole=True)
    label = f"The model {model.config.name_or_path!r} cannot be used"
    dtype = str(model.dtype).removeprefix("torch.")
    probe_ids = loaded_model.tokenizer(_PROBE_TEXT, add_special_tokens=False)["input_ids"] or [0]
    ids = (list(probe_ids) * _N_PROBE_TOKENS)[: min(_N_PROBE_TOKENS, max_positions(model))]
    n_shared = len(ids) // 2
    texts = [ids[: 2 * n_shared], ids[:n_shared] * 2]  # of one length: all rounding is alike
    try:
        logits = [_whole_logits(whole, text, len(text)) for text in texts]
    except LOAD_ERRORS as error:
        raise ConfigError(
            f"{label}: {model.config.model_type} models are not read ({first_line(error)})."
        ) from error
    expected = [text_logits.log_softmax(-1) for text_logits in logits]
    if any(log_probs.isnan().any() for log_probs in expected):
        raise ConfigError(f"{label}: its log-probabilities are NaN in {dtype}.")
    # Rounding in nats: at most 0.001 in float32 and 0.5 in bfloat16, more if logits are huge.
    peak = float(logits[0].nan_to_num(0, 0, 0).abs().max())
    limit = max(1e-3, torch.finfo(model.dtype).eps * max(64, 4 * peak))
    if _difference(expected[1][:n_shared], expected[0][:n_shared]) > limit:
        raise ConfigError(
            f"{label}: {model.config.model_type} models are not causal, for a token changes the"
            " log-probabilities of those before it. Choose a causal language model."
        )
    if getattr(model, "_is_stateful", False):  # it has more than keys and values
        return whole
    answer = [AnswerIds(texts[0], 2)]
    try:
        steps = _padded_steps(loaded_model, texts)
        scores = [score_answers(reading, answer, 1)[0] for reading in (loaded_model, whole)]
    except LOAD_ERRORS:  # its cache is of another kind
        return whole
    last = torch.stack([log_probs[-steps.shape[1] :] for log_probs in expected])
    is_same = _difference(steps, last) <= limit and abs(scores[0] - scores[1]) <= limit
    return loaded_model if is_same else whole


def _padded_steps(loaded_model: LoadedModel, texts: Sequence[Sequence[int]]) -> torch.Tensor:
    """Return the log-probabilities after the last three tokens of texts, two of them cached."""
    ids, mask = _pad_left(texts, padded_length(len(texts[0])), loaded_model.device)
    batch = _RunningBatch([], ids[:, :-2], mask[:, :-2], DynamicCache())
    logits = [batch.read_next(loaded_model)]
    for end in (ids.shape[1] - 1, ids.shape[1]):
        batch.next_ids, batch.mask = ids[:, end - 1 : end], mask[:, :end]
        logits.append(batch.read_next(loaded_model))
    return torch.stack(logits, 1).float().log_softmax(-1)


def _difference(log_probs: torch.Tensor, expected: torch.Tensor) -> float:
    """Return the greatest difference in nats among each position's ten likeliest tokens."""
    likeliest = expected.topk(min(10, expected.shape[-1])).indices
    return float((log_probs.gather(-1, likeliest) - expected.gather(-1, likeliest)).abs().max())


def _choose_next_ids(
    logits: torch.Tensor, running_rows: Sequence[Decoding], token_texts: TokenTexts
) -> list[int]:
    """Return the next token of each row: the likeliest, or a Gumbel sample with its own seed."""
    log_probs = logits.float().log_softmax(-1)
    next_ids = log_probs.argmax(-1)
    for i, row in enumerate(running_rows):
        if row.temperature > 0 and not row.finish:
            if row.generator is None:
                row.generator = torch.Generator().manual_seed(row.seed)
            uniform_samples = (
                torch.rand(log_probs.shape[-1], generator=row.generator)
                .clamp_min(1e-20)
                .to(log_probs.device)
            )
            next_ids[i] = (log_probs[i] / row.temperature - (-uniform_samples.log()).log()).argmax()
    ids: list[int] = next_ids.tolist()
    n_alternatives = max((row.n_alternatives for row in running_rows if not row.finish), default=0)
    if n_alternatives:
        values, indices = log_probs.topk(min(n_alternatives, log_probs.shape[-1]), dim=-1)
        best_log_probs, best_ids = values.tolist(), indices.tolist()
        chosen_log_probs = log_probs.gather(1, next_ids[:, None])[:, 0].tolist()
        for i, row in enumerate(running_rows):
            if row.n_alternatives and not row.finish:
                pairs = zip(best_ids[i][: row.n_alternatives], best_log_probs[i], strict=False)
                alternatives = tuple(
                    (token_texts[t], round(v, 7)) for t, v in pairs if math.isfinite(v)
                )
                row.tokens.append(
                    Token(token_texts[ids[i]], round(chosen_log_probs[i], 7), alternatives)
                )
    return ids


def _append_token(
    row: Decoding, token_id: int, end_ids: frozenset[int], token_texts: TokenTexts, max_length: int
) -> None:
    if row.finish:
        return
    if token_id in end_ids:
        row.finish = "stop"
        del row.tokens[len(row.generated_ids) :]
        return
    row.generated_ids.append(token_id)
    if any(_ends_with(row.generated_ids, stop, token_texts) for stop in row.stop):
        row.finish = "stop"
    elif (
        len(row.generated_ids) >= row.max_new_tokens
        or len(row.ids) + len(row.generated_ids) >= max_length
    ):
        row.finish = "length"


def _ends_with(generated_ids: Sequence[int], stop_text: str, token_texts: TokenTexts) -> bool:
    """Return whether the last token completed ``stop_text``.

    A token holds at least one byte, so no more tokens than bytes of ``stop_text`` are looked at.
    """
    if stop_text.isascii():
        return stop_text in "".join(token_texts[t] for t in generated_ids[-len(stop_text) :])
    return stop_text in token_texts.text(generated_ids[-len(stop_text.encode()) - 3 :])


def _pad_left(
    id_rows: Sequence[Sequence[int]], max_length: int, device: str
) -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.zeros(len(id_rows), max_length, dtype=torch.long)
    mask = torch.zeros(len(id_rows), max_length, dtype=torch.long)
    for i, row_ids in enumerate(id_rows):
        ids[i, max_length - len(row_ids) :] = torch.tensor(row_ids)
        mask[i, max_length - len(row_ids) :] = 1
    return ids.to(device), mask.to(device)


def _position_ids(mask: torch.Tensor) -> torch.Tensor:
    return (mask.cumsum(1) - 1).clamp_min(0)


def _end_ids(loaded_model: LoadedModel) -> frozenset[int]:
    end_ids = loaded_model.model.generation_config.eos_token_id
    end_ids = [end_ids] if isinstance(end_ids, int) else list(end_ids or ())
    eos_id = loaded_model.tokenizer.eos_token_id
    return frozenset([*end_ids, *([eos_id] if eos_id is not None else [])])
