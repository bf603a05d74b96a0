"""The decoder of a BART as a pipeline stage: its own cache, and the encoder's rows in another.

Keys and values of the encoder's output do not change while a sequence is decoded. So they are
computed once, by :meth:`Seq2SeqStage.admit`, outside of any graph, into a pool of their own;
graphs only read that pool, by a table of rows for each request.

The family's decoder counts positions by its cache and so cannot run packed sequences; its layers
can. A stage therefore runs the layers itself, with the embedding before and the head after.

# Note [encoder states that are no tensor]
A layer hands what it is given as encoder states on to its cross-attention and does nothing else
with it. A stage gives it the :class:`CrossAttention` of the forward instead, which
:class:`_PooledCross`, put in the place of the family's cross-attention, asks.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from ppcgc.hf.attention import (
    Attention,
    DecodeAttention,
    DecodeView,
    PrefillAttention,
    PrefillLastView,
    PrefillView,
)
from ppcgc.hf.base import LayerStage
from ppcgc.hf.hook import attending
from ppcgc.hf.kernels import Scoring, additive_mask, masked_attention
from ppcgc.hf.kv import KVPool, KVShape, allocate
from ppcgc.hf.plan import check_ranges
from ppcgc.hf.runners import Runnable, ViewT
from ppcgc.hf.sharing import attending_copy
from ppcgc.runtime.errors import BuildError


class CrossView(Protocol):
    """Where the rows of each request's encoder output are."""

    @property
    def cross_table(self) -> Tensor:
        """int64 [requests, source]: the row of the cross pool of each encoder position."""
        ...

    @property
    def source_lens(self) -> Tensor:
        """int32 [requests]: encoder positions of each request; at least 1, also where not live."""
        ...


class CrossPrefillView(PrefillView, CrossView, Protocol):
    """What a prefill reads."""


class CrossPrefillLastView(PrefillLastView, CrossView, Protocol):
    """What the last stage reads in a prefill."""


class CrossDecodeView(DecodeView, CrossView, Protocol):
    """What a decode step reads."""


class CrossAttention:
    """Attention of each query to the encoder rows of its request.

    ``requests`` (int64 [queries]): whose query it is; None for one query a request, in order.
    """

    def __init__(self, view: CrossView, pool: KVPool, requests: Tensor | None = None) -> None:
        table, lengths = view.cross_table, view.source_lens
        if requests is not None:
            table, lengths = table.index_select(0, requests), lengths.index_select(0, requests)
        self._pool = pool
        self._shape, self._rows = table.shape, table.reshape(-1)
        position = torch.arange(table.shape[1], device=table.device)
        self._allowed = (position < lengths[:, None])[:, None, None]  # [queries, 1, 1, source]

    def attend(self, layer_id: int, query: Tensor, scaling: float) -> Tensor:
        """query [queries, heads, dim] -> the same shape."""
        cache = self._pool.layer(layer_id)
        out = masked_attention(
            query[:, :, None],
            self._gather(cache.keys),
            self._gather(cache.values),
            additive_mask(self._allowed, query.dtype),
            Scoring(scaling=scaling),
            None,
        )
        return out[:, :, 0]

    def _gather(self, pool: Tensor) -> Tensor:
        """[queries, heads, source, dim]"""
        rows = pool.index_select(0, self._rows)
        return rows.view(*self._shape, *pool.shape[1:]).transpose(1, 2)


class _PooledCross(nn.Module):
    """A family's cross-attention whose keys and values come from a pool."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner
        self.layer_id: int = inner.layer_idx
        self.heads, self.width = int(inner.num_heads), int(inner.head_dim)

    def forward(
        self, hidden_states: Tensor, key_value_states: CrossAttention, **_unused: object
    ) -> tuple[Tensor, None]:
        """[1, queries, hidden] -> the same; see Note [encoder states that are no tensor]."""
        inner = self.inner
        query = inner.q_proj(hidden_states[0]).unflatten(-1, (self.heads, self.width))
        out = key_value_states.attend(self.layer_id, query, inner.scaling)
        return inner.out_proj(out.flatten(-2))[None], None

    def keys_and_values(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """[rows, hidden] -> keys and values [rows, heads, dim]."""
        heads = (self.heads, self.width)
        keys, values = self.inner.k_proj(states), self.inner.v_proj(states)
        return keys.unflatten(-1, heads), values.unflatten(-1, heads)


class Seq2SeqStage(LayerStage):
    """Layers ``[start_layer, end_layer)`` of a BART's decoder; weights are the model's own."""

    def __init__(self, model: Any, start: int, end: int) -> None:
        decoder = model.get_decoder()
        super().__init__(start, end, len(decoder.layers))
        self.layers = attending_copy(decoder.layers[start:end])
        self.crosses: list[_PooledCross] = []
        for layer in self.layers:
            self.crosses.append(_PooledCross(layer.encoder_attn))
            layer.encoder_attn = self.crosses[-1]
        self.embed = _Embedding(decoder) if self.is_first else None
        self.head = _Head(model) if self.is_last else None

    def forward(
        self,
        *,
        input_ids: Tensor | None,
        positions: Tensor | None,
        inputs_embeds: Tensor | None,
        attention: Attention,
        cross: CrossAttention,
        logit_rows: Tensor | None = None,
    ) -> Tensor:
        """Run the stage over flat rows; the arguments are those of ``HFStage.forward``."""
        hidden = inputs_embeds
        if self.embed is not None:
            if input_ids is None or positions is None:
                raise BuildError("the first stage of a decoder needs input_ids and positions")
            hidden = self.embed(input_ids, positions)
        if hidden is None:
            raise BuildError(
                f"stage [{self.start_layer}, {self.end_layer}) of {self.layer_count} layers needs "
                "inputs_embeds and got None: bind it under `forward` in the spec"
            )
        with attending(attention):
            for layer in self.layers:
                hidden = layer(hidden[None], None, cross)[0]
        if self.head is None:
            return hidden
        rows = hidden if logit_rows is None else hidden.index_select(0, logit_rows)
        logits: Tensor = self.head(rows)
        return logits

    def new_pool(self, rows: int) -> KVPool:
        """A pool for the stage's layers: their own keys and values, or those of the encoder."""
        heads, width = self.crosses[0].heads, self.crosses[0].width
        shape = KVShape(heads=heads, key_dim=width, value_dim=width)
        weight = next(self.parameters())
        return allocate(
            dict.fromkeys(range(self.start_layer, self.end_layer), shape),
            layers=self.layer_count,
            rows=rows,
            dtype=weight.dtype,
            device=weight.device,
        )

    @torch.no_grad()
    def admit(self, pool: KVPool, states: Tensor, rows: Tensor) -> None:
        """Keep the encoder's output ``states`` [positions, hidden] at ``rows`` of a cross pool.

        Called once a sequence, before its first step, between replays.
        """
        for cross in self.crosses:
            pool.layer(cross.layer_id).write(rows, *cross.keys_and_values(states))


