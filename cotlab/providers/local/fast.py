"""The fast way for Llama-like weights: rows join at their own first layer, positions before the patch are not computed anew,
and the last layer runs for the answer only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812

from cotlab.providers.local.backend import PatchRow

KINDS = ("llama", "qwen2", "qwen3")
_STATIC_ROPE = ("default", "linear", "llama3")


class _Layer(NamedTuple):
    """One block's weights; queries, keys and values in one matrix, and so are gate and up."""

    qkv: torch.Tensor
    qkv_bias: torch.Tensor | None
    out: torch.Tensor
    out_bias: torch.Tensor | None
    gate_up: torch.Tensor
    down: torch.Tensor
    norm_in: torch.Tensor
    norm_mid: torch.Tensor
    norm_q: torch.Tensor | None
    norm_k: torch.Tensor | None


class Fast:
    """A ``Backend`` for models of ``KINDS``."""

    def __init__(self, model: Any) -> None:
        config, inner = model.config, model.model
        self.layers: int = config.num_hidden_layers
        self._heads: int = config.num_attention_heads
        self._kv_heads: int = config.num_key_value_heads
        self._size: int = getattr(config, "head_dim", None) or config.hidden_size // self._heads
        self._eps: float = config.rms_norm_eps
        self._inner, self._final, self._unembed = inner, inner.norm.weight, model.lm_head.weight
        self._blocks = [_weights(block) for block in inner.layers]
        self._cos = self._sin = torch.empty(0)

    @staticmethod
    def takes(model: Any) -> bool:
        """Whether the model computes what this code computes: no sliding window, no changing rotation, SiLU."""
        config = model.config
        rope = (getattr(config, "rope_parameters", None) or {}).get("rope_type", "default")
        return (
            config.model_type in KINDS
            and rope in _STATIC_ROPE
            and getattr(config, "hidden_act", "") == "silu"
            and not getattr(config, "use_sliding_window", False)
            and not getattr(config, "mlp_bias", False)
            and not hasattr(model, "hf_quantizer")
        )

    @torch.inference_mode()
    def residuals(self, ids: Sequence[int]) -> torch.Tensor:
        x = self._inner.embed_tokens(torch.tensor([list(ids)], device=self._final.device))
        states = []
        for layer in range(self.layers):
            states.append(x[0])
            if layer < self.layers - 1:
                x = self._block(layer, x, 0, x.shape[1])
        return torch.stack(states)

    @torch.inference_mode()
    def patched(
        self, ids: Sequence[int], n_answer: int, clean: torch.Tensor, bank: torch.Tensor, rows: Sequence[PatchRow]
    ) -> list[float]:
        tokens, tail = len(ids), n_answer + 1
        start = min((min(row.at) for row in rows if row.at), default=tokens - tail)
        start = min(start, tokens - tail)
        places = _places(rows, start, clean.device)
        first = min(row.first for row in rows)
        x = clean[first, start:].expand(0, -1, -1)
        for layer in range(first, self.layers):
            joining = sum(row.first == layer for row in rows)
            x = torch.cat([x, clean[layer, start:].expand(joining, -1, -1)]) if joining else x
            if layer in places:
                row, at, take = places[layer]
                x = x.index_put((row, at), bank[layer, take])  # a copy: the clean states stay as they are
            before = clean[layer : layer + 1, :start] if start else None
            x = self._block(layer, x, start, tail if layer == self.layers - 1 else tokens - start, before)
        logits = F.linear(self._norm(x[:, -tail:-1], self._final), self._unembed).float()
        wanted = torch.tensor(list(ids[-n_answer:]), device=logits.device).expand(len(rows), -1)
        logp = -F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), reduction="none").view(len(rows), n_answer)
        numbers: list[float] = logp.sum(1).tolist()
        return numbers

    def _block(self, layer: int, x: torch.Tensor, start: int, asked: int, before: torch.Tensor | None = None) -> torch.Tensor:
        """One block on positions from ``start`` on, its output for the last ``asked``; ``before``: clean states up to there."""
        w, (batch, length, _) = self._blocks[layer], x.shape
        cut = self._heads * self._size
        normed = self._norm(x, w.norm_in)
        if asked == length:
            joint = F.linear(normed, w.qkv, w.qkv_bias)
            q, kv = joint[..., :cut], joint[..., cut:]
        else:
            q = F.linear(normed[:, -asked:], w.qkv[:cut], None if w.qkv_bias is None else w.qkv_bias[:cut])
            kv = self._keys_values(w, normed)
        end = start + length
        query = self._turn(self._split(q, self._heads, w.norm_q), end - asked, end)
        key, value = self._halves(w, kv, start, end)
        if before is not None:
            key0, value0 = self._halves(w, self._keys_values(w, self._norm(before, w.norm_in)), 0, start)
            key = torch.cat([key0.expand(batch, -1, -1, -1), key], 2)
            value = torch.cat([value0.expand(batch, -1, -1, -1), value], 2)
        if asked == end:
            mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        else:
            mask = torch.ones(asked, end, dtype=torch.bool, device=x.device).tril(end - asked)
            mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        x = x[:, -asked:] + F.linear(mixed.transpose(1, 2).reshape(batch, asked, cut), w.out, w.out_bias)
        gate, up = F.linear(self._norm(x, w.norm_mid), w.gate_up).chunk(2, -1)
        return x + F.linear(F.silu(gate).mul_(up), w.down)

    def _keys_values(self, w: _Layer, normed: torch.Tensor) -> torch.Tensor:
        cut = self._heads * self._size
        return F.linear(normed, w.qkv[cut:], None if w.qkv_bias is None else w.qkv_bias[cut:])

    def _halves(self, w: _Layer, kv: torch.Tensor, start: int, end: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values, each repeated for the queries' heads that share it."""
        half = self._kv_heads * self._size
        key = self._turn(self._split(kv[..., :half], self._kv_heads, w.norm_k), start, end)
        value = self._split(kv[..., half:], self._kv_heads, None)
        share = self._heads // self._kv_heads
        return (key, value) if share == 1 else (key.repeat_interleave(share, 1), value.repeat_interleave(share, 1))

    def _split(self, flat: torch.Tensor, heads: int, norm: torch.Tensor | None) -> torch.Tensor:
        apart = flat.view(*flat.shape[:2], heads, self._size)
        return (apart if norm is None else self._norm(apart, norm)).transpose(1, 2)

    def _turn(self, x: torch.Tensor, start: int, end: int) -> torch.Tensor:
        if self._cos.shape[0] < end:
            at = torch.arange(max(end, 256), device=x.device)[None]
            cos, sin = self._inner.rotary_emb(x, at)
            half = self._size // 2
            self._cos, self._sin = cos[0], torch.cat([-sin[0, :, :half], sin[0, :, half:]], -1)
        first, second = x.chunk(2, -1)
        return torch.addcmul(x * self._cos[start:end], torch.cat([second, first], -1), self._sin[start:end])

    def _norm(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        return weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self._eps)).to(x.dtype)


