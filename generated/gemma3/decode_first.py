# ppcgc: generated from specs/gemma3.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:1a34668af6465bf8ef450a33f5b98707f5688b70eb68ae8f5afcd4e2b7154ca1
"""gemma3.decode, only and first stages: slots, how a batch fills them, runners."""

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
KEYWORDS = ("input_ids", "positions", "batch", "inputs_embeds")

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
    def slot_mapping(self) -> rt.HostSource: ...  # [tokens] int64, gemma3.yaml:36
    @property
    def seq_lens(self) -> rt.HostSource: ...  # [requests] int32, llama_hf.yaml:54
    @property
    def slot_table(self) -> rt.HostSource: ...  # [requests, context] int64, gemma3.yaml:37
    @property
    def slot_mapping_swa(self) -> rt.HostSource: ...  # [tokens] int64, gemma3.yaml:38
    @property
    def slot_table_swa(self) -> rt.HostSource: ...  # [requests, window] int64, gemma3.yaml:40


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class DecodeFirstSlots(rt.SlotView):
    """The slots of a bucket: padded rows at fixed addresses. Or a batch's own, live rows."""

    input_ids: Tensor  # [tokens] int64, llama_hf.yaml:51
    positions: Tensor  # [tokens] int64, llama_hf.yaml:52
    slot_mapping: Tensor | None  # [tokens] int64, gemma3.yaml:36
    seq_lens: Tensor  # [requests] int32, llama_hf.yaml:54
    slot_table: Tensor | None  # [requests, context] int64, gemma3.yaml:37
    slot_mapping_swa: Tensor | None  # [tokens] int64, gemma3.yaml:38
    slot_table_swa: Tensor | None  # [requests, window] int64, gemma3.yaml:40


