"""Batched decoding with a KV cache. Each row has its own seed, so batching changes no sample."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from transformers import DynamicCache

from cotlab.core.requests import Token
from cotlab.providers.local.load import Loaded
from cotlab.providers.local.render import Scored, context_length


@dataclass(slots=True)
class Decoding:
    """One row to decode, and what was decoded so far."""

    ids: list[int]
    """Token ids of the prompt."""
    max_new: int
    """Most tokens to generate."""
    temperature: float = 0.0
    """0 decodes greedily."""
    seed: int = 0
    """Seed of this row's samples."""
    top: int = 0
    """Alternatives listed for each token."""
    stop: tuple[str, ...] = ()
    """Stop sequences."""
    generated: list[int] = field(default_factory=list)
    """Token ids generated so far."""
    tokens: list[Token] = field(default_factory=list)
    """Generated tokens with log-probabilities, where ``top`` is set."""
    finish: str = ""
    """Why it ended, "stop" or "length"; "" while it runs."""
    draws: torch.Generator | None = None
    """Generator of the samples, made at the first."""


class Pieces:
    """Text of token ids as it stands after other text.

    Many tokenizers drop the space before a first word.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer, self._known = tokenizer, dict[int, str]()
        self._before: list[int] = tokenizer("a", add_special_tokens=False)["input_ids"][-1:]
        self._text_before = self._decoded(self._before)

    def __getitem__(self, i: int) -> str:
        """Return the text of one token, decoded once."""
        if i not in self._known:
            self._known[i] = self.text([i])
        return self._known[i]

    def text(self, ids: Sequence[int]) -> str:
        """Return the text of token ids."""
        full_text = self._decoded([*self._before, *ids])
        return (
            full_text[len(self._text_before) :]
            if full_text.startswith(self._text_before)
            else self._decoded(ids)
        )

    def _decoded(self, ids: Sequence[int]) -> str:
        text: str = self._tokenizer.decode(list(ids), clean_up_tokenization_spaces=False)
        return text


@torch.inference_mode()
def generate(loaded: Loaded, rows: Sequence[Decoding], pieces: Pieces) -> None:
    """Decode all rows to their end, in place.

    Rows that ended leave the batch once they are half of it.
    """
    ends = _end_ids(loaded)
    longest = max(len(row.ids) for row in rows)
    ids, mask = _left_padded([row.ids for row in rows], longest, loaded.device)
    cache = DynamicCache()
    logits = loaded.model(
        input_ids=ids,
        attention_mask=mask,
        position_ids=_positions(mask),
        past_key_values=cache,
        logits_to_keep=1,
    ).logits[:, -1]
    live = list(rows)
    while True:
        chosen = _choose(logits, live, pieces)
        for row, token in zip(live, chosen, strict=True):
            _append(row, token, ends, pieces, context_length(loaded))
        keep = [i for i, row in enumerate(live) if not row.finish]
        if not keep:
            return
        step = torch.tensor(chosen, device=loaded.device)
        if len(keep) <= len(live) // 2:
            at = torch.tensor(keep, device=loaded.device)
            cache.batch_select_indices(at)
            mask, step, live = mask[at], step[at], [live[i] for i in keep]
        mask = torch.cat([mask, mask.new_ones(len(live), 1)], 1)
        logits = loaded.model(
            input_ids=step[:, None],
            attention_mask=mask,
            position_ids=mask.sum(1, keepdim=True) - 1,
            past_key_values=cache,
        ).logits[:, -1]


@torch.inference_mode()
def score_answers(loaded: Loaded, rows: Sequence[Scored]) -> list[float]:
    """Return the sum of the answer tokens' log-probabilities in nats, float32, a row each."""
    longest = max(len(row.ids) for row in rows)
    ids, mask = _left_padded([row.ids for row in rows], longest, loaded.device)
    tail = max(row.n for row in rows)
    logits = loaded.model(
        input_ids=ids, attention_mask=mask, position_ids=_positions(mask), logits_to_keep=tail + 1
    ).logits.float()
    logp = logits.log_softmax(-1)[:, :-1]
    log_probs = logp.gather(2, ids[:, -tail:, None])[..., 0]
    return [float(log_probs[i, tail - row.n :].sum()) for i, row in enumerate(rows)]


