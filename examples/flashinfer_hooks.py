"""Attention of FlashInfer's paged wrappers, planned outside of the graphs and run inside them.

A hook of a runner makes one wrapper for each graph (``key``) and has the library plan before each
warm-up, capture and replay (``plan``). What ``key`` returns is what the model's forward gets as
``attention``: the same wrapper, so that a graph replays with the newest plan.

# Note [indices belong to the wrapper]
A captured kernel reads offsets and page numbers at addresses that must not move. The wrapper is
given buffers of its own for them, and each plan copies into these. The slots that it copies from
are loaded before, and reused by the next step: offsets lie in pageable host memory, which a copy
has read when it returns; page numbers lie on the device, where the copy is ordered by the stream
and makes them as narrow as the kernels want them.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor


class Cache(Protocol):
    """Keys and values of one layer, [rows, kv_heads, width] each: page behind page."""

    @property
    def keys(self) -> Tensor: ...
    @property
    def values(self) -> Tensor: ...
    def write(self, rows: Tensor, keys: Tensor, values: Tensor) -> None: ...


class Pool(Protocol):
    """The caches of a stage, by the layer's id in the whole model."""

    def layer(self, layer_id: int) -> Cache: ...


class Rows(Protocol):
    """Rows of a bucket, or of an eager step."""

    @property
    def requests(self) -> int: ...
    @property
    def pages(self) -> int: ...


class PagedSlots(Protocol):
    """What both plans read, and where new keys and values go."""

    @property
    def slot_mapping(self) -> Tensor: ...  # int64 [tokens], device
    @property
    def page_indptr(self) -> Tensor: ...  # int32 [requests + 1], host
    @property
    def page_indices(self) -> Tensor: ...  # int64 [pages], device
    @property
    def last_page_len(self) -> Tensor: ...  # int32 [requests], host


class PackedSlots(PagedSlots, Protocol):
    """What a prefill's plan reads besides."""

    @property
    def cu_seqlens(self) -> Tensor: ...  # int32 [requests + 1], host


@dataclass(frozen=True, slots=True, kw_only=True)
class Heads:
    """The shape of a stage's attention. ``dtype`` is that of queries, keys and values."""

    query: int
    kv: int
    width: int
    page_size: int
    dtype: torch.dtype


class PlannedAttention:
    """One graph's wrapper over the stage's cache. Made by ``key``, run by the forward."""

    def __init__(self, wrapper: Any, pool: Pool, rows: Tensor, heads: Heads) -> None:
        self.wrapper = wrapper
        self._pool = pool
        self._rows = rows
        self._page = (-1, heads.page_size, heads.kv, heads.width)

    def attend(
        self, layer_id: int, query: Tensor, keys: Tensor, values: Tensor, scoring: object = None
    ) -> Tensor:
        """Write the tokens' keys and values to the cache, and attend to all that was planned.

        query [tokens, heads, width], keys and values [tokens, kv_heads, width] -> [tokens, heads,
        width]; rows that no request owns are zero. Scores are scaled by ``width ** -0.5``.
        """
        cache = self._pool.layer(layer_id)
        cache.write(self._rows, keys, values)
        pages = (cache.keys.view(self._page), cache.values.view(self._page))
        out: Tensor = self.wrapper.run(query, pages)
        return out


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeHook:
    """The hook ``attention`` of a decode runner: one query a request.

    ``library`` has the wrappers, FlashInfer itself when it is None.
    """

    pool: Pool
    heads: Heads
    library: Any = None

    def key(self, rows: Rows, slots: PagedSlots, workspace: Tensor | None) -> PlannedAttention:
        """A wrapper for graphs of these rows. All graphs of a runner share the workspace."""
        workspace = given(workspace)
        numbers = IndexBuffers(rows, workspace.device)
        wrapper = library_of(self).BatchDecodeWithPagedKVCacheWrapper(
            workspace,
            "NHD",
            use_cuda_graph=True,
            paged_kv_indptr_buffer=numbers.offsets(),
            paged_kv_indices_buffer=numbers.indices(),
            paged_kv_last_page_len_buffer=numbers.lengths(),
        )
        return PlannedAttention(wrapper, self.pool, slots.slot_mapping, self.heads)

    def plan(self, made: PlannedAttention, slots: PagedSlots, batch: object, live: object) -> None:
        """Plan for the rows that the slots hold now; padding requests own no page."""
        heads = self.heads
        made.wrapper.plan(
            slots.page_indptr,
            slots.page_indices,
            slots.last_page_len,
            heads.query,
            heads.kv,
            heads.width,
            heads.page_size,
            q_data_type=heads.dtype,
            kv_data_type=heads.dtype,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillHook:
    """The hook ``attention`` of a prefill runner: packed prompts, causal inside each.

    A request's queries are its last positions, so a cached prefix may stand before them.
    ``backend`` is the library's word for its kernels.
    """

    pool: Pool
    heads: Heads
    library: Any = None
    backend: str = "fa2"

    def key(self, rows: Rows, slots: PackedSlots, workspace: Tensor | None) -> PlannedAttention:
        """A wrapper for graphs of these rows. All graphs of a runner share the workspace."""
        workspace = given(workspace)
        numbers = IndexBuffers(rows, workspace.device)
        wrapper = library_of(self).BatchPrefillWithPagedKVCacheWrapper(
            workspace,
            "NHD",
            use_cuda_graph=True,
            qo_indptr_buf=numbers.offsets(),
            paged_kv_indptr_buf=numbers.offsets(),
            paged_kv_indices_buf=numbers.indices(),
            paged_kv_last_page_len_buf=numbers.lengths(),
            backend=self.backend,
        )
        return PlannedAttention(wrapper, self.pool, slots.slot_mapping, self.heads)

    def plan(self, made: PlannedAttention, slots: PackedSlots, batch: object, live: object) -> None:
        """Plan for the rows that the slots hold now; padding requests own no query and no page."""
        heads = self.heads
        made.wrapper.plan(
            slots.cu_seqlens,
            slots.page_indptr,
            slots.page_indices,
            slots.last_page_len,
            heads.query,
            heads.kv,
            heads.width,
            heads.page_size,
            causal=True,
            q_data_type=heads.dtype,
            kv_data_type=heads.dtype,
        )


class IndexBuffers:
    """Buffers for a wrapper's own numbers, see Note [indices belong to the wrapper]."""

    def __init__(self, rows: Rows, device: torch.device) -> None:
        self._rows, self._device = rows, device

    def offsets(self) -> Tensor:
        return self._zeros(self._rows.requests + 1)

    def lengths(self) -> Tensor:
        return self._zeros(self._rows.requests)

    def indices(self) -> Tensor:
        return self._zeros(self._rows.pages)

    def _zeros(self, count: int) -> Tensor:
        return torch.zeros(count, dtype=torch.int32, device=self._device)


def given(workspace: Tensor | None) -> Tensor:
    """The workspace that the spec declares. Raises ValueError for a spec without one."""
    if workspace is None:
        raise ValueError("the wrappers need device memory: give the hook a `workspace` in the spec")
    return workspace


def library_of(hook: DecodeHook | PrefillHook) -> Any:
    """What has the wrappers: what the hook was built with, or FlashInfer."""
    return hook.library or importlib.import_module("flashinfer")
