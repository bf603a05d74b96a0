"""One rank's layers of a whole model of the measured shape: prompts, then tokens one by one.

Shape letters as in ``model``; R requests, C rows of the cache that one may own.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.model import Layer, View, draw_weights
from benchmarks.shape import Shape
from ppcgc.runtime import LayerRange

VOCAB = 32_000


class CachedLayer(Layer):
    """Attends inside each prompt, or, given a table of rows, to the cache."""

    def attention(self, query_THD: Tensor, key: Tensor, value: Tensor, batch: View) -> Tensor:
        table_RC = getattr(batch, "slot_table", None)
        if table_RC is None:
            return super().attention(query_THD, key, value, batch)
        seq_lens: Tensor = batch.seq_lens  # type: ignore[attr-defined]  # a decode batch has them
        # a row of padding has no keys; one keeps its softmax finite, and nobody reads it
        columns = torch.arange(table_RC.shape[1], device=table_RC.device)
        owned_RC = columns < seq_lens.clamp(min=1)[:, None]
        # rows that nobody owns may hold anything, and 0 * NaN is NaN
        keys, values = (
            torch.where(owned_RC[..., None, None], rows[table_RC], 0)
            .repeat_interleave(self.shape.heads // self.shape.kv_heads, dim=2)
            .transpose(1, 2)
            for rows in (self.keys, self.values)
        )
        made = F.scaled_dot_product_attention(
            query_THD[:, :, None], keys, values, attn_mask=owned_RC[:, None, None]
        )
        return made[:, :, 0]


class RankStage(nn.Module):
    """The layers of one rank; the first has the table of words, the last the final norm."""

    inverse: Tensor

    def __init__(self, shape: Shape, layers: LayerRange) -> None:
        super().__init__()
        self.shape = shape
        self.start_layer, self.end_layer = layers.start, layers.end
        self.last = layers.end == layers.count
        self.words = (
            nn.Parameter(torch.empty(VOCAB, shape.hidden_size)) if not layers.start else None
        )
        self.layers = nn.ModuleList(CachedLayer(shape) for _ in range(len(layers)))
        exponents = torch.arange(0, shape.head_dim, 2, dtype=torch.float32) / shape.head_dim
        self.register_buffer("inverse", 1.0 / 500_000.0**exponents, persistent=False)

    def forward(
        self, *, input_ids: Tensor | None, positions: Tensor, batch: Any, pp_proxy_tensors: Any
    ) -> Any:
        """``hidden_states`` and ``residual`` [T, E]; of the last stage the normed states alone."""
        if self.words is not None and input_ids is not None:
            hidden = self.words[input_ids]
            residual = torch.zeros_like(hidden)
        else:
            hidden, residual = pp_proxy_tensors["hidden_states"], pp_proxy_tensors["residual"]
        angles = positions[:, None].float() * self.inverse
        angles = torch.cat([angles, angles], dim=-1)[:, None]
        cos, sin = angles.cos().to(self.shape.dtype), angles.sin().to(self.shape.dtype)
        for layer in self.layers:
            hidden, residual = layer(hidden, residual, cos, sin, batch)
        if self.last:
            return F.rms_norm(hidden + residual, (self.shape.hidden_size,))
        return {"hidden_states": hidden, "residual": residual}

    def kv(self) -> list[Tensor]:
        """The cache's tensors, all layers."""
        return [rows for layer in self.layers for rows in (layer.keys, layer.values)]  # type: ignore[misc]  # ModuleList forgets the class


def new_rank_stage(shape: Shape, layers: LayerRange, device: torch.device) -> RankStage:
    """These layers and no others, with random weights that depend on their numbers alone."""
    torch.manual_seed(layers.start)
    before = torch.get_default_dtype()
    torch.set_default_dtype(shape.dtype)
    try:
        with torch.device(device):
            stage = RankStage(shape, layers)
    finally:
        torch.set_default_dtype(before)
    draw_weights(stage)
    return stage.requires_grad_(False).eval()
