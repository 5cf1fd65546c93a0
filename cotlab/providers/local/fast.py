"""A fast patching backend for Llama-like models that skips superfluous computation.

Rows join at their own first layer; positions before the patch are the clean run's; a position whose
next input is patched too gives keys and values only; the last layer runs for the answer. The shape
of a row's computation depends on the row and its text alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812

from cotlab.providers.local.backend import PackShape, PatchRow, upcast
from cotlab.providers.local.batching import ROW_MULTIPLE
from cotlab.providers.local.view import (
    AttentionView,
    SpanLayout,
    TextShape,
    partial_view,
    patches_by_layer,
)

MODEL_TYPES = ("llama", "qwen2", "qwen3")
"""Model types of transformers that this backend supports."""
_STATIC_ROPE_TYPES = ("default", "linear", "llama3")
"""Types of rotary embedding that do not depend on the length of the text."""


class LayerWeights(NamedTuple):
    """Weights of one block, with the norms multiplied in.

    Queries, keys and values are one matrix, and so are gate and up.
    """

    qkv: torch.Tensor
    """Queries, keys and values, after the first norm."""
    qkv_bias: torch.Tensor | None
    """Their biases."""
    out: torch.Tensor
    """The attention's output."""
    out_bias: torch.Tensor | None
    """Its bias."""
    gate_up: torch.Tensor
    """Gate and up, after the second norm."""
    down: torch.Tensor
    """The perceptron's output."""
    norm_qk: torch.Tensor | None
    """Norms of query and key heads, where the model has them."""

    @classmethod
    def from_block(cls, block: Any, heads: int, kv_heads: int, head_size: int) -> LayerWeights:
        """Return the weights of a transformers block.

        Parameters
        ----------
        block : module
        heads, kv_heads : int
            Number of query heads, and of key-value heads.
        head_size : int
            Width of a head.
        """
        attention, mlp = block.self_attn, block.mlp
        # The two dimensions that are rotated together become neighbours.
        rotation_pairs = (
            torch.arange(head_size, device=attention.q_proj.weight.device).view(2, -1).T.flatten()
        )

        def pair_rows(rows: torch.Tensor) -> torch.Tensor:
            return rows.view(-1, head_size, *rows.shape[1:])[:, rotation_pairs].flatten(0, 1)

        def join_projections(attribute: str) -> torch.Tensor:
            q, k, v = (
                getattr(projection, attribute).detach()
                for projection in (attention.q_proj, attention.k_proj, attention.v_proj)
            )
            return torch.cat([pair_rows(q), pair_rows(k), v])

        norm_qk = None
        if hasattr(attention, "q_norm"):
            norm_weights = (
                (attention.q_norm.weight, heads),
                (attention.k_norm.weight, kv_heads),
            )
            norm_qk = torch.cat(
                [
                    weight.detach()[rotation_pairs].expand(n_heads, -1)
                    for weight, n_heads in norm_weights
                ]
            )
        return cls(
            join_projections("weight") * block.input_layernorm.weight.detach(),
            None if attention.q_proj.bias is None else join_projections("bias"),
            attention.o_proj.weight,
            attention.o_proj.bias,
            torch.cat([mlp.gate_proj.weight, mlp.up_proj.weight]).detach()
            * block.post_attention_layernorm.weight.detach(),
            mlp.down_proj.weight,
            norm_qk,
        )


