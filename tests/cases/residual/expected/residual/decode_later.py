# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:576fa7013ef35090361e995f229ce7b930a807defcec26456618bc12251e8df0
"""residual.decode, middle and last stages: slots, how a batch fills them, runners."""

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
KEYWORDS = ("input_ids", "batch", "pp_proxy_tensors")

OutT = TypeVar("OutT")


class DecodeLaterBatch(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def num_requests(self) -> int: ...  # live requests
    @property
    def slot_mapping(self) -> Tensor: ...  # [tokens] int64, spec.yaml:41
    @property
    def slot_table(self) -> rt.HostSource: ...  # [requests, context] int64, spec.yaml:42
    @property
    def seq_lens(self) -> rt.HostSource: ...  # [requests] int32, spec.yaml:43


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class DecodeLaterSlots(rt.SlotView):
    """The slots of a bucket: padded rows at fixed addresses. Or a batch's own, live rows."""

    slot_mapping: Tensor  # [tokens] int64, spec.yaml:41
    slot_table: Tensor  # [requests, context] int64, spec.yaml:42
    seq_lens: Tensor  # [requests] int32, spec.yaml:43


class DecodeLaterModel(Protocol):
    """What the model's forward must take."""

    def forward(
        self,
        *,
        input_ids: None,
        batch: DecodeLaterSlots,
        pp_proxy_tensors: Boundary,
    ) -> object: ...


class DecodeLaterInputs(rt.Inputs[DecodeExtents, DecodeLaterBatch, Dims, DecodeLaterSlots]):
    """The slots in memory, and how a batch gets into them. See ``rt.Inputs`` for each method."""

    facts = rt.facts_of(SLOTS, "slot_mapping", "slot_table", "seq_lens")

    def shapes(self, rows: DecodeExtents) -> dict[str, tuple[int, ...]]:
        return {
            "slot_mapping": (rows.tokens,),
            "slot_table": (rows.requests, self.dims.context),
            "seq_lens": (rows.requests,),
        }

    def slots(self, of: Mapping[str, Tensor]) -> DecodeLaterSlots:
        return DecodeLaterSlots(
            slot_mapping=of["slot_mapping"],
            slot_table=of["slot_table"],
            seq_lens=of["seq_lens"],
        )

    def load(
        self,
        slots: DecodeLaterSlots,
        host: rt.BucketHost,
        batch: DecodeLaterBatch,
        live: DecodeExtents,
        padded: DecodeExtents,
    ) -> None:
        counts, slot_table_rows, seq_lens_rows = host.begin()
        counts.set_rows(live)
        # slot_mapping (spec.yaml:41): batch.slot_mapping, then zero
        host.move_rows(slots.slot_mapping, batch.slot_mapping, live.tokens, "slot_mapping", 0)
        # slot_table (spec.yaml:42): batch.slot_table, then zero
        slot_table_rows.put(batch.slot_table, live.requests)
        slot_table_rows.check_index(live.requests, self.dims.pages * self.dims.page)
        # seq_lens (spec.yaml:43): batch.seq_lens, then zero
        seq_lens_rows.put(batch.seq_lens, live.requests)
        seq_lens_rows.check_bounded(live.requests, self.dims.context)
        host.push()

    def bind(
        self,
        batch: DecodeLaterBatch,
        boundary: Boundary,
        live: DecodeExtents,
    ) -> DecodeLaterSlots:
        rows = rt.EagerRows(self.table(), self.shapes(live), self.dtype, self.device)
        slots = DecodeLaterSlots(
            slot_mapping=rows.own("slot_mapping", batch.slot_mapping),
            slot_table=rows.upload("slot_table", batch.slot_table),
            seq_lens=rows.upload("seq_lens", batch.seq_lens),
        )
        rows.check_index("slot_table", self.dims.pages * self.dims.page)
        rows.check_bounded("seq_lens", self.dims.context)
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
        return self.model(input_ids=None, batch=slots, pp_proxy_tensors=boundary)


class DecodeMiddle(_DecodeLater[Boundary]):
    """A stage between two others: takes a boundary, hands one on."""

    place = rt.Place.MIDDLE
    outputs_type = HandedOn


class DecodeLast(_DecodeLater[DecodeOutputs]):
    """The last stage: takes a boundary, gives the outputs."""

    place = rt.Place.LAST
    outputs_type = DecodeResults