@torch.inference_mode()
def score_tokens(
    loaded: Loaded, row: Scored, top: int, pieces: Pieces
) -> tuple[float, list[Token]]:
    """Return a row's sum as `score_answers`, and its answer's tokens with alternatives.

    One row at a time: an answer may be a whole chain, and each of its tokens needs the logits of
    the
    whole vocabulary.
    """
    ids = torch.tensor([row.ids], device=loaded.device)
    logits = loaded.model(input_ids=ids, logits_to_keep=row.n + 1).logits[0, :-1].float()
    answer = ids[0, -row.n :]
    rest = logits.logsumexp(-1, keepdim=True)
    log_probs = (logits.gather(1, answer[:, None]) - rest)[:, 0]
    best, which = logits.topk(min(top, logits.shape[-1]), dim=-1)
    listed = zip(
        answer.tolist(), log_probs.tolist(), which.tolist(), (best - rest).tolist(), strict=True
    )
    tokens = []
    for i, log_prob, neighbours, values in listed:
        pairs = tuple(
            (pieces[t], round(v, 7))
            for t, v in zip(neighbours, values, strict=True)
            if math.isfinite(v)
        )
        tokens.append(Token(pieces[i], round(log_prob, 7), pairs))
    return float(log_probs.double().sum()), tokens


def _choose(logits: torch.Tensor, live: Sequence[Decoding], pieces: Pieces) -> list[int]:
    """Return the next token of each row: the likeliest, or a Gumbel sample with its own seed."""
    logp = logits.float().log_softmax(-1)
    chosen = logp.argmax(-1)
    for i, row in enumerate(live):
        if row.temperature > 0 and not row.finish:
            if row.draws is None:
                row.draws = torch.Generator().manual_seed(row.seed)
            uniform = (
                torch.rand(logp.shape[-1], generator=row.draws).clamp_min(1e-20).to(logp.device)
            )
            chosen[i] = (logp[i] / row.temperature - (-uniform.log()).log()).argmax()
    ids: list[int] = chosen.tolist()
    n_alternatives = max((row.top for row in live if not row.finish), default=0)
    if n_alternatives:
        values, indices = logp.topk(min(n_alternatives, logp.shape[-1]), dim=-1)
        best, which = values.tolist(), indices.tolist()
        picked = logp.gather(1, chosen[:, None])[:, 0].tolist()
        for i, row in enumerate(live):
            if row.top and not row.finish:
                pairs = zip(which[i][: row.top], best[i], strict=False)
                top = tuple((pieces[t], round(v, 7)) for t, v in pairs if math.isfinite(v))
                row.tokens.append(Token(pieces[ids[i]], round(picked[i], 7), top))
    return ids


def _append(
    row: Decoding, token: int, ends: frozenset[int], pieces: Pieces, max_length: int
) -> None:
    if row.finish:
        return
    if token in ends:
        row.finish = "stop"
        del row.tokens[len(row.generated) :]
        return
    row.generated.append(token)
    if any(_ends_with(row.generated, stop, pieces) for stop in row.stop):
        row.finish = "stop"
    elif len(row.generated) >= row.max_new or len(row.ids) + len(row.generated) >= max_length:
        row.finish = "length"


def _ends_with(generated: Sequence[int], stop: str, pieces: Pieces) -> bool:
    """Return whether the last token completed ``stop``.

    A token holds at least one byte, so no more tokens than bytes of ``stop`` are looked at.
    """
    if stop.isascii():
        return stop in "".join(pieces[t] for t in generated[-len(stop) :])
    return stop in pieces.text(generated[-len(stop.encode()) - 3 :])


def _left_padded(
    texts: Sequence[Sequence[int]], longest: int, device: str
) -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.zeros(len(texts), longest, dtype=torch.long)
    mask = torch.zeros(len(texts), longest, dtype=torch.long)
    for i, text in enumerate(texts):
        ids[i, longest - len(text) :] = torch.tensor(text)
        mask[i, longest - len(text) :] = 1
    return ids.to(device), mask.to(device)


def _positions(mask: torch.Tensor) -> torch.Tensor:
    return (mask.cumsum(1) - 1).clamp_min(0)


def _end_ids(loaded: Loaded) -> frozenset[int]:
    ends = loaded.model.generation_config.eos_token_id
    ends = [ends] if isinstance(ends, int) else list(ends or ())
    eos_id = loaded.tokenizer.eos_token_id
    return frozenset([*ends, *([eos_id] if eos_id is not None else [])])
