"""Sequences with two sets of cache rows: pages for full layers, a ring for sliding ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

import torch
from hf_family import MakeParts, StageParts, poisoned
from torch import Tensor

from examples.serving import Pages, pack_decode, pack_prefill
from examples.serving import Sequence as PagedSequence
from ppcgc.hf.sliding import HFSlidingDecode, sliding_prefill_module
from ppcgc.hf.stage import HFStage


@dataclass(slots=True, kw_only=True)
class RingSequence(PagedSequence):
    """A sequence whose position ``p`` is kept in row ``ring + p % window`` of the sliding pool."""

    ring: int
    window: int

    def ring_row(self, position: int) -> int:
        return self.ring + position % self.window


@dataclass(frozen=True, slots=True, kw_only=True)
class SlidingPrefillBatch:
    num_requests: int
    num_tokens: int
    input_ids: Tensor
    positions: Tensor
    slot_mapping: Tensor
    slot_mapping_swa: Tensor
    cu_seqlens: Tensor
    last_token: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class SlidingDecodeBatch:
    num_requests: int
    num_tokens: int
    input_ids: Tensor
    positions: Tensor
    slot_mapping: Tensor
    slot_table: Tensor
    slot_mapping_swa: Tensor
    slot_table_swa: Tensor
    seq_lens: Tensor


class SlidingEngine:
    """Sequences over pages of the full pool and rings of the sliding one."""

    def __init__(self, *, rows: int, context: int, swa_rows: int, window: int) -> None:
        self._pages = Pages(rows)
        self._context, self._window = context, window
        self._rings = list(range(1, swa_rows - window + 1, window))

    def start(self, ids: list[int]) -> RingSequence:
        return RingSequence(ids=ids, ring=self._rings.pop(), window=self._window)

    def prefill(self, sequences: Sequence[RingSequence]) -> SlidingPrefillBatch:
        batch = pack_prefill(self._fitted(sequences))
        rows = [
            s.ring_row(position) if position >= len(s.ids) - self._window else 0
            for s in sequences
            for position in range(len(s.ids))
        ]
        return SlidingPrefillBatch(
            num_requests=batch.num_requests,
            num_tokens=batch.num_tokens,
            input_ids=batch.input_ids,
            positions=batch.positions,
            slot_mapping=batch.slot_mapping,
            slot_mapping_swa=torch.tensor(rows),
            cu_seqlens=batch.cu_seqlens,
            last_token=batch.last_token,
        )

    def decode(self, sequences: Sequence[RingSequence]) -> SlidingDecodeBatch:
        batch = pack_decode(self._fitted(sequences), context=self._context)
        tables = [self._ring_table(s) for s in sequences]
        return SlidingDecodeBatch(
            num_requests=batch.num_requests,
            num_tokens=batch.num_tokens,
            input_ids=batch.input_ids,
            positions=batch.positions,
            slot_mapping=batch.slot_mapping,
            slot_table=batch.slot_table,
            slot_mapping_swa=torch.tensor([s.ring_row(len(s.ids) - 1) for s in sequences]),
            slot_table_swa=torch.tensor(tables),
            seq_lens=batch.seq_lens,
        )

    def _ring_table(self, sequence: RingSequence) -> list[int]:
        newest = range(max(0, len(sequence.ids) - self._window), len(sequence.ids))
        rows = [sequence.ring_row(position) for position in newest]
        return rows + [0] * (self._window - len(rows))

    def _fitted(self, sequences: Sequence[RingSequence]) -> Sequence[RingSequence]:
        for sequence in sequences:
            self._pages.fit(sequence)
        return sequences


def sliding_parts(package: ModuleType, kv_rows: int, swa_rows: int) -> MakeParts:
    """Parts of a family with two pools."""

    def make(stage: HFStage) -> StageParts:
        pool = poisoned(stage.new_pool(kv_rows, sliding_rows=swa_rows))
        sliding = stage.sliding_layers
        full = frozenset(range(stage.start_layer, stage.end_layer)) - sliding
        return StageParts(
            modules={
                "prefill": sliding_prefill_module(stage, pool),
                "decode": HFSlidingDecode(stage, pool),
            },
            state=package.State(kv=pool.tensors(full), swa_kv=pool.tensors(sliding)),
        )

    return make
