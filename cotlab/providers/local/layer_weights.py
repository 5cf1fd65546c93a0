"""Weights of one block of a Llama-like model, as the fast backend multiplies them."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch


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
