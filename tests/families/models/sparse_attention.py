"""Latent attention over the few positions that an indexer picks, layer by layer or reused.

Most layers score all earlier positions with a small indexer and attend to the best ``topk`` of
them. Some layers have no indexer and reuse what the layer before picked, so a stage that starts
with such a layer needs the picks of the stage before: ``topk_indices``.

``topk_indices`` is int32 [T, topk]: positions in the query's own sequence, -1 where there are
fewer. Positions and not rows of a batch, so that both stages may pack differently.

Weights and the unsplit model are transformers' ``GlmMoeDsa`` or ``DeepseekV32``.

Shape letters: T tokens, C candidates, H heads, D widths, E hidden, K topk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from models.layered import LayeredStage, logit_rows
from models.reach import CachedReach, PackedReach, Reach, attend

Rope = tuple[Tensor, Tensor]


def rotate_pairs(states: Tensor, rope: Rope) -> Tensor:
    """Rotary positions on (x0, x1), (x2, x3), ...; firsts come before seconds in the result."""
    cos, sin = (part[..., : part.shape[-1] // 2] for part in rope)
    even, odd = states[..., 0::2], states[..., 1::2]
    return torch.cat([even * cos - odd * sin, odd * cos + even * sin], dim=-1)


def rotate_halves(states: Tensor, rope: Rope) -> Tensor:
    """Rotary positions on (x0, x_half), (x1, x_half+1), ..."""
    cos, sin = rope
    low, high = states.chunk(2, dim=-1)
    return states * cos + torch.cat([-high, low], dim=-1) * sin


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerCache:
    """One layer's cache, by pool row. ``index_keys`` is None where the layer has no indexer."""

    keys: Tensor  # [rows, H, D]
    values: Tensor  # [rows, H, D]
    index_keys: Tensor | None  # [rows, D]

    def tensors(self) -> list[Tensor]:
        return [t for t in (self.keys, self.values, self.index_keys) if t is not None]


def pick(indexer: Any, hidden_TE: Tensor, low_rank: Tensor, rope: Rope, keys: Keys) -> Tensor:
    """The positions that a layer attends to, int32 [T, K]."""
    rotate = rotate_halves if keys.halves else rotate_pairs
    split = [indexer.qk_rope_head_dim, indexer.head_dim - indexer.qk_rope_head_dim]
    query = indexer.wq_b(low_rank).unflatten(-1, (indexer.n_heads, indexer.head_dim))
    turned, plain = query.split(split, dim=-1)
    query = torch.cat([rotate(turned, rope), plain], dim=-1)
    turned, plain = indexer.k_norm(indexer.wk(hidden_TE))[:, None].split(split, dim=-1)
    key = torch.cat([rotate(turned, rope), plain], dim=-1)[:, 0]

    key_TCD = keys.reach.candidates(keys.index_keys, key)
    scores = torch.einsum("thd,tcd->thc", query.float(), key_TCD.float().expand(len(query), -1, -1))
    weights = indexer.weights_proj(hidden_TE).float() * indexer.n_heads**-0.5
    scores = torch.einsum("th,thc->tc", weights, F.relu(scores * indexer.softmax_scale))
    return best_positions(scores, keys.reach, indexer.index_topk)


