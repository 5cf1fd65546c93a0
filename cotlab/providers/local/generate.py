"""Decode rows of tokens, each with its own seed, and score answers: batching changes no row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from cotlab.core.errors import ConfigError
from cotlab.core.requests import Token
from cotlab.providers.local.batching import LENGTH_MULTIPLE, padded_length, round_up
from cotlab.providers.local.load import LOAD_ERRORS, LoadedModel, first_line, max_positions
from cotlab.providers.local.readers import (
    Reader,
    open_reader,
    pad_left,
    position_ids,
    whole_logits,
)
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
    loaded_model: LoadedModel, reader: Reader, rows: Sequence[Decoding], token_texts: TokenTexts
) -> None:
    """Decode all rows to their end, in place.

    Parameters
    ----------
    rows : sequence of Decoding
        Fastest if rows with the same beginning are neighbours.
    """
    end_ids, max_length = _end_ids(loaded_model), max_positions(loaded_model.model)
    waiting, running = list(rows), list[Decoding]()
    while waiting or running:
        if waiting and 2 * len(running) <= reader.max_rows:
            n_new = reader.max_rows - len(running)
            reader.add([row.ids[:-1] for row in waiting[:n_new]])
            running += waiting[:n_new]
            del waiting[:n_new]
        logits = reader.read([(row.generated_ids or row.ids)[-1] for row in running])
        token_ids = _choose_next_ids(logits, running, token_texts)
        for i in reversed(range(len(running))):
            _append_token(running[i], token_ids[i], end_ids, token_texts, max_length)
            if running[i].finish:
                reader.remove(i)
                running[i] = running[-1]
                running.pop()


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
                    whole_logits(loaded_model, row.ids, row.n_answer + 1)[:-1],
                    torch.tensor(row.ids[-row.n_answer :], device=loaded_model.device),
                    reduction="sum",
                )
            )
            for row in rows
        ]
    id_rows = [row.ids for row in rows] + [rows[0].ids] * (n_rows - len(rows))
    max_length, n_logits = answer_shape(rows[0])
    ids, mask = pad_left(id_rows, max_length, loaded_model.device)
    max_answer_length = n_logits - 1
    logits = loaded_model.model(
        input_ids=ids,
        attention_mask=mask,
        position_ids=position_ids(mask),
        logits_to_keep=max_answer_length + 1,
    ).logits.float()
    vocabulary_log_probs = logits.log_softmax(-1)[:, :-1]
    log_probs = vocabulary_log_probs.gather(2, ids[:, -max_answer_length:, None])[..., 0]
    return [
        float(log_probs[i, max_answer_length - row.n_answer :].sum()) for i, row in enumerate(rows)
    ]


def answer_shape(row: AnswerIds) -> tuple[int, int]:
    """Return the padded length of a row, and of how many of its last positions logits are made."""
    return padded_length(len(row.ids)), round_up(row.n_answer + 1, LENGTH_MULTIPLE // 2)


@torch.inference_mode()
def score_tokens(
    loaded_model: LoadedModel, row: AnswerIds, n_alternatives: int, token_texts: TokenTexts
) -> tuple[float, list[Token]]:
    """Return a row's sum as `score_answers`, and its answer's tokens with alternatives.

    One row at a time: an answer may be a whole chain, and each of its tokens needs the logits of
    the whole vocabulary.
    """
    logits = whole_logits(loaded_model, row.ids, row.n_answer + 1)[:-1]
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
        logits = [whole_logits(whole, text, len(text)) for text in texts]
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
        steps = _read_in_steps(open_reader(loaded_model, len(texts)), texts)
        scores = [score_answers(reading, answer, 1)[0] for reading in (loaded_model, whole)]
    except LOAD_ERRORS:  # its cache is of another kind
        return whole
    last = torch.stack([log_probs[-steps.shape[1] :] for log_probs in expected])
    is_same = _difference(steps, last) <= limit and abs(scores[0] - scores[1]) <= limit
    return loaded_model if is_same else whole


def _read_in_steps(reader: Reader, texts: Sequence[Sequence[int]]) -> torch.Tensor:
    """Return the log-probabilities after the last three tokens of texts, which are cached."""
    reader.add([text[:-3] for text in texts])
    logits = [reader.read([text[i] for text in texts]) for i in (-3, -2, -1)]
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
        if row.temperature > 0:
            if row.generator is None:
                row.generator = torch.Generator().manual_seed(row.seed)
            uniform_samples = (
                torch.rand(log_probs.shape[-1], generator=row.generator)
                .clamp_min(1e-20)
                .to(log_probs.device)
            )
            next_ids[i] = (log_probs[i] / row.temperature - (-uniform_samples.log()).log()).argmax()
    ids: list[int] = next_ids.tolist()
    n_alternatives = max(row.n_alternatives for row in running_rows)
    if n_alternatives:
        values, indices = log_probs.topk(min(n_alternatives, log_probs.shape[-1]), dim=-1)
        best_log_probs, best_ids = values.tolist(), indices.tolist()
        chosen_log_probs = log_probs.gather(1, next_ids[:, None])[:, 0].tolist()
        for i, row in enumerate(running_rows):
            if row.n_alternatives:
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


def _end_ids(loaded_model: LoadedModel) -> frozenset[int]:
    end_ids = loaded_model.model.generation_config.eos_token_id
    end_ids = [end_ids] if isinstance(end_ids, int) else list(end_ids or ())
    eos_id = loaded_model.tokenizer.eos_token_id
    return frozenset([*end_ids, *([eos_id] if eos_id is not None else [])])
