"""A stand-in for a library that plans on the host: FlashInfer's paged wrappers, in plain torch.

The contract is that of the library: buffers for offsets and page numbers are given when a wrapper
is made, ``plan`` copies host numbers into them through one staging buffer that all wrappers
share, and ``run`` reads what was planned, at shapes that no plan can change.

Shape letters: T queries, R requests, P pages, S rows of a page, H heads, K key/value heads,
G queries' heads to each of them, D width.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


class PlannedLibrary:
    """Has the wrappers of the library. ``log`` has what was called, in order."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.staging = torch.zeros(4096, dtype=torch.int64)
        self.workspaces: list[Tensor] = []

    def BatchDecodeWithPagedKVCacheWrapper(  # the library's name
        self,
        workspace: Tensor,
        layout: str,
        *,
        use_cuda_graph: bool,
        paged_kv_indptr_buffer: Tensor,
        paged_kv_indices_buffer: Tensor,
        paged_kv_last_page_len_buffer: Tensor,
    ) -> DecodeWrapper:
        self._made(workspace, layout, use_cuda_graph, len(paged_kv_last_page_len_buffer))
        return DecodeWrapper(
            self, paged_kv_indptr_buffer, paged_kv_indices_buffer, paged_kv_last_page_len_buffer
        )

    def BatchPrefillWithPagedKVCacheWrapper(  # the library's name
        self,
        workspace: Tensor,
        layout: str,
        *,
        use_cuda_graph: bool,
        qo_indptr_buf: Tensor,
        paged_kv_indptr_buf: Tensor,
        paged_kv_indices_buf: Tensor,
        paged_kv_last_page_len_buf: Tensor,
        backend: str,
    ) -> PrefillWrapper:
        self._made(workspace, layout, use_cuda_graph, len(paged_kv_last_page_len_buf))
        return PrefillWrapper(
            self,
            paged_kv_indptr_buf,
            paged_kv_indices_buf,
            paged_kv_last_page_len_buf,
            qo_indptr_buf,
        )

    def _made(self, workspace: Tensor, layout: str, use_cuda_graph: bool, requests: int) -> None:
        assert (layout, use_cuda_graph) == ("NHD", True)
        self.workspaces.append(workspace)
        self.log.append(f"key {requests}")

    def stage(self, values: Tensor, into: Tensor) -> None:
        """Copy numbers to where kernels read them, through the one buffer."""
        assert values.device.type == "cpu"
        staged = self.staging[: len(values)]
        staged.copy_(values)
        into[: len(values)].copy_(staged)


class Wrapper:
    """One graph's plan, and attention by it."""

    def __init__(
        self, library: PlannedLibrary, indptr: Tensor, indices: Tensor, last_page_len: Tensor
    ) -> None:
        self.library = library
        self.indptr, self.indices, self.last_page_len = indptr, indices, last_page_len
        self.rows: int | None = None  # queries of the newest plan
        self.page_size = 0

    def _plan(self, offsets: Sequence[Tensor], page_size: int) -> None:
        indptr, indices, last_page_len = offsets
        if len(indptr) != len(self.indptr) or len(last_page_len) != len(self.last_page_len):
            raise ValueError("the number of requests is fixed when a wrapper is made")
        self.page_size = page_size
        self.library.stage(indptr, self.indptr)
        self.library.stage(last_page_len, self.last_page_len)
        self.indices[: len(indices)].copy_(indices)  # on the device already
        self.library.log.append(f"plan {len(last_page_len)}")

    def _run(self, query: Tensor, pages: tuple[Tensor, Tensor], starts: Tensor) -> Tensor:
        # a graph's shape is that of its bucket, and plans of smaller batches follow
        if self.rows is None or query.shape[0] < self.rows:
            raise ValueError(f"{query.shape[0]} queries, planned were {self.rows}")
        self.library.log.append(f"run {len(self.last_page_len)}")
        keys, values = (cache.index_select(0, self.indices.long()).flatten(0, 1) for cache in pages)
        allowed = self._allowed(query.shape[0], starts)  # [T, P * S]
        heads, kv_heads = query.shape[1], keys.shape[1]
        grouped = query.view(len(query), kv_heads, heads // kv_heads, -1)  # [T, K, G, D]
        scores = torch.einsum("tkgd,skd->kgts", grouped.float(), keys.float())
        scores = (scores * query.shape[-1] ** -0.5).masked_fill(~allowed, -1e30)
        out = torch.einsum("kgts,skd->tkgd", scores.softmax(-1), values.float()).flatten(1, 2)
        return out.masked_fill(~allowed.any(1)[:, None, None], 0).to(query.dtype)

    def _allowed(self, queries: int, starts: Tensor) -> Tensor:
        """[T, P * S]: rows of the query's own request, up to its position."""
        indptr, device = self.indptr.long(), self.indptr.device
        requests = len(self.last_page_len)
        page = torch.arange(len(self.indices), device=device)
        query = torch.arange(queries, device=device)
        of_page = torch.bucketize(page, indptr[1:], right=True)  # R where nobody owns the page
        of_query = torch.bucketize(query, starts[1:], right=True)
        row = torch.arange(self.page_size, device=device)
        first = indptr[of_page.clamp(max=requests - 1)]
        position = ((page - first)[:, None] * self.page_size + row).flatten()
        of_row = of_page.repeat_interleave(self.page_size, output_size=len(position))
        mine = of_query.clamp(max=requests - 1)
        length = (indptr.diff() - 1) * self.page_size + self.last_page_len
        own = length[mine] - (starts[mine + 1] - query)  # the query's position in its request
        same = (of_query[:, None] == of_row) & (of_query < requests)[:, None]
        return same & (position <= own[:, None])


class DecodeWrapper(Wrapper):
    """One query a request."""

    def plan(
        self,
        indptr: Tensor,
        indices: Tensor,
        last_page_len: Tensor,
        heads: int,
        kv_heads: int,
        width: int,
        page_size: int,
        *,
        q_data_type: torch.dtype,
        kv_data_type: torch.dtype,
    ) -> None:
        self._plan((indptr, indices, last_page_len), page_size)
        self.rows = len(last_page_len)

    def run(self, query: Tensor, pages: tuple[Tensor, Tensor]) -> Tensor:
        starts = torch.arange(len(self.last_page_len) + 1, device=query.device)
        return self._run(query, pages, starts)


class PrefillWrapper(Wrapper):
    """Packed queries, the last positions of their requests."""

    def __init__(
        self,
        library: PlannedLibrary,
        indptr: Tensor,
        indices: Tensor,
        last_page_len: Tensor,
        starts: Tensor,
    ) -> None:
        super().__init__(library, indptr, indices, last_page_len)
        self.starts = starts

    def plan(
        self,
        starts: Tensor,
        indptr: Tensor,
        indices: Tensor,
        last_page_len: Tensor,
        heads: int,
        kv_heads: int,
        width: int,
        page_size: int,
        *,
        causal: bool,
        q_data_type: torch.dtype,
        kv_data_type: torch.dtype,
    ) -> None:
        assert causal
        self._plan((indptr, indices, last_page_len), page_size)
        self.library.stage(starts, self.starts)
        self.rows = int(starts[-1])

    def run(self, query: Tensor, pages: tuple[Tensor, Tensor]) -> Tensor:
        return self._run(query, pages, self.starts.long())


def calls(log: Sequence[str], kind: str) -> list[Any]:
    """The calls of a kind, in order."""
    return [call for call in log if call.startswith(kind)]
