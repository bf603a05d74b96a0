"""Attention of one forward: packed prefill, or one decode step over the cache.

An object is made for each forward from the runner's view and the stage's pool, and asked once a
layer. What all layers share (masks, flat row lists) is computed once, at first use.

Everything here has shapes that depend on the bucket alone, reads nothing back to the host and
builds no tensor from Python numbers, so that it can be captured.

# Note [rows that no sequence owns]
The rows from live to padded are computed like any other. Their own row of the mask always allows
something, so that the softmax is finite, and their result is then replaced by zero:
``masked_fill`` and not a product, which would keep a NaN. Fused kernels leave such rows
uninitialised; the same ``masked_fill`` makes them deterministic.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from ppcgc.hf.kernels import (
    Scoring,
    additive_mask,
    masked_attention,
    varlen_attention,
    varlen_serves,
)
from ppcgc.hf.kv import KVPool


class PrefillView(Protocol):
    """What attention reads in a prefill: whole prompts, packed one after the other."""

    @property
    def slot_mapping(self) -> Tensor:
        """int64 [tokens]: the pool row that each token's key and value are written to."""
        ...

    @property
    def cu_seqlens(self) -> Tensor:
        """int32 [requests + 1]: where each prompt starts; the last entry is the live tokens."""
        ...


class PrefillLastView(PrefillView, Protocol):
    """What the last stage reads besides."""

    @property
    def last_token(self) -> Tensor:
        """int64 [requests]: the row of each prompt's last token."""
        ...


class DecodeView(Protocol):
    """What attention reads in a decode step: one token a request."""

    @property
    def slot_mapping(self) -> Tensor:
        """int64 [requests]: the pool row that each token's key and value are written to."""
        ...

    @property
    def slot_table(self) -> Tensor:
        """int64 [requests, context]: the pool row of each position of each request."""
        ...

    @property
    def seq_lens(self) -> Tensor:
        """int32 [requests]: positions to attend to, the new token's included; 0 if not live."""
        ...


class Attention(Protocol):
    """Attention of one forward."""

    def attend(
        self, layer_id: int, query: Tensor, keys: Tensor, values: Tensor, scoring: Scoring
    ) -> Tensor:
        """Write the tokens' keys and values to the layer's cache and attend.

        query [tokens, heads, key_dim], keys [tokens, kv_heads, key_dim], values [tokens,
        kv_heads, value_dim] -> [tokens, heads, value_dim]; zero in rows that no sequence owns.
        """
        ...


class PrefillAttention:
    """Causal attention inside each packed prompt, from the batch's own keys and values."""

    def __init__(self, view: PrefillView, pool: KVPool) -> None:
        self._pool = pool
        self._rows = view.slot_mapping
        self._cu_seqlens = view.cu_seqlens
        self._index = torch.arange(self._rows.shape[0], device=self._rows.device)
        self._unowned = (self._index >= self._cu_seqlens[-1])[:, None, None]
        self._masks: dict[int | None, Tensor] = {}

    def attend(
        self, layer_id: int, query: Tensor, keys: Tensor, values: Tensor, scoring: Scoring
    ) -> Tensor:
        self._pool.layer(layer_id).write(self._rows, keys, values)
        if varlen_serves(query, keys, values, scoring):
            out = varlen_attention(query, keys, values, self._cu_seqlens, scoring)
        else:
            out = self._exact(query, keys, values, scoring)
        return out.masked_fill(self._unowned, 0)

    def _exact(self, query: Tensor, keys: Tensor, values: Tensor, scoring: Scoring) -> Tensor:
        tokens, heads, width = query.shape
        kv_heads = keys.shape[1]
        grouped = query.view(tokens, kv_heads, heads // kv_heads, width).permute(1, 2, 0, 3)
        sinks = None if scoring.sinks is None else scoring.sinks.view(kv_heads, -1, 1, 1)
        out = masked_attention(
            grouped,  # [K, G, T, D]
            keys.transpose(0, 1)[:, None],  # [K, 1, T, D]
            values.transpose(0, 1)[:, None],
            self._mask(scoring.window, query.dtype),
            scoring,
            sinks,
        )
        return out.permute(2, 0, 1, 3).reshape(tokens, heads, values.shape[-1])

    def _mask(self, window: int | None, dtype: torch.dtype) -> Tensor:
        """[tokens, tokens]. Padding rows share a request of their own and see themselves."""
        if window not in self._masks:
            request = torch.bucketize(self._index, self._cu_seqlens[1:], right=True)
            distance = self._index[:, None] - self._index[None, :]
            allowed = (request[:, None] == request[None, :]) & (distance >= 0)
            if window is not None:
                allowed = allowed & (distance < window)
            self._masks[window] = additive_mask(allowed, dtype)
        return self._masks[window]


class DecodeAttention:
    """One query a request, over the rows of the pool that its table names."""

    def __init__(self, view: DecodeView, pool: KVPool) -> None:
        self._pool = pool
        self._rows = view.slot_mapping
        self._seq_lens = view.seq_lens[:, None]
        self._table_shape = view.slot_table.shape
        self._table = view.slot_table.reshape(-1)
        self._position = torch.arange(self._table_shape[1], device=self._table.device)
        self._unowned = (self._seq_lens == 0)[:, :, None]
        self._masks: dict[int | None, Tensor] = {}

    def attend(
        self, layer_id: int, query: Tensor, keys: Tensor, values: Tensor, scoring: Scoring
    ) -> Tensor:
        cache = self._pool.layer(layer_id)
        cache.write(self._rows, keys, values)
        requests, heads, width = query.shape
        kv_heads = keys.shape[1]
        sinks = None if scoring.sinks is None else scoring.sinks.view(1, kv_heads, -1, 1)
        # a group's queries share keys and mask, so they stand where query positions would
        out = masked_attention(
            query.view(requests, kv_heads, heads // kv_heads, width),
            self._gather(cache.keys),
            self._gather(cache.values),
            self._mask(scoring.window, query.dtype),
            scoring,
            sinks,
        )
        return out.reshape(requests, heads, values.shape[-1]).masked_fill(self._unowned, 0)

    def _gather(self, pool: Tensor) -> Tensor:
        """[requests, kv_heads, context, dim]"""
        rows = pool.index_select(0, self._table)
        return rows.view(*self._table_shape, *pool.shape[1:]).transpose(1, 2)

    def _mask(self, window: int | None, dtype: torch.dtype) -> Tensor:
        """[requests, 1, 1, context]. A request that is not live sees its first table entry."""
        if window not in self._masks:
            allowed = self._position < self._seq_lens
            if window is not None:
                allowed = allowed & (self._position >= self._seq_lens - window)
            allowed = allowed | ((self._seq_lens == 0) & (self._position == 0))
            self._masks[window] = additive_mask(allowed, dtype)[:, None, None]
        return self._masks[window]
