"""A decoder that attends over the residuals of blocks of layers (as in Kimi K3).

Layers stand in blocks. Each block keeps one sum: of the outputs of its layers' two halves, and
in block 0 of the embedding too. Before each half, a token mixes the sums that there are so far
by a softmax over them, and the mix is what the half sees.

A layer's second half is handed on before it is added (``hidden_states`` [T, E]), as serving
engines do. ``residual`` [T, B, E] are the sums of the blocks begun so far; before layer ``cut``
there are ``ceil(cut / block)`` of them.

Shape letters: T tokens, B blocks begun, E hidden, H heads, D head width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from examples.models.residual_llama import Mlp, Rope, rotate
from models.layered import logit_rows
from ppcgc.hf.attention import Attention, DecodeAttention, PrefillAttention
from ppcgc.hf.kernels import Scoring
from ppcgc.hf.kv import KVPool, KVShape, allocate


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockConfig:
    """Sizes of a small model, by the names that specs read."""

    vocab_size: int = 96
    hidden_size: int = 48
    intermediate_size: int = 64
    num_hidden_layers: int = 5
    num_attention_heads: int = 4
    head_dim: int = 12
    max_position_embeddings: int = 96
    residual_block: int = 2


def rms(states: Tensor) -> Tensor:
    return F.rms_norm(states, states.shape[-1:], eps=1e-6)


class Mix(nn.Module):
    """One token's softmax over the sums of the blocks, by a learned query; normed."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.query = nn.Linear(hidden, 1, bias=False)

    def forward(self, residual_TBE: Tensor) -> Tensor:
        weights = self.query(rms(residual_TBE)).softmax(dim=1)
        return rms((weights * residual_TBE).sum(dim=1))


