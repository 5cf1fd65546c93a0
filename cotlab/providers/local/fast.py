"""A fast patching backend for Llama-like models that skips superfluous computation.

Rows join at their own first layer; positions before the patch are the clean run's; a position whose
next input is patched too gives keys and values only; the last layer runs for the answer, and no
layer for the answer's last token.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812

from cotlab.providers.local.backend import PatchRow, wide
from cotlab.providers.local.view import View, partial_view

KINDS = ("llama", "qwen2", "qwen3")
"""Model types of transformers that this backend supports."""
_STATIC_ROPE = ("default", "linear", "llama3")
"""Types of rotary embedding that do not depend on the length of the text."""


class _Layer(NamedTuple):
    """Weights of one block, with the norms multiplied in.

    Queries, keys and values are one matrix, and so are gate and up.
    """

    qkv: torch.Tensor
    qkv_bias: torch.Tensor | None
    out: torch.Tensor
    out_bias: torch.Tensor | None
    gate_up: torch.Tensor
    down: torch.Tensor
    norm_qk: torch.Tensor | None


class Fast:
    """A ``Backend`` for models of ``KINDS``."""

    def __init__(self, model: Any) -> None:
        config, inner = model.config, model.model
        self.layers: int = config.num_hidden_layers
        self.at_once = True
        self._heads: int = config.num_attention_heads
        self._kv_heads: int = config.num_key_value_heads
        self._size: int = getattr(config, "head_dim", None) or config.hidden_size // self._heads
        self._eps: float = config.rms_norm_eps
        self._inner, self._final, self._unembed = inner, inner.norm.weight, model.lm_head.weight
        self._blocks = [self._weights(block) for block in inner.layers]
        self._known_turns = torch.empty(
            0, self._size // 2, dtype=torch.complex64, device=self._final.device
        )

    @staticmethod
    def takes(model: Any) -> bool:
        """Return whether the model computes what this code computes.

        That is: no sliding window, no changing rotation, SiLU.
        """
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

    def weight(self, row: PatchRow, tokens: int) -> int:
        """Return about the tokens that a row computes; a given one costs a quarter."""
        return max(
            1, tokens - min(row.at, default=0) - (len(row.at) * 3 // 4 if row.through else 0)
        )

    @torch.inference_mode()
    def residuals(self, ids: Sequence[int]) -> torch.Tensor:
        """Return the residual stream at the input of each layer."""
        x = self._inner.embed_tokens(torch.tensor([list(ids)], device=self._final.device))
        view = View.dense(0, len(ids), self._turns(len(ids)), x.dtype)
        states = []
        for layer in range(self.layers):
            states.append(x[0])
            if layer < self.layers - 1:
                x = self._block(layer, x, view, x[0])
        return torch.stack(states)

    @torch.inference_mode()
    def patched(
        self,
        ids: Sequence[int],
        n_answer: int,
        clean: torch.Tensor,
        bank: torch.Tensor,
        rows: Sequence[PatchRow],
    ) -> list[float]:
        """Return log P of the answer in nats for each row; see ``Backend.patched``."""
        tokens, span = len(ids), rows[0].layers
        if rows[0].through and all(
            row.layers == span and max(row.at) < tokens - 1 - n_answer for row in rows
        ):
            # Nothing depends on the output of the last token.
            x = self._through(tokens - 1, n_answer, clean, bank, rows)
        else:
            # The last token is computed here, so that shapes equal the clean run's and patching
            # with the clean states changes nothing at all.
            start = min([tokens - 1 - n_answer, *(min(row.at) for row in rows if row.at)])
            none = clean.new_empty(0, tokens - start, clean.shape[2])
            x = self._onward(rows[0].first, none, start, n_answer + 1, clean, bank, rows)[
                :, :n_answer
            ]
        logits = wide(F.linear(F.rms_norm(x, x.shape[-1:], self._final, self._eps), self._unembed))
        answer_ids = torch.tensor(list(ids[-n_answer:]), device=logits.device).expand(len(x), -1)
        logp = -F.cross_entropy(logits.flatten(0, 1), answer_ids.flatten(), reduction="none").view(
            len(x), n_answer
        )
        numbers: list[float] = logp.sum(1).tolist()
        return numbers

    def _through(
        self,
        tokens: int,
        n_answer: int,
        clean: torch.Tensor,
        bank: torch.Tensor,
        rows: Sequence[PatchRow],
    ) -> torch.Tensor:
        """Return the last block's states at the answer, for rows that patch through one span."""
        span, last, columns = rows[0].layers, self.layers - 1, bank.shape[1]
        view = partial_view(rows, tokens, columns, self._turns(tokens), clean.dtype)
        given = view.given
        assert given is not None
        x = clean[span[0]][given.at]
        for layer in span if span[-1] == last else span[:-1]:
            x = self._block(
                layer,
                x,
                view,
                torch.cat([bank[layer], clean[layer]]),
                columns,
                n_answer if layer == last else 0,
            )
        if span[-1] == last:
            return x
        states = torch.cat([bank[span[-1]], clean[span[-1]]])
        return self._onward(
            span[-1],
            given.full_states(x, states, view.before, tokens),
            view.before,
            n_answer,
            clean,
            bank,
            (),
        )

    def _onward(
        self,
        first: int,
        x: torch.Tensor,
        start: int,
        n_positions: int,
        clean: torch.Tensor,
        bank: torch.Tensor,
        waiting: Sequence[PatchRow],
    ) -> torch.Tensor:
        """Return the last block's states at the last ``n_positions`` positions.

        Parameters
        ----------
        first : int
            The layer at which rows ``x`` start.
        x : tensor (rows, computed, width)
            States of the positions from ``start`` on.
        waiting : rows that join on the way, and are patched there
        """
        length, last = x.shape[1], self.layers - 1
        patches = _patches_by_layer(waiting, start, clean.device)
        view = View.dense(start, length, self._turns(start + length), clean.dtype)
        for layer in range(first, self.layers):
            if joining := sum(row.first == layer for row in waiting):
                x = torch.cat([x, clean[layer, start : start + length].expand(joining, -1, -1)])
            if layer in patches:
                row, at, columns = patches[layer]
                x = x.index_put((row, at), bank[layer, columns])  # a copy: clean states stay
            x = self._block(layer, x, view, clean[layer], 0, n_positions if layer == last else 0)
        return x

    def _block(
        self,
        layer: int,
        x: torch.Tensor,
        view: View,
        states: torch.Tensor,
        bank: int = 0,
        n_positions: int = 0,
    ) -> torch.Tensor:
        """Run one block on the computed positions.

        Parameters
        ----------
        x : tensor (rows, computed, width)
        states : tensor (columns, width)
                The layer's inputs that are not computed: the bank's ``bank`` columns, then the
            clean run.
        n_positions : int
            How many of the last computed positions need an output; 0 for all.
        """
        w, (batch, length, _) = self._blocks[layer], x.shape
        n_positions, query_size = n_positions or length, self._heads * self._size
        normed = self._norm(x)
        if n_positions == length:
            joint = F.linear(normed, w.qkv, w.qkv_bias)
            end = query_size + self._kv_heads * self._size
            both = self._turned(w, joint[..., :end], view.turn)
            q, k, v = (
                both[:, :, : self._heads],
                both[:, :, self._heads :],
                joint[..., end:].view(batch, length, -1, self._size),
            )
        else:
            q = F.linear(
                normed[:, -n_positions:],
                w.qkv[:query_size],
                None if w.qkv_bias is None else w.qkv_bias[:query_size],
            )
            q = self._turned(w, q, view.turn[:, -n_positions:])
            k, v = self._keys_values(w, normed, view.turn)
        keys, values = [k], [v]
        if view.given is not None:
            k, v = self._keys_values(
                w, self._norm(states[None, view.given.columns]), view.given.turn
            )
            keys, values = (
                [k[0, view.given.pair_indices], *keys],
                [v[0, view.given.pair_indices], *values],
            )
        if view.before:
            early = self._norm(states[None, bank : bank + view.before])
            k, v = self._keys_values(w, early, self._turns(view.before)[None, : view.before, None])
            keys, values = (
                [k.expand(batch, -1, -1, -1), *keys],
                [v.expand(batch, -1, -1, -1), *values],
            )
        key, value = (
            torch.cat(tensors, 1) if len(tensors) > 1 else tensors[0] for tensors in (keys, values)
        )
        mixed = F.scaled_dot_product_attention(
            q.transpose(1, 2),
            key.transpose(1, 2),
            value.transpose(1, 2),
            (
                None
                if (is_causal := len(keys) == 1 and n_positions == length)
                else view.mask[:, :, -n_positions:]
            ),
            is_causal=is_causal,
            enable_gqa=self._heads != self._kv_heads,
        )
        x = x[:, -n_positions:] + F.linear(mixed.transpose(1, 2).flatten(2), w.out, w.out_bias)
        gate, up = F.linear(self._norm(x), w.gate_up).chunk(2, -1)
        return x + F.linear(F.silu(gate).mul_(up), w.down)

    def _keys_values(
        self, w: _Layer, normed: torch.Tensor, turn: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return keys and values: tensors (rows, positions, key-value heads, size)."""
        query_size = self._heads * self._size
        k, v = F.linear(
            normed, w.qkv[query_size:], None if w.qkv_bias is None else w.qkv_bias[query_size:]
        ).chunk(2, -1)
        return self._turned(w, k, turn, self._heads), v.view(*v.shape[:2], -1, self._size)

    def _turned(
        self, w: _Layer, flat: torch.Tensor, turn: torch.Tensor, first: int = 0
    ) -> torch.Tensor:
        """Return queries or keys, the heads from ``first`` on, rotated to their positions."""
        heads = flat.view(*flat.shape[:2], -1, self._size)
        if w.norm_qk is not None:
            heads = self._norm(heads) * w.norm_qk[first : first + heads.shape[2]]
        turned = torch.view_as_complex(wide(heads).view(*heads.shape[:3], -1, 2)) * turn
        return torch.view_as_real(turned).flatten(-2).to(flat.dtype)

    def _norm(self, x: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(x, x.shape[-1:], None, self._eps)

    def _turns(self, tokens: int) -> torch.Tensor:
        """Return the rotation of each position up to ``tokens``: complex (positions, size/2)."""
        if len(self._known_turns) < tokens:
            at = torch.arange(max(tokens, 256), device=self._final.device)[None]
            cos, sin = self._inner.rotary_emb(self._final.float(), at)
            self._known_turns = torch.complex(cos, sin)[0, :, : self._size // 2]
        return self._known_turns

    def _weights(self, block: Any) -> _Layer:
        a, m = block.self_attn, block.mlp
        # The two dimensions that are rotated together become neighbours.
        beside = torch.arange(self._size, device=self._final.device).view(2, -1).T.flatten()

        def paired(rows: torch.Tensor) -> torch.Tensor:
            return rows.view(-1, self._size, *rows.shape[1:])[:, beside].flatten(0, 1)

        def joined(of: str) -> torch.Tensor:
            q, k, v = (getattr(proj, of).detach() for proj in (a.q_proj, a.k_proj, a.v_proj))
            return torch.cat([paired(q), paired(k), v])

        norm_qk = None
        if hasattr(a, "q_norm"):
            both = (a.q_norm.weight, self._heads), (a.k_norm.weight, self._kv_heads)
            norm_qk = torch.cat(
                [weight.detach()[beside].expand(heads, -1) for weight, heads in both]
            )
        return _Layer(
            joined("weight") * block.input_layernorm.weight.detach(),
            None if a.q_proj.bias is None else joined("bias"),
            a.o_proj.weight,
            a.o_proj.bias,
            torch.cat([m.gate_proj.weight, m.up_proj.weight]).detach()
            * block.post_attention_layernorm.weight.detach(),
            m.down_proj.weight,
            norm_qk,
        )


PatchIndex = dict[int, tuple[torch.Tensor, torch.Tensor, torch.Tensor]]
"""Layer → (rows, positions, columns) that are patched there."""


def _patches_by_layer(rows: Sequence[PatchRow], start: int, device: torch.device) -> PatchIndex:
    """Return for each patched layer the rows, positions from ``start`` and columns."""
    by_layer: dict[int, list[int]] = {}
    for number, row in enumerate(rows):
        for layer in row.layers if row.at else ():
            by_layer.setdefault(layer, []).append(number)
    joined: dict[tuple[int, ...], tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = {}
    out: PatchIndex = {}
    for layer, numbers in by_layer.items():
        chosen = tuple(numbers)
        if chosen not in joined:
            joined[chosen] = (
                torch.tensor([n for n in chosen for _ in rows[n].at], device=device),
                torch.tensor([at - start for n in chosen for at in rows[n].at], device=device),
                torch.tensor([column for n in chosen for column in rows[n].columns], device=device),
            )
        out[layer] = joined[chosen]
    return out
