# ppcgc: generated from specs/qwen3_moe.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:0bcce90810f9a1fcf0994f9c4fd7f54435ca8aadb92e8798468175a5ea8d091e
"""qwen3_moe.decode, middle and last stages: slots, how a batch fills them, runners."""

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
KEYWORDS = ("input_ids", "positions", "batch", "inputs_embeds")

OutT = TypeVar("OutT")


class DecodeLaterBatch(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def num_requests(self) -> int: ...  # live requests
    @property
    def positions(self) -> rt.HostSource: ...  # [tokens] int64, llama_hf.yaml:52
    @property
    def slot_mapping(self) -> rt.HostSource: ...  # [tokens] int64, llama_hf.yaml:53
    @property
    def seq_lens(self) -> rt.HostSource: ...  # [requests] int32, llama_hf.yaml:54
    @property
    def slot_table(self) -> rt.HostSource: ...  # [requests, context] int64, llama_hf.yaml:55


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class DecodeLaterSlots(rt.SlotView):
    """The slots of a bucket: padded rows at fixed addresses. Or a batch's own, live rows."""

    positions: Tensor  # [tokens] int64, llama_hf.yaml:52
    slot_mapping: Tensor  # [tokens] int64, llama_hf.yaml:53
    seq_lens: Tensor  # [requests] int32, llama_hf.yaml:54
    slot_table: Tensor  # [requests, context] int64, llama_hf.yaml:55


class DecodeLaterModel(Protocol):
    """What the model's forward must take."""

    def forward(
        self,
        *,
        input_ids: None,
        positions: Tensor,
        batch: DecodeLaterSlots,
        inputs_embeds: Tensor,
    ) -> object: ...


class DecodeLaterInputs(rt.Inputs[DecodeExtents, DecodeLaterBatch, Dims, DecodeLaterSlots]):
    """The slots in memory, and how a batch gets into them. See ``rt.Inputs`` for each method."""

    facts = rt.facts_of(SLOTS, "positions", "slot_mapping", "seq_lens", "slot_table")

    def shapes(self, rows: DecodeExtents) -> dict[str, tuple[int, ...]]:
        return {
            "positions": (rows.tokens,),
            "slot_mapping": (rows.tokens,),
            "seq_lens": (rows.requests,),
            "slot_table": (rows.requests, self.dims.context),
        }

    def slots(self, of: Mapping[str, Tensor]) -> DecodeLaterSlots:
        return DecodeLaterSlots(
            positions=of["positions"],
            slot_mapping=of["slot_mapping"],
            seq_lens=of["seq_lens"],
            slot_table=of["slot_table"],
        )

    def load(
        self,
        slots: DecodeLaterSlots,
        host: rt.BucketHost,
        batch: DecodeLaterBatch,
        live: DecodeExtents,
        padded: DecodeExtents,
    ) -> None:
        counts, positions_rows, slot_mapping_rows, seq_lens_rows, slot_table_rows = host.begin()
        counts.set_rows(live)
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
        batch: DecodeLaterBatch,
        boundary: Boundary,
        live: DecodeExtents,
    ) -> DecodeLaterSlots:
        rows = rt.EagerRows(self.table(), self.shapes(live), self.dtype, self.device)
        slots = DecodeLaterSlots(
            positions=rows.upload("positions", batch.positions),
            slot_mapping=rows.upload("slot_mapping", batch.slot_mapping),
            seq_lens=rows.upload("seq_lens", batch.seq_lens),
            slot_table=rows.upload("slot_table", batch.slot_table),
        )
        rows.check_index("positions", self.dims.max_position)
        rows.check_write_index("slot_mapping", self.dims.kv_rows, skips_negative=False)
        rows.check_bounded("seq_lens", self.dims.context)
        rows.check_index("slot_table", self.dims.kv_rows)
        return slots

    def capture_fills(self, padded: DecodeExtents) -> dict[str, float]:
        return {"slot_mapping": 0}


class _DecodeLater(
    DecodeSteps,
    rt.LaterStage[DecodeExtents, DecodeLaterBatch, Dims, DecodeLaterSlots, Boundary, OutT],
):
    """What the places of this kind share."""

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
    ) -> None:
        rt.check_given(type(self), layers, dtype, backend, dims=(dims, Dims), state=(state, State))
        state.check(dims, backend.device)
        forward = rt.check_forward(model, KEYWORDS, type(self).__name__)
        super().__init__(model=forward, layers=layers, dims=dims, dtype=dtype, backend=backend)
        self.state = state

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
            inputs_embeds=boundary.hidden_states,
        )


class DecodeMiddle(_DecodeLater[Boundary]):
    """A stage between two others: takes a boundary, hands one on."""

    place = rt.Place.MIDDLE
    outputs_type = HandedOn


class DecodeLast(_DecodeLater[DecodeOutputs]):
    """The last stage: takes a boundary, gives the outputs."""

    place = rt.Place.LAST
    outputs_type = DecodeResults