class _Embedding(nn.Module):
    """Token and position embeddings, normalised."""

    def __init__(self, decoder: Any) -> None:
        super().__init__()
        self.tokens = attending_copy(decoder.embed_tokens)
        self.positions = attending_copy(decoder.embed_positions)
        self.norm = attending_copy(decoder.layernorm_embedding)

    def forward(self, input_ids: Tensor, positions: Tensor) -> Tensor:
        place = self.positions(input_ids[None], position_ids=positions)[0]
        embedded: Tensor = self.norm(self.tokens(input_ids) + place)
        return embedded


class _Head(nn.Module):
    """Logits of hidden states."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.linear = attending_copy(model.lm_head)
        self.register_buffer("bias", model.final_logits_bias[0])

    def forward(self, hidden: Tensor) -> Tensor:
        logits: Tensor = self.linear(hidden) + self.bias
        return logits


def split_decoder(model: Any, ranges: Sequence[tuple[int, int]]) -> list[Seq2SeqStage]:
    """Stages of a ``BartForConditionalGeneration``'s decoder, sharing its weights.

    Raises LayerError where the ranges do not cover the decoder's layers in order.
    """
    check_ranges(ranges, len(model.get_decoder().layers))
    return [Seq2SeqStage(model, start, end) for start, end in ranges]


# ---------------------------------------------------------------- what runners call


class _Seq2Seq(Runnable[Seq2SeqStage, ViewT]):
    """As every runnable, with rows of the encoder to look at."""

    def __init__(self, stage: Seq2SeqStage, pool: KVPool, cross_pool: KVPool) -> None:
        super().__init__(stage, pool)
        self.cross_pool = cross_pool

    @abstractmethod
    def cross(self, batch: ViewT) -> CrossAttention:
        """Whose encoder rows each query looks at."""

    def forward(
        self,
        *,
        input_ids: Tensor | None = None,
        positions: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        batch: ViewT,
    ) -> Tensor:
        """Hidden states [rows, hidden], on the last stage logits; only the first has positions."""
        result: Tensor = self.stage(
            input_ids=input_ids,
            positions=positions,
            inputs_embeds=inputs_embeds,
            attention=self.attention(batch),
            cross=self.cross(batch),
            logit_rows=self.logit_rows(batch),
        )
        return result


class Seq2SeqPrefill(_Seq2Seq[CrossPrefillView]):
    """Prompts of the decoder, packed, on a stage that is not the last: [tokens, hidden]."""

    def attention(self, batch: CrossPrefillView) -> Attention:
        return PrefillAttention(batch, self.pool)

    def cross(self, batch: CrossPrefillView) -> CrossAttention:
        return _cross_of_tokens(batch, self.cross_pool)


class Seq2SeqPrefillLast(_Seq2Seq[CrossPrefillLastView]):
    """The same on the last stage: logits [requests, vocab] of each prompt's last token."""

    def attention(self, batch: CrossPrefillLastView) -> Attention:
        return PrefillAttention(batch, self.pool)

    def cross(self, batch: CrossPrefillLastView) -> CrossAttention:
        return _cross_of_tokens(batch, self.cross_pool)

    def logit_rows(self, batch: CrossPrefillLastView) -> Tensor:
        return batch.last_token


class Seq2SeqDecode(_Seq2Seq[CrossDecodeView]):
    """A decode step on any stage: [requests, hidden], on the last stage [requests, vocab]."""

    def attention(self, batch: CrossDecodeView) -> Attention:
        return DecodeAttention(batch, self.pool)

    def cross(self, batch: CrossDecodeView) -> CrossAttention:
        return CrossAttention(batch, self.cross_pool)


def _cross_of_tokens(batch: CrossPrefillView, cross_pool: KVPool) -> CrossAttention:
    """Each token looks at its request's rows.

    Padding tokens look at those of the last request; what they get is read by nobody.
    """
    index = torch.arange(batch.slot_mapping.shape[0], device=batch.slot_mapping.device)
    request = torch.bucketize(index, batch.cu_seqlens[1:], right=True)
    request = request.clamp(max=batch.source_lens.shape[0] - 1)
    return CrossAttention(batch, cross_pool, request)


def seq2seq_prefill_module(
    stage: Seq2SeqStage, pool: KVPool, cross_pool: KVPool
) -> Seq2SeqPrefill | Seq2SeqPrefillLast:
    """The prefill module for the stage's place."""
    return (Seq2SeqPrefillLast if stage.is_last else Seq2SeqPrefill)(stage, pool, cross_pool)
