# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:d537729046a0e090de41a413e09a7ba112f6e5b0d839b71aaeedf67e3ee80f30
"""shapes.step, middle and last stages: slots, how a batch fills them, runners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from ppcgc import runtime as rt
from torch import Tensor

from .boundary import Boundary, HandedOn, Received
from .family import Dims
from .step import StepExtents, StepOutputs, StepResults, StepSteps
from .step_slots import SLOTS

# what the forward is given, always by keyword
KEYWORDS = ("batch", "tokens", "received")

OutT = TypeVar("OutT")


class StepLaterBatch(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def num_tokens(self) -> int: ...  # live tokens
    @property
    def num_requests(self) -> int: ...  # live requests
    @property
    def positions(self) -> rt.HostSource: ...  # [3, tokens] int64, spec.yaml:17
    @property
    def rope(self) -> Tensor: ...  # [2, tokens, head_dim // 2] float32, spec.yaml:18
    @property
    def pairs(self) -> Tensor: ...  # [2 * tokens + 1, hidden] float32, spec.yaml:19
    @property
    def bounds(self) -> rt.HostSource: ...  # [requests + 1, 2] int32, spec.yaml:20
    @property
    def scalar(self) -> Tensor: ...  # [] float32, spec.yaml:21
    @property
    def table(self) -> rt.HostSource: ...  # [tokens.max, max(heads, 3)] int32, spec.yaml:22


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class StepLaterSlots(rt.SlotView):
    """The slots of a bucket: padded rows at fixed addresses. Or a batch's own, live rows."""

    positions: Tensor  # [3, tokens] int64, spec.yaml:17
    rope: Tensor  # [2, tokens, head_dim // 2] float32, spec.yaml:18
    pairs: Tensor  # [2 * tokens + 1, hidden] float32, spec.yaml:19
    bounds: Tensor  # [requests + 1, 2] int32, spec.yaml:20
    scalar: Tensor  # [] float32, spec.yaml:21
    table: Tensor  # [tokens.max, max(heads, 3)] int32, spec.yaml:22
    lanes: Tensor  # [2, tokens] int32, spec.yaml:23


class StepLaterModel(Protocol):
    """What the model's forward must take."""

    def forward(self, *, batch: StepLaterSlots, tokens: int, received: Boundary) -> object: ...


class StepLaterInputs(rt.Inputs[StepExtents, StepLaterBatch, Dims, StepLaterSlots]):
    """The slots in memory, and how a batch gets into them. See ``rt.Inputs`` for each method."""

    facts = SLOTS

    def shapes(self, rows: StepExtents) -> dict[str, tuple[int, ...]]:
        return {
            "positions": (3, rows.tokens),
            "rope": (2, rows.tokens, rt.floor_div(self.dims.head_dim, 2)),
            "pairs": (2 * rows.tokens + 1, self.dims.hidden),
            "bounds": (rows.requests + 1, 2),
            "scalar": (),
            "table": (8, max(self.dims.heads, 3)),
            "lanes": (2, rows.tokens),
        }

    def slots(self, of: Mapping[str, Tensor]) -> StepLaterSlots:
        return StepLaterSlots(
            positions=of["positions"],
            rope=of["rope"],
            pairs=of["pairs"],
            bounds=of["bounds"],
            scalar=of["scalar"],
            table=of["table"],
            lanes=of["lanes"],
        )

    def load(
        self,
        slots: StepLaterSlots,
        host: rt.BucketHost,
        batch: StepLaterBatch,
        live: StepExtents,
        padded: StepExtents,
    ) -> None:
        counts, positions_rows, bounds_rows, table_rows, lanes_rows = host.begin()
        counts.set_rows(live)
        # positions (spec.yaml:17): batch.positions, then zero
        positions_rows.put(batch.positions, live.tokens)
        # rope (spec.yaml:18): batch.rope, then zero
        rt.copy_rows(slots.rope, batch.rope, live.tokens, "rope", dim=1)
        rt.pad_zero(slots.rope, live.tokens, dim=1)
        # pairs (spec.yaml:19): batch.pairs, then the last live row again
        host.move_rows(slots.pairs, batch.pairs, 2 * live.tokens + 1, "pairs", None)
        # bounds (spec.yaml:20): batch.bounds, then the last live row again
        bounds_rows.put(batch.bounds, live.requests + 1)
        bounds_rows.pad_repeat_last(live.requests + 1)
        # scalar (spec.yaml:21): batch.scalar, no padded rows
        rt.copy_whole(slots.scalar, batch.scalar, "scalar")
        # table (spec.yaml:22): batch.table, no padded rows
        table_rows.put_whole(batch.table)
        # lanes (spec.yaml:23): computed for every padded row
        lanes_rows.set_rows([row * 3 for row in range(padded.tokens)])
        host.push()

    def bind(self, batch: StepLaterBatch, boundary: Boundary, live: StepExtents) -> StepLaterSlots:
        rows = rt.EagerRows(self.table(), self.shapes(live), self.dtype, self.device)
        return StepLaterSlots(
            positions=rows.upload("positions", batch.positions),
            rope=rows.own("rope", batch.rope),
            pairs=rows.own("pairs", batch.pairs),
            bounds=rows.upload("bounds", batch.bounds),
            scalar=rows.own("scalar", batch.scalar),
            table=rows.upload("table", batch.table),
            lanes=rows.computed("lanes", [row * 3 for row in range(live.tokens)], dim=1),
        )


class _StepLater(
    StepSteps,
    rt.LaterStage[StepExtents, StepLaterBatch, Dims, StepLaterSlots, Boundary, OutT],
):
    """What the places of this kind share."""

    inputs_type = StepLaterInputs
    incoming_type = Received

    def __init__(
        self,
        *,
        model: StepLaterModel,
        layers: rt.LayerRange,
        dims: Dims,
        dtype: torch.dtype,
        backend: rt.Backend,
    ) -> None:
        rt.check_given(type(self), layers, dtype, backend, dims=(dims, Dims))
        forward = rt.check_forward(model, KEYWORDS, type(self).__name__)
        super().__init__(model=forward, layers=layers, dims=dims, dtype=dtype, backend=backend)

    def forward(
        self,
        slots: StepLaterSlots,
        boundary: Boundary,
        rows: StepExtents,
        made: rt.Made,
    ) -> object:
        return self.model(batch=slots, tokens=rows.tokens, received=boundary)


class StepMiddle(_StepLater[Boundary]):
    """A stage between two others: takes a boundary, hands one on."""

    place = rt.Place.MIDDLE
    outputs_type = HandedOn


class StepLast(_StepLater[StepOutputs]):
    """The last stage: takes a boundary, gives the outputs."""

    place = rt.Place.LAST
    outputs_type = StepResults