def _weights(block: Any) -> _Layer:
    a, m = block.self_attn, block.mlp
    biases = [p.bias for p in (a.q_proj, a.k_proj, a.v_proj)]
    return _Layer(
        torch.cat([a.q_proj.weight, a.k_proj.weight, a.v_proj.weight]).detach(),
        None if biases[0] is None else torch.cat(biases).detach(),
        a.o_proj.weight, a.o_proj.bias, torch.cat([m.gate_proj.weight, m.up_proj.weight]).detach(), m.down_proj.weight,
        block.input_layernorm.weight, block.post_attention_layernorm.weight,
        a.q_norm.weight if hasattr(a, "q_norm") else None, a.k_norm.weight if hasattr(a, "k_norm") else None,
    )  # fmt: skip


Places = dict[int, tuple[torch.Tensor, torch.Tensor, torch.Tensor]]


def _places(rows: Sequence[PatchRow], start: int, device: torch.device) -> Places:
    """For each patched layer: which rows, at which positions from ``start`` on, take which columns of the bank."""
    by_layer: dict[int, list[int]] = {}
    for number, row in enumerate(rows):
        for layer in row.layers if row.at else ():
            by_layer.setdefault(layer, []).append(number)
    joined: dict[tuple[int, ...], tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = {}
    out: Places = {}
    for layer, numbers in by_layer.items():
        chosen = tuple(numbers)
        if chosen not in joined:
            joined[chosen] = (
                torch.tensor([n for n in chosen for _ in rows[n].at], device=device),
                torch.tensor([at - start for n in chosen for at in rows[n].at], device=device),
                torch.tensor([take for n in chosen for take in rows[n].take], device=device),
            )
        out[layer] = joined[chosen]
    return out