class FastBackend:
    """A ``Backend`` for models of ``MODEL_TYPES``."""

    def __init__(self, model: Any) -> None:
        config, decoder = model.config, model.model
        self.n_layers: int = config.num_hidden_layers
        self.is_thread_safe = True
        self._heads: int = config.num_attention_heads
        self.n_key_heads: int = config.num_key_value_heads
        self.head_size: int = getattr(config, "head_dim", None) or config.hidden_size // self._heads
        self._eps: float = config.rms_norm_eps
        self._final_norm, self._rotary = decoder.norm.weight, decoder.rotary_emb
        self.embedded = decoder.embed_tokens
        self._unembedding = model.lm_head.weight
        self._blocks = [
            LayerWeights.from_block(block, self._heads, self.n_key_heads, self.head_size)
            for block in decoder.layers
        ]
        self._cached_rotations = torch.empty(
            0, self.head_size // 2, dtype=torch.complex64, device=self._final_norm.device
        )

    @staticmethod
    def supports_model(model: Any) -> bool:
        """Return whether the model computes what this code computes.

        That is: no sliding window, no changing rotation, SiLU.
        """
        config = model.config
        rope_type = (getattr(config, "rope_parameters", None) or {}).get("rope_type", "default")
        return (
            config.model_type in MODEL_TYPES
            and rope_type in _STATIC_ROPE_TYPES
            and getattr(config, "hidden_act", "") == "silu"
            and not getattr(config, "use_sliding_window", False)
            and not getattr(config, "mlp_bias", False)
            and not hasattr(model, "hf_quantizer")
        )

    def pack_shape(self, row: PatchRow, n_tokens: int, n_answer: int) -> PackShape:
        """Return the shape in which a row is computed; see ``Backend.pack_shape``."""
        shape = TextShape(n_tokens, n_answer)
        if _runs_through_span(row, shape):
            layout = SpanLayout.from_rows([row], shape)
            return PackShape(layout.row_cost, (row.layers, layout))
        first_position = shape.first_computed(min(row.positions, default=n_tokens))
        return PackShape(shape.n_computed - first_position, first_position)

    @torch.inference_mode()
    def residuals(self, ids: Sequence[int]) -> torch.Tensor:
        """Return the residual stream at the input of each layer."""
        n_padded = TextShape(len(ids), 0).n_padded
        padded_ids = [*ids, *[ids[-1]] * (n_padded - len(ids))]
        x = self.embedded(torch.tensor([padded_ids], device=self._final_norm.device))
        view = AttentionView.build_dense(0, n_padded, n_padded, self.rotations(n_padded), x.dtype)
        states = []
        for layer in range(self.n_layers):
            states.append(x[0, : len(ids)])
            if layer < self.n_layers - 1:
                x = self._run_block(layer, x, view, None)
        return torch.stack(states)

    @torch.inference_mode()
    def patched_log_probs(
        self,
        ids: Sequence[int],
        n_answer: int,
        clean_states: torch.Tensor,
        source_states: torch.Tensor,
        rows: Sequence[PatchRow],
    ) -> list[float]:
        """Return log P of the answer in nats for each row; see ``Backend.patched_log_probs``."""
        shape = TextShape(len(ids), n_answer)
        # Nothing attends to what stands after the answer.
        padding = clean_states[:, -1:].expand(-1, shape.n_padded - len(ids), -1)
        clean_states = torch.cat([clean_states, padding], 1)
        if all(_runs_through_span(row, shape) and row.layers == rows[0].layers for row in rows):
            x = self._contiguous_states(shape, clean_states, source_states, rows)
        else:
            first_position = shape.first_computed(
                min(position for row in rows for position in (*row.positions, len(ids)))
            )
            x = self._run_remaining_layers(
                rows[0].first_layer,
                clean_states.new_empty(0, shape.n_computed - first_position, clean_states.shape[2]),
                first_position,
                shape,
                clean_states,
                source_states,
                rows,
            )
        last = len(ids) - 1 - shape.first_output  # of the answer's last token
        x = x[:, max(0, last - max(n_answer, ROW_MULTIPLE)) : last]
        logits = self.logits(x)[:, -n_answer:]
        answer_ids = torch.tensor(list(ids[-n_answer:]), device=logits.device).expand(len(x), -1)
        token_log_probs = -F.cross_entropy(
            logits.flatten(0, 1), answer_ids.flatten(), reduction="none"
        ).view(len(x), n_answer)
        log_probs: list[float] = token_log_probs.sum(1).tolist()
        return log_probs

    def _contiguous_states(
        self,
        shape: TextShape,
        clean_states: torch.Tensor,
        source_states: torch.Tensor,
        rows: Sequence[PatchRow],
    ) -> torch.Tensor:
        """Return the last block's outputs, for rows that patch through one span."""
        span_layers, last_layer = rows[0].layers, self.n_layers - 1
        view = partial_view(
            rows,
            shape.n_computed,
            SpanLayout.from_rows(rows, shape),
            source_states.shape[1],
            self.rotations(shape.n_padded),
            clean_states.dtype,
        )
        patched_positions = view.patched_positions
        assert patched_positions is not None
        span = slice(span_layers[0], span_layers[-1] + 1)
        states = torch.cat([source_states[span], clean_states[span]], 1)
        uncomputed_states = self.rms_norm(states[:, patched_positions.columns])
        x = clean_states[span_layers[0]][patched_positions.computed_positions]
        for layer in span_layers if span_layers[-1] == last_layer else span_layers[:-1]:
            x = self._run_block(
                layer,
                x,
                view,
                uncomputed_states[None, layer - span_layers[0]],
                shape.n_outputs if layer == last_layer else 0,
            )
        if span_layers[-1] == last_layer:
            return x
        return self._run_remaining_layers(
            span_layers[-1],
            patched_positions.full_states(x, states[-1], view.n_clean_positions, shape.n_computed),
            view.n_clean_positions,
            shape,
            clean_states,
            source_states,
            (),
        )

    def _run_remaining_layers(
        self,
        first_layer: int,
        x: torch.Tensor,
        first_position: int,
        shape: TextShape,
        clean_states: torch.Tensor,
        source_states: torch.Tensor,
        waiting_rows: Sequence[PatchRow],
    ) -> torch.Tensor:
        """Return the last block's states at the positions that need an output.

        Parameters
        ----------
        first_layer : int
            The layer at which rows ``x`` start.
        x : tensor (rows, computed, width)
            States of the positions from ``first_position`` on.
        waiting_rows : rows that join on the way, and are patched there
        """
        last_layer = self.n_layers - 1
        patches = patches_by_layer(waiting_rows, first_position, clean_states.device)
        view = AttentionView.build_dense(
            first_position,
            shape.n_computed,
            shape.n_padded,
            self.rotations(shape.n_padded),
            clean_states.dtype,
        )
        early_states = self.rms_norm(clean_states[:, None, :first_position])
        for layer in range(first_layer, self.n_layers):
            if n_joining_rows := sum(row.first_layer == layer for row in waiting_rows):
                inputs = clean_states[layer, first_position : shape.n_computed]
                x = torch.cat([x, inputs.expand(n_joining_rows, -1, -1)])
            if layer in patches:
                row, positions, columns = patches[layer]
                # a copy: clean states stay
                x = x.index_put((row, positions), source_states[layer, columns])
            x = self._run_block(
                layer,
                x,
                view,
                early_states[layer] if first_position else None,
                shape.n_outputs if layer == last_layer else 0,
            )
        return x

    def _run_block(
        self,
        layer: int,
        x: torch.Tensor,
        view: AttentionView,
        uncomputed_states: torch.Tensor | None,
        n_positions: int = 0,
    ) -> torch.Tensor:
        """Run one block on the computed positions.

        Parameters
        ----------
        x : tensor (rows, computed, width)
        uncomputed_states : tensor (1, positions, width)
            The layer's inputs that are not computed, normalized; None where all are computed.
        n_positions : int
            How many of the last computed positions need an output; 0 for all.
        """
        weights, (n_rows, n_computed_positions, _) = self._blocks[layer], x.shape
        n_positions, query_size = n_positions or n_computed_positions, self._heads * self.head_size
        if n_positions == n_computed_positions:
            q, k, v = self.projections(layer, x, view.rotation)
        else:
            normalized_states = self.rms_norm(x)
            q = F.linear(
                normalized_states[:, -n_positions:],
                weights.qkv[:query_size],
                None if weights.qkv_bias is None else weights.qkv_bias[:query_size],
            )
            q = self._rotated_heads(weights, q, view.rotation[:, -n_positions:])
            k, v = self.keys_values(layer, normalized_states, view.rotation)
        keys, values = [k], [v]
        if uncomputed_states is not None:
            k, v = self.keys_values(layer, uncomputed_states, view.uncomputed_rotation)
            if view.patched_positions is None:
                k, v = (heads.expand(n_rows, -1, -1, -1) for heads in (k, v))
            else:
                k, v = (heads[0, view.patched_positions.pair_indices] for heads in (k, v))
            keys, values = [k, *keys], [v, *values]
        if n_padding := view.mask.shape[-1] - sum(k.shape[1] for k in keys):
            zeros = k.new_zeros(1, 1, 1, 1).expand(n_rows, n_padding, *k.shape[2:])
            keys, values = [*keys, zeros], [*values, zeros]
        key, value = (
            torch.cat(tensors, 1) if len(tensors) > 1 else tensors[0] for tensors in (keys, values)
        )
        is_causal = len(keys) == 1 and n_positions == n_computed_positions
        mask = None if is_causal else view.mask[:, :, -n_positions:]
        attention_output = self.attention(q, key, value, mask)
        return self.block_output(layer, x[:, -n_positions:], attention_output)

    def projections(
        self, layer: int, x: torch.Tensor, rotation: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return queries, keys and values: tensors (rows, positions, heads, size)."""
        weights = self._blocks[layer]
        qkv_states = F.linear(self.rms_norm(x), weights.qkv, weights.qkv_bias)
        value_start = (self._heads + self.n_key_heads) * self.head_size
        query_key_heads = self._rotated_heads(weights, qkv_states[..., :value_start], rotation)
        values = qkv_states[..., value_start:].view(*x.shape[:2], -1, self.head_size)
        return query_key_heads[:, :, : self._heads], query_key_heads[:, :, self._heads :], values

    def attention(
        self,
        queries: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        mask: torch.Tensor | None,
    ) -> torch.Tensor:
        """Return what each position attends to, all before it where the mask is None.

        Returns
        -------
        tensor (rows, positions, heads × size)
        """
        return (
            F.scaled_dot_product_attention(
                queries.transpose(1, 2),
                keys.transpose(1, 2),
                values.transpose(1, 2),
                mask,
                is_causal=mask is None,
                enable_gqa=self._heads != self.n_key_heads,
            )
            .transpose(1, 2)
            .flatten(2)
        )

    def block_output(
        self, layer: int, x: torch.Tensor, attention_output: torch.Tensor
    ) -> torch.Tensor:
        """Return a block's output for its input ``x`` and what its attention found."""
        weights = self._blocks[layer]
        x = x + F.linear(attention_output, weights.out, weights.out_bias)
        gate, up = F.linear(self.rms_norm(x), weights.gate_up).chunk(2, -1)
        return x + F.linear(F.silu(gate).mul_(up), weights.down)

    def logits(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logits of the tokens after those with the last block's output ``x``."""
        return upcast(
            F.linear(F.rms_norm(x, x.shape[-1:], self._final_norm, self._eps), self._unembedding)
        )

    def keys_values(
        self, layer: int, x: torch.Tensor, rotation: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return keys and values alone of normalized states; see ``projections``."""
        weights, query_size = self._blocks[layer], self._heads * self.head_size
        k, v = F.linear(
            x,
            weights.qkv[query_size:],
            None if weights.qkv_bias is None else weights.qkv_bias[query_size:],
        ).chunk(2, -1)
        return self._rotated_heads(weights, k, rotation, self._heads), v.view(
            *v.shape[:2], -1, self.head_size
        )

    def _rotated_heads(
        self,
        weights: LayerWeights,
        flat_states: torch.Tensor,
        rotation: torch.Tensor,
        first_head: int = 0,
    ) -> torch.Tensor:
        """Return queries or keys, the heads from ``first_head`` on, rotated to their positions."""
        heads = flat_states.view(*flat_states.shape[:2], -1, self.head_size)
        if weights.norm_qk is not None:
            heads = self.rms_norm(heads) * weights.norm_qk[first_head : first_head + heads.shape[2]]
        rotated_pairs = (
            torch.view_as_complex(upcast(heads).view(*heads.shape[:3], -1, 2)) * rotation
        )
        return torch.view_as_real(rotated_pairs).flatten(-2).to(flat_states.dtype)

    def rms_norm(self, x: torch.Tensor) -> torch.Tensor:
        """Return normalized states, without the norm's weights."""
        return F.rms_norm(x, x.shape[-1:], None, self._eps)

    def rotations(self, n_tokens: int) -> torch.Tensor:
        """Return the rotation of each position up to ``n_tokens``: complex (positions, size/2)."""
        if len(self._cached_rotations) < n_tokens:
            positions = torch.arange(max(n_tokens, 256), device=self._final_norm.device)[None]
            cos, sin = self._rotary(self._final_norm.float(), positions)
            self._cached_rotations = torch.complex(cos, sin)[0, :, : self.head_size // 2]
        return self._cached_rotations


def _runs_through_span(row: PatchRow, shape: TextShape) -> bool:
    """Return whether nothing needs to be computed at the row's patched positions."""
    return row.is_contiguous and max(row.positions) < shape.n_tokens - 1 - shape.n_answer
