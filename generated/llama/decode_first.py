# ppcgc: generated from specs/llama.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:2c4847b3a218e5a2b0391c899a8f056c233c69768480a7ee2c6373c54f3f924f
"""llama.decode, only and first stages: slots, how a batch fills them, runners."""

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
KEYWORDS = ("input_ids", "positions", "batch", "pp_proxy_tensors")

OutT = TypeVar("OutT")


class DecodeFirstBatch(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def num_requests(self) -> int: ...  # live requests
    @property
    def input_ids(self) -> rt.HostSource: ...  # [tokens] int64, llama.yaml:52
    @property
    def positions(self) -> rt.HostSource: ...  # [tokens] int64, llama.yaml:53
    @property
    def slot_mapping(self) -> rt.HostSource: ...  # [tokens] int64, llama.yaml:54
    @property
    def slot_table(self) -> rt.HostSource: ...  # [requests, context] int64, llama.yaml:55
    @property
    def seq_lens(self) -> rt.HostSource: ...  # [requests] int32, llama.yaml:56


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class DecodeFirstSlots(rt.SlotView):
    """The slots of a bucket: padded rows at fixed addresses. Or a batch's own, live rows."""

    input_ids: Tensor  # [tokens] int64, llama.yaml:52
    positions: Tensor  # [tokens] int64, llama.yaml:53
    slot_mapping: Tensor  # [tokens] int64, llama.yaml:54
    slot_table: Tensor  # [requests, context] int64, llama.yaml:55
    seq_lens: Tensor  # [requests] int32, llama.yaml:56
    num_tokens: Tensor  # [1] int32, llama.yaml:57


class DecodeFirstModel(Protocol):
    """What the model's forward must take."""

    def forward(
        self,
        *,
        input_ids: Tensor,
        positions: Tensor,
        batch: DecodeFirstSlots,
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
            "slot_table": (rows.requests, self.dims.context),
            "seq_lens": (rows.requests,),
            "num_tokens": (1,),
        }

    def slots(self, of: Mapping[str, Tensor]) -> DecodeFirstSlots:
        return DecodeFirstSlots(
            input_ids=of["input_ids"],
            positions=of["positions"],
            slot_mapping=of["slot_mapping"],
            slot_table=of["slot_table"],
            seq_lens=of["seq_lens"],
            num_tokens=of["num_tokens"],
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
            slot_table_rows,
            seq_lens_rows,
            num_tokens_rows,
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
        # slot_table (llama.yaml:55): batch.slot_table, then zero
        slot_table_rows.put(batch.slot_table, live.requests)
        slot_table_rows.check_index(live.requests, self.dims.kv_rows)
        # seq_lens (llama.yaml:56): batch.seq_lens, then zero
        seq_lens_rows.put(batch.seq_lens, live.requests)
        seq_lens_rows.check_bounded(live.requests, self.dims.context)
        # num_tokens (llama.yaml:57): computed for every padded row
        num_tokens_rows.set_all(live.tokens)
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
            slot_table=rows.upload("slot_table", batch.slot_table),
            seq_lens=rows.upload("seq_lens", batch.seq_lens),
            num_tokens=rows.filled("num_tokens", live.tokens),
        )
        rows.check_index("input_ids", self.dims.vocab)
        rows.check_index("positions", self.dims.max_position)
        rows.check_write_index("slot_mapping", self.dims.kv_rows, skips_negative=False)
        rows.check_index("slot_table", self.dims.kv_rows)
        rows.check_bounded("seq_lens", self.dims.context)
        return slots

    def capture_fills(self, padded: DecodeExtents) -> dict[str, float]:
        return {"slot_mapping": 0}


class _DecodeFirst(
    DecodeSteps,
    rt.EntryStage[DecodeExtents, DecodeFirstBatch, Dims, DecodeFirstSlots, OutT],
):
    """What the places of this kind share."""

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
    ) -> None:
        rt.check_given(type(self), layers, dtype, backend, dims=(dims, Dims), state=(state, State))
        state.check(dims, backend.device)
        forward = rt.check_forward(model, KEYWORDS, type(self).__name__)
        super().__init__(model=forward, layers=layers, dims=dims, dtype=dtype, backend=backend)
        self.state = state

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
