# ppcgc: generated from specs/llama_flashinfer.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:d6bfb3bebb39dea1a74622641c924c00b0979f03b1d1b4fb6ce75ebab6e1f7e7
"""llama_flashinfer.decode, only and first stages: slots, how a batch fills them, runners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from ppcgc import runtime as rt
from torch import Tensor

from .boundary import Boundary, HandedOn
from .decode import DecodeExtents, DecodeOutputs, DecodeResults, DecodeSteps
from .decode_slots import SLOTS
from .family import Dims, State

# what the forward is given, always by keyword
KEYWORDS = ("input_ids", "positions", "batch", "attention", "pp_proxy_tensors")

OutT = TypeVar("OutT")


class DecodeFirstBatch(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def num_requests(self) -> int: ...  # live requests
    @property
    def num_pages(self) -> int: ...  # live pages
    @property
    def input_ids(self) -> rt.HostSource: ...  # [tokens] int64, llama.yaml:52
    @property
    def positions(self) -> rt.HostSource: ...  # [tokens] int64, llama.yaml:53
    @property
    def slot_mapping(self) -> rt.HostSource: ...  # [tokens] int64, llama.yaml:54
    @property
    def page_indptr(self) -> rt.HostSource: ...  # [requests + 1] int32, llama_flashinfer.yaml:44
    @property
    def page_indices(self) -> rt.HostSource: ...  # [pages] int64, llama_flashinfer.yaml:45
    @property
    def last_page_len(self) -> rt.HostSource: ...  # [requests] int32, llama_flashinfer.yaml:46


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class DecodeFirstSlots(rt.SlotView):
    """The slots of a bucket: padded rows at fixed addresses. Or a batch's own, live rows."""

    input_ids: Tensor  # [tokens] int64, llama.yaml:52
    positions: Tensor  # [tokens] int64, llama.yaml:53
    slot_mapping: Tensor  # [tokens] int64, llama.yaml:54
    num_tokens: Tensor  # [1] int32, llama.yaml:57
    page_indptr: Tensor  # [requests + 1] int32, llama_flashinfer.yaml:44
    page_indices: Tensor  # [pages] int64, llama_flashinfer.yaml:45
    last_page_len: Tensor  # [requests] int32, llama_flashinfer.yaml:46


class DecodeFirstAttentionHook(Protocol):
    """Host code of the caller around the graphs."""

    def key(
        self,
        rows: DecodeExtents,
        slots: DecodeFirstSlots,
        workspace: Tensor | None,
    ) -> object: ...
    def plan(
        self,
        made: object,
        slots: DecodeFirstSlots,
        batch: DecodeFirstBatch,
        live: DecodeExtents,
    ) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DecodeFirstHooks:
    """The hooks that a runner is built with."""

    attention: DecodeFirstAttentionHook


class DecodeFirstModel(Protocol):
    """What the model's forward must take."""

    def forward(
        self,
        *,
        input_ids: Tensor,
        positions: Tensor,
        batch: DecodeFirstSlots,
        attention: object,
        pp_proxy_tensors: None,
    ) -> object: ...


