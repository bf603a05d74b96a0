# ppcgc: generated from specs/llama_flashinfer.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:d6bfb3bebb39dea1a74622641c924c00b0979f03b1d1b4fb6ce75ebab6e1f7e7
"""llama_flashinfer.decode, middle and last stages: slots, how a batch fills them, runners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from ppcgc import runtime as rt
from torch import Tensor

from .boundary import Boundary, HandedOn, Received
from .decode import DecodeExtents, DecodeOutputs, DecodeResults, DecodeSteps
from .decode_slots import SLOTS
from .family import Dims, State

# what the forward is given, always by keyword
KEYWORDS = ("input_ids", "positions", "batch", "attention", "pp_proxy_tensors")

OutT = TypeVar("OutT")


class DecodeLaterBatch(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def num_requests(self) -> int: ...  # live requests
    @property
    def num_pages(self) -> int: ...  # live pages
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
class DecodeLaterSlots(rt.SlotView):
    """The slots of a bucket: padded rows at fixed addresses. Or a batch's own, live rows."""

    positions: Tensor  # [tokens] int64, llama.yaml:53
    slot_mapping: Tensor  # [tokens] int64, llama.yaml:54
    num_tokens: Tensor  # [1] int32, llama.yaml:57
    page_indptr: Tensor  # [requests + 1] int32, llama_flashinfer.yaml:44
    page_indices: Tensor  # [pages] int64, llama_flashinfer.yaml:45
    last_page_len: Tensor  # [requests] int32, llama_flashinfer.yaml:46


class DecodeLaterAttentionHook(Protocol):
    """Host code of the caller around the graphs."""

    def key(
        self,
        rows: DecodeExtents,
        slots: DecodeLaterSlots,
        workspace: Tensor | None,
    ) -> object: ...
    def plan(
        self,
        made: object,
        slots: DecodeLaterSlots,
        batch: DecodeLaterBatch,
        live: DecodeExtents,
    ) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DecodeLaterHooks:
    """The hooks that a runner is built with."""

    attention: DecodeLaterAttentionHook


class DecodeLaterModel(Protocol):
    """What the model's forward must take."""

    def forward(
        self,
        *,
        input_ids: None,
        positions: Tensor,
        batch: DecodeLaterSlots,
        attention: object,
        pp_proxy_tensors: Boundary,
    ) -> object: ...


class DecodeLaterInputs(rt.Inputs[DecodeExtents, DecodeLaterBatch, Dims, DecodeLaterSlots]):
    """The slots in memory, and how a batch gets into them. See ``rt.Inputs`` for each method."""

    facts = rt.facts_of(
        SLOTS,
        "positions",
        "slot_mapping",
        "num_tokens",
        "page_indptr",
        "page_indices",
        "last_page_len",
    )

    def shapes(self, rows: DecodeExtents) -> dict[str, tuple[int, ...]]:
        return {
            "positions": (rows.tokens,),
            "slot_mapping": (rows.tokens,),
            "num_tokens": (1,),
            "page_indptr": (rows.requests + 1,),
            "page_indices": (rows.pages,),
            "last_page_len": (rows.requests,),
        }

    def slots(self, of: Mapping[str, Tensor]) -> DecodeLaterSlots:
        return DecodeLaterSlots(
            positions=of["positions"],
            slot_mapping=of["slot_mapping"],
            num_tokens=of["num_tokens"],
            page_indptr=of["page_indptr"],
            page_indices=of["page_indices"],
            last_page_len=of["last_page_len"],
        )

    def load(
        self,
        slots: DecodeLaterSlots,
        host: rt.BucketHost,
        batch: DecodeLaterBatch,
        live: DecodeExtents,
        padded: DecodeExtents,
    ) -> None:
        counts, positions_rows, slot_mapping_rows, num_tokens_rows, page_indices_rows = host.begin()
        counts.set_rows(live)
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
        batch: DecodeLaterBatch,
        boundary: Boundary,
        live: DecodeExtents,
    ) -> DecodeLaterSlots:
        rows = rt.EagerRows(self.table(), self.shapes(live), self.dtype, self.device)
        slots = DecodeLaterSlots(
            positions=rows.upload("positions", batch.positions),
            slot_mapping=rows.upload("slot_mapping", batch.slot_mapping),
            num_tokens=rows.filled("num_tokens", live.tokens),
            page_indptr=rows.on_host("page_indptr", batch.page_indptr),
            page_indices=rows.upload("page_indices", batch.page_indices),
            last_page_len=rows.on_host("last_page_len", batch.last_page_len),
        )
        rows.check_index("positions", self.dims.max_position)
        rows.check_write_index("slot_mapping", self.dims.kv_rows, skips_negative=False)
        rows.check_offsets("page_indptr", live.pages, closed=True)
        rows.check_index("page_indices", self.dims.kv_pages)
        rows.check_bounded("last_page_len", self.dims.page_size)
        return slots

    def capture_fills(self, padded: DecodeExtents) -> dict[str, float]:
        return {"slot_mapping": 0}


class _DecodeLater(
    DecodeSteps,
    rt.LaterStage[DecodeExtents, DecodeLaterBatch, Dims, DecodeLaterSlots, Boundary, OutT],
):
    """What the places of this kind share."""

    hook_table = (rt.HookInfo(name="attention", at=("key", "plan")),)
    inputs_type = DecodeLaterInputs
    incoming_type = Received

    def __init__(
        self,
        *,
        model: DecodeLaterModel,
        layers: rt.LayerRange,
        dims: Dims,
        state: State,
        dtype: torch.dtype,
        backend: rt.Backend,
        hooks: DecodeLaterHooks,
    ) -> None:
        rt.check_given(
            type(self),
            layers,
            dtype,
            backend,
            dims=(dims, Dims),
            state=(state, State),
            hooks=(hooks, DecodeLaterHooks),
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
        slots: DecodeLaterSlots,
        boundary: Boundary,
        rows: DecodeExtents,
        made: rt.Made,
    ) -> object:
        return self.model(
            input_ids=None,
            positions=slots.positions,
            batch=slots,
            attention=made["attention"],
            pp_proxy_tensors=boundary,
        )


class DecodeMiddle(_DecodeLater[Boundary]):
    """A stage between two others: takes a boundary, hands one on."""

    place = rt.Place.MIDDLE
    outputs_type = HandedOn


class DecodeLast(_DecodeLater[DecodeOutputs]):
    """The last stage: takes a boundary, gives the outputs."""

    place = rt.Place.LAST
    outputs_type = DecodeResults
