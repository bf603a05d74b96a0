# ppcgc: generated from specs/glm_dsa.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:a44205a61e5ce44ca77b1e6bd3d9721b7635392f90a79dd313071ff9cd66b30a
"""glm_dsa.decode, only and first stages: slots, how a batch fills them, runners."""

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
KEYWORDS = ("input_ids", "positions", "batch", "inputs_embeds", "topk_indices")

OutT = TypeVar("OutT")


class DecodeFirstBatch(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def num_requests(self) -> int: ...  # live requests
    @property
    def input_ids(self) -> rt.HostSource: ...  # [tokens] int64, llama_hf.yaml:51
    @property
    def positions(self) -> rt.HostSource: ...  # [tokens] int64, llama_hf.yaml:52
    @property
    def slot_mapping(self) -> rt.HostSource: ...  # [tokens] int64, llama_hf.yaml:53
    @property
    def seq_lens(self) -> rt.HostSource: ...  # [requests] int32, llama_hf.yaml:54
    @property
    def slot_table(self) -> rt.HostSource: ...  # [requests, context] int64, llama_hf.yaml:55


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class DecodeFirstSlots(rt.SlotView):
    """The slots of a bucket: padded rows at fixed addresses. Or a batch's own, live rows."""

    input_ids: Tensor  # [tokens] int64, llama_hf.yaml:51
    positions: Tensor  # [tokens] int64, llama_hf.yaml:52
    slot_mapping: Tensor  # [tokens] int64, llama_hf.yaml:53
    seq_lens: Tensor  # [requests] int32, llama_hf.yaml:54
    slot_table: Tensor  # [requests, context] int64, llama_hf.yaml:55


class DecodeFirstModel(Protocol):
    """What the model's forward must take."""

    def forward(
        self,
        *,
        input_ids: Tensor,
        positions: Tensor,
        batch: DecodeFirstSlots,
        inputs_embeds: None,
        topk_indices: None,
    ) -> object: ...


class DecodeFirstInputs(rt.Inputs[DecodeExtents, DecodeFirstBatch, Dims, DecodeFirstSlots]):
    """The slots in memory, and how a batch gets into them. See ``rt.Inputs`` for each method."""

    facts = SLOTS

    def shapes(self, rows: DecodeExtents) -> dict[str, tuple[int, ...]]:
        return {
            "input_ids": (rows.tokens,),
            "positions": (rows.tokens,),
            "slot_mapping": (rows.tokens,),
            "seq_lens": (rows.requests,),
            "slot_table": (rows.requests, self.dims.context),
        }

    def slots(self, of: Mapping[str, Tensor]) -> DecodeFirstSlots:
        return DecodeFirstSlots(
            input_ids=of["input_ids"],
            positions=of["positions"],
            slot_mapping=of["slot_mapping"],
            seq_lens=of["seq_lens"],
            slot_table=of["slot_table"],
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
            seq_lens_rows,
            slot_table_rows,
        ) = host.begin()
        counts.set_rows(live)
        # input_ids (llama_hf.yaml:51): batch.input_ids, then zero
        input_ids_rows.put(batch.input_ids, live.tokens)
        input_ids_rows.check_index(live.tokens, self.dims.vocab)
        # positions (llama_hf.yaml:52): batch.positions, then zero
        positions_rows.put(batch.positions, live.tokens)
        positions_rows.check_index(live.tokens, self.dims.max_position)
        # slot_mapping (llama_hf.yaml:53): batch.slot_mapping, then zero
        slot_mapping_rows.put(batch.slot_mapping, live.tokens)
        slot_mapping_rows.check_write_index(live.tokens, self.dims.kv_rows, skips_negative=False)
        # seq_lens (llama_hf.yaml:54): batch.seq_lens, then zero
        seq_lens_rows.put(batch.seq_lens, live.requests)
        seq_lens_rows.check_bounded(live.requests, self.dims.context)
        # slot_table (llama_hf.yaml:55): batch.slot_table, then zero
        slot_table_rows.put(batch.slot_table, live.requests)
        slot_table_rows.check_index(live.requests, self.dims.kv_rows)
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
            seq_lens=rows.upload("seq_lens", batch.seq_lens),
            slot_table=rows.upload("slot_table", batch.slot_table),
        )
        rows.check_index("input_ids", self.dims.vocab)
        rows.check_index("positions", self.dims.max_position)
        rows.check_write_index("slot_mapping", self.dims.kv_rows, skips_negative=False)
        rows.check_bounded("seq_lens", self.dims.context)
        rows.check_index("slot_table", self.dims.kv_rows)
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
            inputs_embeds=None,
            topk_indices=None,
        )


class DecodeOnly(_DecodeFirst[DecodeOutputs]):
    """The whole model in one stage."""

    place = rt.Place.ONLY
    outputs_type = DecodeResults


class DecodeFirst(_DecodeFirst[Boundary]):
    """The first stage: takes the batch, hands on a boundary."""

    place = rt.Place.FIRST
    outputs_type = HandedOn