class DecodeFirstInputs(rt.Inputs[DecodeExtents, DecodeFirstBatch, Dims, DecodeFirstSlots]):
    """The slots in memory, and how a batch gets into them. See ``rt.Inputs`` for each method."""

    facts = SLOTS

    def shapes(self, rows: DecodeExtents) -> dict[str, tuple[int, ...]]:
        return {
            "input_ids": (rows.tokens,),
            "positions": (rows.tokens,),
            "slot_mapping": (rows.tokens,),
            "num_tokens": (1,),
            "page_indptr": (rows.requests + 1,),
            "page_indices": (rows.pages,),
            "last_page_len": (rows.requests,),
        }

    def slots(self, of: Mapping[str, Tensor]) -> DecodeFirstSlots:
        return DecodeFirstSlots(
            input_ids=of["input_ids"],
            positions=of["positions"],
            slot_mapping=of["slot_mapping"],
            num_tokens=of["num_tokens"],
            page_indptr=of["page_indptr"],
            page_indices=of["page_indices"],
            last_page_len=of["last_page_len"],
        )

    def load(
        self,
        slots: DecodeFirstSlots,
        host: rt.BucketHost,
        batch: DecodeFirstBatch,
        live: DecodeExtents,
        padded: DecodeExtents,
    ) -> None:
        (
            counts,
            input_ids_rows,
            positions_rows,
            slot_mapping_rows,
            num_tokens_rows,
            page_indices_rows,
        ) = host.begin()
        counts.set_rows(live)
        # input_ids (llama.yaml:52): batch.input_ids, then zero
        input_ids_rows.put(batch.input_ids, live.tokens)
        input_ids_rows.check_index(live.tokens, self.dims.vocab)
        # positions (llama.yaml:53): batch.positions, then zero
        positions_rows.put(batch.positions, live.tokens)
        positions_rows.check_index(live.tokens, self.dims.max_position)
        # slot_mapping (llama.yaml:54): batch.slot_mapping, then zero
        slot_mapping_rows.put(batch.slot_mapping, live.tokens)
        slot_mapping_rows.check_write_index(live.tokens, self.dims.kv_rows, skips_negative=False)
        # num_tokens (llama.yaml:57): computed for every padded row
        num_tokens_rows.set_all(live.tokens)
        # page_indptr (llama_flashinfer.yaml:44): batch.page_indptr, then the last live row again
        page_indptr_rows = rt.upload_rows(
            slots.page_indptr,
            batch.page_indptr,
            live.requests + 1,
            "page_indptr",
        )
        rt.check_offsets("page_indptr", page_indptr_rows, live.pages, closed=True)
        rt.pad_repeat_last(slots.page_indptr, live.requests + 1)
        # page_indices (llama_flashinfer.yaml:45): batch.page_indices, then zero
        page_indices_rows.put(batch.page_indices, live.pages)
        page_indices_rows.check_index(live.pages, self.dims.kv_pages)
        # last_page_len (llama_flashinfer.yaml:46): batch.last_page_len, then its fill
        last_page_len_rows = rt.upload_rows(
            slots.last_page_len,
            batch.last_page_len,
            live.requests,
            "last_page_len",
        )
        rt.check_bounded("last_page_len", last_page_len_rows, self.dims.page_size)
        rt.pad_fill(slots.last_page_len, live.requests, 1)
        host.push()

    def bind(
        self,
        batch: DecodeFirstBatch,
        boundary: None,
        live: DecodeExtents,
    ) -> DecodeFirstSlots:
        rows = rt.EagerRows(self.table(), self.shapes(live), self.dtype, self.device)
        slots = DecodeFirstSlots(
            input_ids=rows.upload("input_ids", batch.input_ids),
            positions=rows.upload("positions", batch.positions),
            slot_mapping=rows.upload("slot_mapping", batch.slot_mapping),
            num_tokens=rows.filled("num_tokens", live.tokens),
            page_indptr=rows.on_host("page_indptr", batch.page_indptr),
            page_indices=rows.upload("page_indices", batch.page_indices),
            last_page_len=rows.on_host("last_page_len", batch.last_page_len),
        )
        rows.check_index("input_ids", self.dims.vocab)
        rows.check_index("positions", self.dims.max_position)
        rows.check_write_index("slot_mapping", self.dims.kv_rows, skips_negative=False)
        rows.check_offsets("page_indptr", live.pages, closed=True)
        rows.check_index("page_indices", self.dims.kv_pages)
        rows.check_bounded("last_page_len", self.dims.page_size)
        return slots

    def capture_fills(self, padded: DecodeExtents) -> dict[str, float]:
        return {"slot_mapping": 0}


class _DecodeFirst(
    DecodeSteps,
    rt.EntryStage[DecodeExtents, DecodeFirstBatch, Dims, DecodeFirstSlots, OutT],
):
    """What the places of this kind share."""

    hook_table = (rt.HookInfo(name="attention", at=("key", "plan")),)
    inputs_type = DecodeFirstInputs

    def __init__(
        self,
        *,
        model: DecodeFirstModel,
        layers: rt.LayerRange,
        dims: Dims,
        state: State,
        dtype: torch.dtype,
        backend: rt.Backend,
        hooks: DecodeFirstHooks,
    ) -> None:
        rt.check_given(
            type(self),
            layers,
            dtype,
            backend,
            dims=(dims, Dims),
            state=(state, State),
            hooks=(hooks, DecodeFirstHooks),
        )
        state.check(dims, backend.device)
        forward = rt.check_forward(model, KEYWORDS, type(self).__name__)
        super().__init__(model=forward, layers=layers, dims=dims, dtype=dtype, backend=backend)
        self.state = state
        self.hooks = hooks
        self.add_hooks(hooks)

    def workspace_bytes(self) -> dict[str, int]:
        return {
            "attention": self.dims.plan_bytes,
        }

    def forward(
        self,
        slots: DecodeFirstSlots,
        boundary: None,
        rows: DecodeExtents,
        made: rt.Made,
    ) -> object:
        return self.model(
            input_ids=slots.input_ids,
            positions=slots.positions,
            batch=slots,
            attention=made["attention"],
            pp_proxy_tensors=None,
        )


class DecodeOnly(_DecodeFirst[DecodeOutputs]):
    """The whole model in one stage."""

    place = rt.Place.ONLY
    outputs_type = DecodeResults


class DecodeFirst(_DecodeFirst[Boundary]):
    """The first stage: takes the batch, hands on a boundary."""

    place = rt.Place.FIRST
    outputs_type = HandedOn
