"""Several residual streams a token, mixed by hyper-connections, and experts chosen by token id.

What crosses a boundary is all the streams side by side, [T, streams * E], and no residual. Layers
whose experts are chosen by a hash of the token id read the ids, on whichever stage they are.

Layers and the unsplit model are transformers' ``DeepseekV4``, with sliding attention alone.

Shape letters: T tokens, S streams, E hidden, R requests, V vocabulary.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from models.layered import LayeredStage, logit_rows
from ppcgc.hf.attention import Attention, DecodeAttention, PrefillAttention
from ppcgc.hf.hook import attending
from ppcgc.hf.kv import KVPool, KVShape, allocate


class HyperStage(LayeredStage):
    """Layers of a model with hyper-connections."""

    def __init__(self, model: Any, start: int, end: int) -> None:
        super().__init__(model, start, end)
        self.streams: int = self.config.hc_mult
        self.reads_ids = "hash_moe" in self.config.mlp_layer_types[start:end]
        if self.is_last:
            self.hc_head = self.copy_of(model.model.hc_head)

    def new_pool(self, rows: int) -> KVPool:
        """A KV cache of ``rows`` rows: one head, shared by all query heads."""
        shape = KVShape(heads=1, key_dim=self.config.head_dim, value_dim=self.config.head_dim)
        return allocate(
            dict.fromkeys(range(self.start_layer, self.end_layer), shape),
            layers=self.layer_count,
            rows=rows,
            dtype=self.weight.dtype,
            device=self.weight.device,
        )

    def entry(self, input_ids: Tensor | None, streams: Tensor | None) -> Tensor:
        """[T, S, E]: the embedding in every stream on the first stage, what came on later ones."""
        if self.is_first:
            embedded: Tensor = self.embed_tokens(input_ids)
            return embedded[:, None].expand(-1, self.streams, -1).contiguous()
        assert streams is not None  # bound by the spec's forward
        return streams.view(streams.shape[0], self.streams, -1)

    def run(
        self,
        hidden_TSE: Tensor,
        input_ids: Tensor | None,
        positions: Tensor,
        attention: Attention,
    ) -> Tensor:
        """Streams [T, S, E] after the stage's layers."""
        rope = {
            kind: self.rotary_emb(hidden_TSE[:, 0], positions[None], layer_type=kind)
            for kind in ("main", "compress")
        }
        hidden = hidden_TSE[None]
        with attending(attention):
            for _, layer in self.owned():
                hidden = layer(
                    hidden,
                    position_embeddings=rope,
                    position_ids=positions[None],
                    attention_mask=None,
                    input_ids=input_ids if self.reads_ids else None,
                )
        return hidden[0]


class _Runnable(nn.Module):
    start_layer: int
    end_layer: int

    def __init__(self, stage: HyperStage, pool: KVPool) -> None:
        super().__init__()
        self.start_layer, self.end_layer = stage.start_layer, stage.end_layer
        self.stage, self.pool = stage, pool

    def step(
        self,
        input_ids: Tensor | None,
        streams: Tensor | None,
        positions: Tensor,
        attention: Attention,
        rows: Tensor | None,
    ) -> Tensor:
        stage = self.stage
        out = stage.run(stage.entry(input_ids, streams), input_ids, positions, attention)
        if not stage.is_last:
            return out.flatten(1)
        return stage.logits(stage.hc_head(out[None])[0], rows)


class HyperPrefill(_Runnable):
    """The stage on packed prompts: streams [T, S * E], or logits [R, V] on the last stage."""

    def forward(
        self,
        *,
        input_ids: Tensor | None = None,
        streams: Tensor | None = None,
        positions: Tensor,
        batch: Any,
    ) -> Tensor:
        attention = PrefillAttention(batch, self.pool)
        rows = logit_rows(batch, self.stage.is_last)
        return self.step(input_ids, streams, positions, attention, rows)


class HyperDecode(_Runnable):
    """The stage on one token a request."""

    def forward(
        self,
        *,
        input_ids: Tensor | None = None,
        streams: Tensor | None = None,
        positions: Tensor,
        batch: Any,
    ) -> Tensor:
        attention = DecodeAttention(batch, self.pool)
        return self.step(input_ids, streams, positions, attention, None)