class DecodeFirstModel(Protocol):
    """What the model's forward must take."""

    def forward(
        self,
        *,
        input_ids: Tensor,
        positions: Tensor,
        batch: DecodeFirstSlots,
        inputs_embeds: None,
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
            "slot_mapping_swa": (rows.tokens,),
            "slot_table_swa": (rows.requests, self.dims.window),
        }

    def lacks(self, rows: DecodeExtents) -> frozenset[str]:
        there = {
            "slot_mapping": rt.owns(self.layers, self.dims.kinds.full),
            "slot_table": rt.owns(self.layers, self.dims.kinds.full),
            "slot_mapping_swa": rt.owns(self.layers, self.dims.kinds.sliding),
            "slot_table_swa": rt.owns(self.layers, self.dims.kinds.sliding),
        }
        return frozenset(name for name, holds in there.items() if not holds)

    def slots(self, of: Mapping[str, Tensor]) -> DecodeFirstSlots:
        return DecodeFirstSlots(
            input_ids=of["input_ids"],
            positions=of["positions"],
            slot_mapping=of.get("slot_mapping"),
            seq_lens=of["seq_lens"],
            slot_table=of.get("slot_table"),
            slot_mapping_swa=of.get("slot_mapping_swa"),
            slot_table_swa=of.get("slot_table_swa"),
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
            slot_mapping_swa_rows,
            slot_table_swa_rows,
        ) = host.begin()
        counts.set_rows(live)
        # input_ids (llama_hf.yaml:51): batch.input_ids, then zero
        input_ids_rows.put(batch.input_ids, live.tokens)
        input_ids_rows.check_index(live.tokens, self.dims.vocab)
        # positions (llama_hf.yaml:52): batch.positions, then zero
        positions_rows.put(batch.positions, live.tokens)
        positions_rows.check_index(live.tokens, self.dims.max_position)
        # slot_mapping (gemma3.yaml:36): batch.slot_mapping, then zero
        if slots.slot_mapping is not None:
            slot_mapping_rows.put(batch.slot_mapping, live.tokens)
            slot_mapping_rows.check_write_index(
                live.tokens,
                self.dims.kv_rows,
                skips_negative=False,
            )
        # seq_lens (llama_hf.yaml:54): batch.seq_lens, then zero
        seq_lens_rows.put(batch.seq_lens, live.requests)
        seq_lens_rows.check_bounded(live.requests, self.dims.context)
        # slot_table (gemma3.yaml:37): batch.slot_table, then zero
        if slots.slot_table is not None:
            slot_table_rows.put(batch.slot_table, live.requests)
            slot_table_rows.check_index(live.requests, self.dims.kv_rows)
        # slot_mapping_swa (gemma3.yaml:38): batch.slot_mapping_swa, then zero
        if slots.slot_mapping_swa is not None:
            slot_mapping_swa_rows.put(batch.slot_mapping_swa, live.tokens)
            slot_mapping_swa_rows.check_write_index(
                live.tokens,
                self.dims.swa_rows,
                skips_negative=False,
            )
        # slot_table_swa (gemma3.yaml:40): batch.slot_table_swa, then zero
        if slots.slot_table_swa is not None:
            slot_table_swa_rows.put(batch.slot_table_swa, live.requests)
            slot_table_swa_rows.check_index(live.requests, self.dims.swa_rows)
        host.push()

    def bind(
        self,
        batch: DecodeFirstBatch,
        boundary: None,
        live: DecodeExtents,
    ) -> DecodeFirstSlots:
        rows = rt.EagerRows(self.table(), self.shapes(live), self.dtype, self.device)
        slot_mapping_slot: Tensor | None = None
        if rt.owns(self.layers, self.dims.kinds.full):
            slot_mapping_slot = rows.upload("slot_mapping", batch.slot_mapping)
        slot_table_slot: Tensor | None = None
        if rt.owns(self.layers, self.dims.kinds.full):
            slot_table_slot = rows.upload("slot_table", batch.slot_table)
        slot_mapping_swa_slot: Tensor | None = None
        if rt.owns(self.layers, self.dims.kinds.sliding):
            slot_mapping_swa_slot = rows.upload("slot_mapping_swa", batch.slot_mapping_swa)
        slot_table_swa_slot: Tensor | None = None
        if rt.owns(self.layers, self.dims.kinds.sliding):
            slot_table_swa_slot = rows.upload("slot_table_swa", batch.slot_table_swa)
        slots = DecodeFirstSlots(
            input_ids=rows.upload("input_ids", batch.input_ids),
            positions=rows.upload("positions", batch.positions),
            slot_mapping=slot_mapping_slot,
            seq_lens=rows.upload("seq_lens", batch.seq_lens),
            slot_table=slot_table_slot,
            slot_mapping_swa=slot_mapping_swa_slot,
            slot_table_swa=slot_table_swa_slot,
        )
        rows.check_index("input_ids", self.dims.vocab)
        rows.check_index("positions", self.dims.max_position)
        if slots.slot_mapping is not None:
            rows.check_write_index("slot_mapping", self.dims.kv_rows, skips_negative=False)
        rows.check_bounded("seq_lens", self.dims.context)
        if slots.slot_table is not None:
            rows.check_index("slot_table", self.dims.kv_rows)
        if slots.slot_mapping_swa is not None:
            rows.check_write_index("slot_mapping_swa", self.dims.swa_rows, skips_negative=False)
        if slots.slot_table_swa is not None:
            rows.check_index("slot_table_swa", self.dims.swa_rows)
        return slots

    def capture_fills(self, padded: DecodeExtents) -> dict[str, float]:
        return {"slot_mapping": 0, "slot_mapping_swa": 0}


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
        )


class DecodeOnly(_DecodeFirst[DecodeOutputs]):
    """The whole model in one stage."""

    place = rt.Place.ONLY
    outputs_type = DecodeResults


class DecodeFirst(_DecodeFirst[Boundary]):
    """The first stage: takes the batch, hands on a boundary."""

    place = rt.Place.FIRST
    outputs_type = HandedOn
