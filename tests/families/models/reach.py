"""What each query of a flat batch can look at: the candidates, and which of them are allowed.

One answer for packed prompts, one for a decode step over the cache, by the same three questions,
so that an attention of any form can be written once. Shapes depend on the bucket alone.

Shape letters: T queries, C candidates (packed: the tokens themselves; cached: positions of a
sequence), N any number of positions.

# Note [queries that no sequence owns]
Rows from live to padded are allowed the candidate 0 or themselves, so that their softmax is
finite; ``owned`` says which results count.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from ppcgc.hf.attention import DecodeView, PrefillView


class Reach(Protocol):
    """The candidates of every query."""

    @property
    def allowed(self) -> Tensor:
        """bool [T, C]: causal, and inside the query's own sequence."""
        ...

    @property
    def owned(self) -> Tensor:
        """bool [T]: queries that belong to a sequence."""
        ...

    @property
    def positions(self) -> Tensor:
        """int64 [T or 1, C]: each candidate's position in its own sequence."""
        ...

    def candidates(self, cache: Tensor, new: Tensor) -> Tensor:
        """Write ``new`` [T, ...] to ``cache`` [rows, ...]; give candidates [T or 1, C, ...]."""
        ...

    def chosen(self, positions: Tensor) -> Tensor:
        """bool [T, C]: allowed candidates among ``positions`` (int [T, N]; -1 stands for none)."""
        ...


def _marked(indices: Tensor, like: Tensor) -> Tensor:
    """bool like ``like`` [T, C], true at ``indices`` [T, N]; an index outside marks nothing."""
    width = like.shape[1]
    outside = (indices < 0) | (indices >= width)
    marks = like.new_zeros(like.shape[0], width + 1)
    return marks.scatter(1, indices.masked_fill(outside, width), True)[:, :width]


class PackedReach:
    """Prompts packed one after the other: the candidates are the batch's own tokens."""

    def __init__(self, view: PrefillView, positions: Tensor) -> None:
        ends = view.cu_seqlens.long()
        index = torch.arange(positions.shape[0], device=positions.device)
        request = torch.bucketize(index, ends[1:], right=True)
        self._rows = view.slot_mapping
        self._starts = ends.index_select(0, request)[:, None]
        self.owned = index < ends[-1]
        same = (request[:, None] == request) & self.owned & self.owned[:, None]
        self.allowed = (same & (index[:, None] >= index)) | (index[:, None] == index)
        self.positions = positions[None]

    def candidates(self, cache: Tensor, new: Tensor) -> Tensor:
        cache.index_copy_(0, self._rows, new)
        return new[None]

    def chosen(self, positions: Tensor) -> Tensor:
        none = positions < 0
        packed = (positions + self._starts).masked_fill(none, -1)
        return _marked(packed, self.allowed) & self.allowed


class CachedReach:
    """One query a request: the candidates are the rows of the cache that its table names."""

    def __init__(self, view: DecodeView) -> None:
        table, lengths = view.slot_table, view.seq_lens[:, None]
        position = torch.arange(table.shape[1], device=table.device)
        self._rows, self._table = view.slot_mapping, table
        self.owned = view.seq_lens > 0
        self.allowed = (position < lengths) | ((lengths == 0) & (position == 0))
        self.positions = position[None]

    def candidates(self, cache: Tensor, new: Tensor) -> Tensor:
        cache.index_copy_(0, self._rows, new)
        flat = cache.index_select(0, self._table.reshape(-1))
        return flat.view(*self._table.shape, *cache.shape[1:])

    def chosen(self, positions: Tensor) -> Tensor:
        return _marked(positions, self.allowed) & self.allowed


def attend(
    query: Tensor, keys: Tensor, values: Tensor, allowed: Tensor, owned: Tensor, scaling: float
) -> Tensor:
    """Softmax attention. query [T, H, D], keys and values [T or 1, C, H, D] -> [T, H, D]."""
    scores = torch.einsum("thd,tchd->thc", query, keys.expand(query.shape[0], -1, -1, -1))
    scores = (scores * scaling).masked_fill(~allowed[:, None], float("-inf"))
    weights = scores.float().softmax(-1).to(values.dtype)
    out = torch.einsum("thc,tchd->thd", weights, values.expand(query.shape[0], -1, -1, -1))
    return out.masked_fill(~owned[:, None, None], 0)
