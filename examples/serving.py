"""The little of a serving engine that the examples need: pages of KV rows, and batches.

A sequence owns whole pages of the KV pool; position ``p`` lives in row ``p % PAGE`` of its page
``p // PAGE``. Page 0 is never handed out: its row 0 is where padding writes.
"""

from __future__ import annotations

from collections.abc import Sequence as Items
from dataclasses import dataclass, field
from itertools import accumulate

import torch
from torch import Tensor

PAGE = 16


@dataclass(slots=True, kw_only=True)
class Sequence:
    """Token ids so far, and the pages that hold their keys and values."""

    ids: list[int]
    pages: list[int] = field(default_factory=list)

    def row(self, position: int) -> int:
        return self.pages[position // PAGE] * PAGE + position % PAGE


class Pages:
    """Hands out the pages of a pool of ``rows`` rows."""

    def __init__(self, rows: int) -> None:
        self._free = list(range(rows // PAGE - 1, 0, -1))

    def fit(self, sequence: Sequence) -> None:
        """Give the sequence the pages that its tokens need."""
        while len(sequence.pages) * PAGE < len(sequence.ids):
            if not self._free:
                raise RuntimeError(f"no free page of {PAGE} rows left for a sequence")
            sequence.pages.append(self._free.pop())

    def release(self, sequence: Sequence) -> None:
        self._free += sequence.pages
        sequence.pages = []


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillBatch:
    """Whole sequences, packed one after the other. Small integers, on the host."""

    num_requests: int
    num_tokens: int
    input_ids: Tensor
    positions: Tensor
    slot_mapping: Tensor
    cu_seqlens: Tensor
    last_token: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeBatch:
    """The newest token of each sequence, and the rows of all its tokens."""

    num_requests: int
    num_tokens: int
    input_ids: Tensor
    positions: Tensor
    slot_mapping: Tensor
    slot_table: Tensor
    seq_lens: Tensor


def pack_prefill(sequences: Items[Sequence]) -> PrefillBatch:
    lengths = [len(s.ids) for s in sequences]
    ends = list(accumulate(lengths))
    return PrefillBatch(
        num_requests=len(sequences),
        num_tokens=ends[-1],
        input_ids=_int64([i for s in sequences for i in s.ids]),
        positions=_int64([p for n in lengths for p in range(n)]),
        slot_mapping=_int64([s.row(p) for s in sequences for p in range(len(s.ids))]),
        cu_seqlens=torch.tensor([0, *ends], dtype=torch.int32),
        last_token=_int64([end - 1 for end in ends]),
    )


def pack_decode(sequences: Items[Sequence], *, context: int) -> DecodeBatch:
    newest = [len(s.ids) - 1 for s in sequences]
    table = torch.zeros(len(sequences), context, dtype=torch.int64)
    for request, s in enumerate(sequences):
        rows = [s.row(p) for p in range(len(s.ids))]
        table[request, : len(rows)] = _int64(rows)
    return DecodeBatch(
        num_requests=len(sequences),
        num_tokens=len(sequences),
        input_ids=_int64([s.ids[-1] for s in sequences]),
        positions=_int64(newest),
        slot_mapping=_int64([s.row(p) for s, p in zip(sequences, newest, strict=True)]),
        slot_table=table,
        seq_lens=torch.tensor([n + 1 for n in newest], dtype=torch.int32),
    )


def _int64(values: list[int]) -> Tensor:
    return torch.tensor(values, dtype=torch.int64)