class SelfAttention(nn.Module):
    def __init__(self, config: BlockConfig, layer_id: int) -> None:
        super().__init__()
        self.layer_id, self.width = layer_id, config.head_dim
        inner = config.num_attention_heads * config.head_dim
        self.query = nn.Linear(config.hidden_size, inner, bias=False)
        self.key = nn.Linear(config.hidden_size, inner, bias=False)
        self.value = nn.Linear(config.hidden_size, inner, bias=False)
        self.out = nn.Linear(inner, config.hidden_size, bias=False)
        self.scoring = Scoring(scaling=config.head_dim**-0.5)

    def heads(
        self, hidden_TE: Tensor, rope: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values [T, H, D]."""
        query, keys, values = (
            projection(hidden_TE).unflatten(-1, (-1, self.width))
            for projection in (self.query, self.key, self.value)
        )
        return rotate(query, rope), rotate(keys, rope), values

    def forward(
        self, hidden_TE: Tensor, rope: tuple[Tensor, Tensor], attention: Attention
    ) -> Tensor:
        out = attention.attend(self.layer_id, *self.heads(hidden_TE, rope), self.scoring)
        projected: Tensor = self.out(out.flatten(1))
        return projected


class Layer(nn.Module):
    def __init__(self, config: BlockConfig, layer_id: int) -> None:
        super().__init__()
        self.begins_block = layer_id > 0 and layer_id % config.residual_block == 0
        self.mix_attention, self.mix_mlp = Mix(config.hidden_size), Mix(config.hidden_size)
        self.attention = SelfAttention(config, layer_id)
        self.mlp = Mlp(config)

    def forward(
        self, residual_TBE: Tensor, rope: tuple[Tensor, Tensor], attention: Attention
    ) -> tuple[Tensor, Tensor]:
        """The second half's output, not yet added, and the residual."""
        out_TE = self.attention(self.mix_attention(residual_TBE), rope, attention)
        if self.begins_block:
            residual_TBE = torch.cat([residual_TBE, out_TE[:, None]], dim=1)
        else:
            residual_TBE = add_to_last(residual_TBE, out_TE)
        return self.mlp(self.mix_mlp(residual_TBE)), residual_TBE


def add_to_last(residual_TBE: Tensor, out_TE: Tensor) -> Tensor:
    """The residual with ``out_TE`` added to the newest block's sum."""
    return torch.cat([residual_TBE[:, :-1], residual_TBE[:, -1:] + out_TE[:, None]], dim=1)


class BlockModel(nn.Module):
    """All layers, and a plain forward over one sequence: the unsplit reference."""

    def __init__(self, config: BlockConfig) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(Layer(config, i) for i in range(config.num_hidden_layers))
        self.mix_last = Mix(config.hidden_size)
        self.head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.rope = Rope(config.head_dim, 10000.0)

    @property
    def device(self) -> torch.device:
        return self.embed.weight.device

    @property
    def dtype(self) -> torch.dtype:
        return self.embed.weight.dtype

    def forward(self, *, input_ids: Tensor) -> Any:
        """``logits`` [1, T, V] of one sequence [1, T], as a transformers model gives them."""
        return SimpleNamespace(logits=self.logits(input_ids[0])[None])

    def logits(self, ids_T: Tensor) -> Tensor:
        """[T, V] of one sequence, without a cache: each block's sum by its own name."""
        rope = self.rope(torch.arange(ids_T.shape[0], device=ids_T.device))
        sums = {0: self.embed(ids_T)}
        for layer_id, layer in enumerate(self.layers):
            block = layer_id // self.config.residual_block
            for half in (self._attended, self._fed):
                seen = torch.stack([sums[b] for b in sorted(sums)], dim=1)
                sums[block] = sums.get(block, 0) + half(layer, seen, rope)
        logits: Tensor = self.head(self.mix_last(torch.stack(list(sums.values()), dim=1)))
        return logits

    @staticmethod
    def _attended(layer: Any, seen_TBE: Tensor, rope: tuple[Tensor, Tensor]) -> Tensor:
        heads = layer.attention.heads(layer.mix_attention(seen_TBE), rope)
        query, keys, values = (part.transpose(0, 1)[None] for part in heads)
        out = F.scaled_dot_product_attention(query, keys, values, is_causal=True)
        projected: Tensor = layer.attention.out(out[0].transpose(0, 1).flatten(1))
        return projected

    @staticmethod
    def _fed(layer: Any, seen_TBE: Tensor, rope: tuple[Tensor, Tensor]) -> Tensor:
        fed: Tensor = layer.mlp(layer.mix_mlp(seen_TBE))
        return fed


class BlockStage(nn.Module):
    """Layers ``[start_layer, end_layer)`` of a model, sharing its weights."""

    start_layer: int
    end_layer: int

    def __init__(self, model: BlockModel, start: int, end: int) -> None:
        super().__init__()
        self.config = model.config
        self.start_layer, self.end_layer = start, end
        self.layer_count = model.config.num_hidden_layers
        self.is_first, self.is_last = start == 0, end == self.layer_count
        self.layers = model.layers[start:end]
        self.rope = model.rope
        if self.is_first:
            self.embed = model.embed
        if self.is_last:
            self.mix_last, self.head = model.mix_last, model.head

    def new_pool(self, rows: int) -> KVPool:
        config, weight = self.config, next(self.parameters())
        shape = KVShape(
            heads=config.num_attention_heads, key_dim=config.head_dim, value_dim=config.head_dim
        )
        return allocate(
            dict.fromkeys(range(self.start_layer, self.end_layer), shape),
            layers=self.layer_count,
            rows=rows,
            dtype=weight.dtype,
            device=weight.device,
        )

    def forward(
        self,
        entry: tuple[Tensor | None, Tensor | None, Tensor | None],
        positions: Tensor,
        attention: Attention,
        rows: Tensor | None,
    ) -> Mapping[str, Tensor] | Tensor:
        """Of (ids, hidden states, residual) the first stage takes the first, later ones the rest.

        Gives ``hidden_states`` and ``residual`` for the next stage; the last one logits [T, V], or
        [R, V] for ``rows``.
        """
        input_ids, hidden, received = entry
        residual: Any = received
        if self.is_first:
            residual = self.embed(input_ids)[:, None]
        rope = self.rope(positions)
        for layer in self.layers:
            if hidden is not None:
                residual = add_to_last(residual, hidden)
            hidden, residual = layer(residual, rope, attention)
        assert hidden is not None  # a stage has at least one layer
        if not self.is_last:
            return {"hidden_states": hidden, "residual": residual}
        mixed = self.mix_last(add_to_last(residual, hidden))
        logits: Tensor = self.head(mixed if rows is None else mixed.index_select(0, rows))
        return logits


class _Runnable(nn.Module):
    start_layer: int
    end_layer: int

    def __init__(self, stage: BlockStage, pool: KVPool) -> None:
        super().__init__()
        self.start_layer, self.end_layer = stage.start_layer, stage.end_layer
        self.stage, self.pool = stage, pool


class BlockPrefill(_Runnable):
    """The stage on packed prompts."""

    def forward(
        self,
        *,
        input_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        residual: Tensor | None = None,
        positions: Tensor,
        batch: Any,
    ) -> Mapping[str, Tensor] | Tensor:
        attention = PrefillAttention(batch, self.pool)
        rows = logit_rows(batch, self.stage.is_last)
        entry = (input_ids, inputs_embeds, residual)
        return self.stage.forward(entry, positions, attention, rows)


class BlockDecode(_Runnable):
    """The stage on one token a request."""

    def forward(
        self,
        *,
        input_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        residual: Tensor | None = None,
        positions: Tensor,
        batch: Any,
    ) -> Mapping[str, Tensor] | Tensor:
        attention = DecodeAttention(batch, self.pool)
        return self.stage.forward((input_ids, inputs_embeds, residual), positions, attention, None)
