"""Layers with a sliding window, whose cache is a pool of its own with write locations of its own.

A sliding layer never looks back further than its window, so a sequence needs ``window`` rows of
its pool however long it grows: a ring, in which a token takes the row of the token that has just
left the window. Tokens of a prompt that no later token can see are written to the reserved row.

Prefill attends to the batch's own keys and values, so only its writes differ. A decode step
reads a sequence's whole ring; the order of rows does not matter, keys carry their positions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from ppcgc.hf.attention import (
    Attention,
    DecodeAttention,
    PrefillAttention,
)
from ppcgc.hf.kernels import Scoring
from ppcgc.hf.kv import KVPool
from ppcgc.hf.runners import Runnable, check_last
from ppcgc.hf.stage import HFStage
from ppcgc.runtime.errors import BuildError


class SlidingPrefillView(Protocol):
    """Whole prompts. The slots of a pool are None on stages without a layer that uses it."""

    @property
    def slot_mapping(self) -> Tensor | None:
        """int64 [tokens]: the row of the full layers' pool that each token is written to."""
        ...

    @property
    def slot_mapping_swa(self) -> Tensor | None:
        """int64 [tokens]: the same in the sliding layers' pool; the reserved row for tokens that
        have left the window by the end of their prompt."""
        ...

    @property
    def cu_seqlens(self) -> Tensor:
        """int32 [requests + 1]: where each prompt starts; the last entry is the live tokens."""
        ...


class SlidingPrefillLastView(SlidingPrefillView, Protocol):
    """What the last stage reads besides."""

    @property
    def last_token(self) -> Tensor:
        """int64 [requests]: the row of each prompt's last token."""
        ...


class SlidingDecodeView(Protocol):
    """A decode step. The slots of a pool are None on stages without a layer that uses it."""

    @property
    def slot_mapping(self) -> Tensor | None:
        """int64 [requests]: the row of the full layers' pool for each new token."""
        ...

    @property
    def slot_table(self) -> Tensor | None:
        """int64 [requests, context]: the row of each position of each request."""
        ...

    @property
    def slot_mapping_swa(self) -> Tensor | None:
        """int64 [requests]: the row of the sliding layers' pool for each new token."""
        ...

    @property
    def slot_table_swa(self) -> Tensor | None:
        """int64 [requests, window]: the rows of each request's newest positions, in any order."""
        ...

    @property
    def seq_lens(self) -> Tensor:
        """int32 [requests]: positions so far, the new token's included; 0 if not live."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prompts:
    """A prefill's view as the layers of one pool see it."""

    slot_mapping: Tensor
    cu_seqlens: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """A decode step's view as the layers of one pool see it."""

    slot_mapping: Tensor
    slot_table: Tensor
    seq_lens: Tensor


class AttentionByLayer:
    """Asks each layer's own attention."""

    def __init__(self, by_layer: Mapping[int, Attention]) -> None:
        self._by_layer = by_layer

    def attend(
        self, layer_id: int, query: Tensor, keys: Tensor, values: Tensor, scoring: Scoring
    ) -> Tensor:
        return self._by_layer[layer_id].attend(layer_id, query, keys, values, scoring)


class _Sliding:
    """Which layers of a stage have which pool. Slots of a pool that has no layer are not read."""

    def __init__(self, stage: HFStage, pool: KVPool) -> None:
        self._pool = pool
        self._sliding = stage.sliding_layers
        self._full = frozenset(range(stage.start_layer, stage.end_layer)) - self._sliding

    def prefill(self, batch: SlidingPrefillView) -> AttentionByLayer:
        by_layer: dict[int, Attention] = {}
        if self._full:
            by_layer |= self._prompts(self._full, batch.slot_mapping, batch.cu_seqlens)
        if self._sliding:
            by_layer |= self._prompts(self._sliding, batch.slot_mapping_swa, batch.cu_seqlens)
        return AttentionByLayer(by_layer)

    def decode(self, batch: SlidingDecodeView) -> AttentionByLayer:
        by_layer: dict[int, Attention] = {}
        if self._full:
            table = _there(batch.slot_table)
            by_layer |= self._step(self._full, batch.slot_mapping, table, batch.seq_lens)
        if self._sliding:
            table = _there(batch.slot_table_swa)
            lengths = batch.seq_lens.clamp(max=table.shape[1])
            by_layer |= self._step(self._sliding, batch.slot_mapping_swa, table, lengths)
        return AttentionByLayer(by_layer)

    def _prompts(
        self, layers: frozenset[int], rows: Tensor | None, cu_seqlens: Tensor
    ) -> dict[int, Attention]:
        view = _Prompts(slot_mapping=_there(rows), cu_seqlens=cu_seqlens)
        return dict.fromkeys(layers, PrefillAttention(view, self._pool))

    def _step(
        self, layers: frozenset[int], rows: Tensor | None, table: Tensor, lengths: Tensor
    ) -> dict[int, Attention]:
        view = _Step(slot_mapping=_there(rows), slot_table=table, seq_lens=lengths)
        return dict.fromkeys(layers, DecodeAttention(view, self._pool))


def _there(slot: Tensor | None) -> Tensor:
    """A slot of a pool that some layer of the stage uses."""
    if slot is None:
        raise BuildError(
            "a slot of the cache is None on a stage with layers that use it: the spec's kinds of "
            "layers and the config's layer_types differ"
        )
    return slot


class HFSlidingPrefill(Runnable[HFStage, SlidingPrefillView]):
    """Prefill on a stage that is not the last: hidden states [tokens, hidden]."""

    def __init__(self, stage: HFStage, pool: KVPool) -> None:
        super().__init__(stage, pool)
        check_last(stage, last=False, module="HFSlidingPrefill", other="HFSlidingPrefillLast")
        self._kinds = _Sliding(stage, pool)

    def attention(self, batch: SlidingPrefillView) -> Attention:
        return self._kinds.prefill(batch)


class HFSlidingPrefillLast(Runnable[HFStage, SlidingPrefillLastView]):
    """Prefill on the last stage: logits [requests, vocab] of each prompt's last token."""

    def __init__(self, stage: HFStage, pool: KVPool) -> None:
        super().__init__(stage, pool)
        check_last(stage, last=True, module="HFSlidingPrefillLast", other="HFSlidingPrefill")
        self._kinds = _Sliding(stage, pool)

    def attention(self, batch: SlidingPrefillLastView) -> Attention:
        return self._kinds.prefill(batch)

    def logit_rows(self, batch: SlidingPrefillLastView) -> Tensor:
        return batch.last_token


class HFSlidingDecode(Runnable[HFStage, SlidingDecodeView]):
    """A decode step on any stage: [requests, hidden], on the last stage [requests, vocab]."""

    def __init__(self, stage: HFStage, pool: KVPool) -> None:
        super().__init__(stage, pool)
        self._kinds = _Sliding(stage, pool)

    def attention(self, batch: SlidingDecodeView) -> Attention:
        return self._kinds.decode(batch)


def sliding_prefill_module(stage: HFStage, pool: KVPool) -> HFSlidingPrefill | HFSlidingPrefillLast:
    """The prefill module for the stage's place."""
    return (HFSlidingPrefillLast if stage.is_last else HFSlidingPrefill)(stage, pool)
