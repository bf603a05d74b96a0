"""Batches of packed prompts: on the host as numpy arrays or CPU tensors, or on the device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.shape import Shape

INTEGERS = (
    "positions",
    "slot_mapping",
    "request_rows",
    "seq_lens",
    "prefix_lens",
    "starts",
    "cu_seqlens",
)
BY_TOKENS = ("positions", "slot_mapping")
LONG = ("positions", "slot_mapping", "request_rows")  # int64; the others are int32


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What an engine hands over: two counts and seven arrays or tensors of integers."""

    num_tokens: int
    num_requests: int
    positions: Any
    slot_mapping: Any
    request_rows: Any
    seq_lens: Any
    prefix_lens: Any
    starts: Any
    cu_seqlens: Any

    def of(self, change: Any) -> Batch:
        """The same batch with ``change`` applied to each array."""
        return Batch(
            num_tokens=self.num_tokens,
            num_requests=self.num_requests,
            **{name: change(getattr(self, name)) for name in INTEGERS},
        )

    def on(self, device: torch.device) -> Batch:
        """Tensors on a device; on the CPU they share the arrays' memory."""
        return self.of(lambda rows: torch.as_tensor(rows).to(device))

    def sent_to(self, device: torch.device) -> Batch:
        """The same without waiting: a copy from memory that is not pinned waits for the stream."""
        if device.type != "cuda":
            return self.on(device)
        return self.of(
            lambda rows: torch.as_tensor(rows).pin_memory().to(device, non_blocking=True)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A boundary of live rows on the device."""

    hidden_states: Tensor
    residual: Tensor


def batch_of(lengths: Sequence[int]) -> Batch:
    """Prompts of these lengths, as numpy arrays. Row 0 of the cache belongs to padding."""
    total = sum(lengths)
    ends = np.cumsum(lengths)
    return Batch(
        num_tokens=total,
        num_requests=len(lengths),
        positions=np.concatenate([np.arange(n, dtype=np.int64) for n in lengths]),
        slot_mapping=np.arange(1, total + 1, dtype=np.int64),
        request_rows=np.arange(1, len(lengths) + 1, dtype=np.int64),
        seq_lens=np.array(lengths, dtype=np.int32),
        prefix_lens=np.zeros(len(lengths), dtype=np.int32),
        starts=np.array([0, *ends[:-1]], dtype=np.int32),
        cu_seqlens=np.array([0, *ends], dtype=np.int32),
    )


def prompts(tokens: int, requests: int = 4) -> list[int]:
    """``tokens`` as lengths of a few uneven prompts."""
    parts = range(min(requests, tokens) + 1)
    bounds = [tokens * part * (part + 1) // (parts[-1] * (parts[-1] + 1)) for part in parts]
    return [after - before for before, after in pairwise(bounds) if after > before]


def boundary_of(shape: Shape, tokens: int, device: torch.device) -> Given:
    """Random rows [tokens, hidden], the same for the same number of tokens."""
    random = torch.Generator(device).manual_seed(tokens)

    def rows() -> Tensor:
        made = torch.randn(tokens, shape.hidden_size, generator=random, device=device)
        return made.to(shape.dtype)

    return Given(hidden_states=rows(), residual=rows())


def padded(batch: Batch, given: Given, tokens: int, requests: int) -> tuple[Batch, Given]:
    """Device tensors padded as the spec says: zero, offsets by their last value."""

    def grow(name: str) -> Tensor:
        rows: Tensor = getattr(batch, name)
        size = tokens if name in BY_TOKENS else requests + (name == "cu_seqlens")
        tail = rows[-1:].expand(size - len(rows)) if name == "cu_seqlens" else None
        if tail is None:
            tail = rows.new_zeros(size - len(rows))
        return torch.cat([rows, tail])

    whole = Batch(
        num_tokens=tokens, num_requests=requests, **{name: grow(name) for name in INTEGERS}
    )

    def widen(rows: Tensor) -> Tensor:
        return torch.cat([rows, rows.new_zeros(tokens - rows.shape[0], rows.shape[1])])

    return whole, Given(hidden_states=widen(given.hidden_states), residual=widen(given.residual))
