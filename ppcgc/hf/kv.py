"""The KV cache: two tensors a layer, written in place by the graphs, never moved.

Row 0 belongs to padding: rows of a batch that no sequence owns are written there and nothing
that is live reads it. All rows hold finite numbers from the start, because a masked key still
takes part in ``0 * value``.
"""

from __future__ import annotations

import operator
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import SupportsIndex

import torch
from torch import Tensor

from ppcgc.runtime.errors import DimError, LayerError


@dataclass(frozen=True, slots=True, kw_only=True)
class KVShape:
    """What one token keeps in one layer. Keys and values may differ in width (MLA)."""

    heads: int
    key_dim: int
    value_dim: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerKV:
    """One layer's cache: ``keys`` [rows, heads, key_dim], ``values`` [rows, heads, value_dim]."""

    keys: Tensor
    values: Tensor

    def write(self, rows: Tensor, keys: Tensor, values: Tensor) -> None:
        """Store ``keys`` and ``values`` [tokens, heads, dim] at ``rows`` (int64 [tokens])."""
        self.keys.index_copy_(0, rows, keys)
        self.values.index_copy_(0, rows, values)


@dataclass(frozen=True, slots=True, kw_only=True)
class KVPool:
    """The cache of one stage, aligned by global layer id: None where another stage owns it."""

    layers: tuple[LayerKV | None, ...]

    def layer(self, layer_id: int) -> LayerKV:
        """The cache of a layer. Raises LayerError for a layer of another stage."""
        found = self.layers[layer_id] if 0 <= layer_id < len(self.layers) else None
        if found is None:
            owned = [i for i, layer in enumerate(self.layers) if layer is not None]
            raise LayerError(
                f"KV pool has no layer {layer_id}: this stage owns layers {owned}; "
                "make the pool with new_pool() of the stage that uses it"
            )
        return found

    def tensors(self, of: Container[int] | None = None) -> list[Tensor]:
        """The tensors of the layers in ``of``, or all: keys before values, in layer order."""
        return [
            tensor
            for layer_id, kv in enumerate(self.layers)
            if kv is not None and (of is None or layer_id in of)
            for tensor in (kv.keys, kv.values)
        ]


def allocate(
    shapes: Mapping[int, KVShape],
    *,
    layers: int,
    rows: int | Mapping[int, int],
    dtype: torch.dtype,
    device: torch.device | str,
) -> KVPool:
    """A zeroed pool for the layer ids in ``shapes``, out of ``layers`` layers.

    ``rows``: of every layer, or by layer id. Raises DimError for a pool without a row.
    """
    counts = {i: _row_count(i, rows[i] if isinstance(rows, Mapping) else rows) for i in shapes}

    def layer(layer_id: int) -> LayerKV | None:
        shape = shapes.get(layer_id)
        if shape is None:
            return None

        def empty(dim: int) -> Tensor:
            return torch.zeros(counts[layer_id], shape.heads, dim, dtype=dtype, device=device)

        return LayerKV(keys=empty(shape.key_dim), values=empty(shape.value_dim))

    return KVPool(layers=tuple(layer(layer_id) for layer_id in range(layers)))


def _row_count(layer_id: int, rows: object) -> int:
    if isinstance(rows, SupportsIndex) and operator.index(rows) > 0:
        return operator.index(rows)
    raise DimError(
        f"KV pool of {rows!r} rows for layer {layer_id}: it needs an integer of at least 1, for "
        "row 0 belongs to padding; give one row more than tokens are to be kept"
    )