def best_positions(scores_TC: Tensor, reach: Reach, topk: int) -> Tensor:
    """int32 [T, topk], -1 where fewer than ``topk`` candidates are allowed or exist."""
    scores_TC = scores_TC.masked_fill(~reach.allowed, float("-inf"))
    best = scores_TC.topk(min(topk, scores_TC.shape[1]), dim=-1)
    positions = reach.positions.expand(scores_TC.shape).gather(1, best.indices)
    positions = positions.masked_fill(best.values == float("-inf"), -1)
    return F.pad(positions, (0, topk - positions.shape[1]), value=-1).to(torch.int32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """What an indexer searches, and by which rotary form."""

    reach: Reach
    index_keys: Tensor
    halves: bool


class SparseStage(LayeredStage):
    """Layers of a model with sparse attention."""

    def __init__(self, model: Any, start: int, end: int) -> None:
        super().__init__(model, start, end)
        # what the stage after this one starts with says what has to be handed on
        self.hands_on_picks = not self.is_last and model.model.layers[end].self_attn.indexer is None
        # DeepSeek-V3.2's indexer rotates halves, GLM's and all main attention rotates pairs
        self.halves = self.config.model_type == "deepseek_v32"

    def new_caches(self, rows: int) -> dict[int, LayerCache]:
        """A zeroed cache for each layer; row 0 belongs to padding."""
        return {layer_id: self._cache(layer.self_attn, rows) for layer_id, layer in self.owned()}

    def _cache(self, attention: Any, rows: int) -> LayerCache:
        def empty(*shape: int) -> Tensor:
            return self.weight.new_zeros(rows, *shape)

        heads = attention.num_heads
        indexed = attention.indexer is not None
        return LayerCache(
            keys=empty(heads, attention.qk_head_dim),
            values=empty(heads, attention.v_head_dim),
            index_keys=empty(attention.indexer.head_dim) if indexed else None,
        )

    def run(
        self,
        hidden_TE: Tensor,
        positions: Tensor,
        reach: Reach,
        caches: dict[int, LayerCache],
        picked: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """Hidden states [T, E] and the last layer's picks."""
        cos, sin = self.rotary_emb(hidden_TE[None], positions[None])
        rope = (cos[0][:, None], sin[0][:, None])
        for layer_id, layer in self.owned():
            normed = layer.input_layernorm(hidden_TE)
            out, picked = self._attend(
                layer.self_attn, normed, rope, reach, caches[layer_id], picked
            )
            hidden_TE = hidden_TE + out
            hidden_TE = hidden_TE + layer.mlp(layer.post_attention_layernorm(hidden_TE))
        assert picked is not None  # a stage has at least one layer
        return hidden_TE, picked

    def _attend(
        self,
        attention: Any,
        hidden_TE: Tensor,
        rope: Rope,
        reach: Reach,
        cache: LayerCache,
        picked: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        nope, turn = attention.qk_nope_head_dim, attention.qk_rope_head_dim
        low_rank = attention.q_a_layernorm(attention.q_a_proj(hidden_TE))
        query = attention.q_b_proj(low_rank).unflatten(-1, (attention.num_heads, nope + turn))
        query = torch.cat([query[..., :nope], rotate_pairs(query[..., nope:], rope)], dim=-1)
        keys, values = _expanded(attention, hidden_TE, rope)
        if cache.index_keys is not None:
            searched = Keys(reach=reach, index_keys=cache.index_keys, halves=self.halves)
            picked = pick(attention.indexer, hidden_TE, low_rank, rope, searched)
        if picked is None:
            raise ValueError(f"stage [{self.start_layer}, {self.end_layer}) needs topk_indices")
        out = attend(
            query,
            reach.candidates(cache.keys, keys),
            reach.candidates(cache.values, values),
            reach.chosen(picked.long()),
            reach.owned,
            attention.scaling,
        )
        return attention.o_proj(out.flatten(1)), picked


def _expanded(attention: Any, hidden_TE: Tensor, rope: Rope) -> tuple[Tensor, Tensor]:
    """Keys and values [T, H, D] of every head, from the shared latent."""
    nope, width = attention.qk_nope_head_dim, attention.v_head_dim
    latent = attention.kv_a_proj_with_mqa(hidden_TE)
    latent, turned = latent.split([attention.kv_lora_rank, attention.qk_rope_head_dim], dim=-1)
    both = attention.kv_b_proj(attention.kv_a_layernorm(latent))
    keys, values = both.unflatten(-1, (attention.num_heads, nope + width)).split(
        [nope, width], dim=-1
    )
    shared = rotate_pairs(turned[:, None], rope).expand(-1, attention.num_heads, -1)
    return torch.cat([keys, shared], dim=-1), values


class _Runnable(nn.Module):
    start_layer: int
    end_layer: int

    def __init__(self, stage: SparseStage, caches: dict[int, LayerCache]) -> None:
        super().__init__()
        self.start_layer, self.end_layer = stage.start_layer, stage.end_layer
        self.stage, self.caches = stage, caches

    def step(
        self,
        input_ids: Tensor | None,
        inputs_embeds: Tensor | None,
        positions: Tensor,
        reach: Reach,
        topk_indices: Tensor | None,
        rows: Tensor | None,
    ) -> dict[str, Tensor] | Tensor:
        stage = self.stage
        hidden: Any = stage.embed_tokens(input_ids) if stage.is_first else inputs_embeds
        hidden, picked = stage.run(hidden, positions, reach, self.caches, topk_indices)
        if stage.is_last:
            return stage.logits(hidden, rows)
        handed = {"hidden_states": hidden}
        return handed | {"topk_indices": picked} if stage.hands_on_picks else handed


class SparsePrefill(_Runnable):
    """The stage on packed prompts; the last one's logits [requests, vocab]."""

    def forward(
        self,
        *,
        input_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        topk_indices: Tensor | None = None,
        positions: Tensor,
        batch: Any,
    ) -> dict[str, Tensor] | Tensor:
        reach = PackedReach(batch, positions)
        rows = logit_rows(batch, self.stage.is_last)
        return self.step(input_ids, inputs_embeds, positions, reach, topk_indices, rows)


class SparseDecode(_Runnable):
    """The stage on one token a request; the last one's logits [requests, vocab]."""

    def forward(
        self,
        *,
        input_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        topk_indices: Tensor | None = None,
        positions: Tensor,
        batch: Any,
    ) -> dict[str, Tensor] | Tensor:
        reach = CachedReach(batch)
        return self.step(input_ids, inputs_embeds, positions, reach, topk_indices, None)
