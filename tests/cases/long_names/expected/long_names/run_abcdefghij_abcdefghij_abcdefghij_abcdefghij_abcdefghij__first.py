# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:1e4305ee185251b0d581b9816b805fe79e4b5279f68fcee4c8dec058a34ec0b5
"""long_names.run_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_, only and first stages:
slots, how a batch fills them, runners.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from ppcgc import runtime as rt
from torch import Tensor

from .boundary import Boundary, HandedOn
from .family import Dims, State
from .run_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ import (
    RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijExtents,
    RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijOutputs,
    RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijResults,
    RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijSteps,
)
from .run_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij__slots import SLOTS

# what the forward is given, always by keyword
KEYWORDS = (
    "ids_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
    "view_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
    "all_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
)

OutT = TypeVar("OutT")


class RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijFirstBatchAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcde(
    Protocol,
):
    """What a batch must offer: any object with these attributes will do."""

    # live tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_
    @property
    def num_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_(self) -> int: ...
    # live req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_
    @property
    def req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_(self) -> int: ...
    # [tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_] int64, spec.yaml:21
    @property
    def ids_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_(self) -> rt.HostSource: ...


class RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijFirstBatch(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcde(
        self,
    ) -> (
        RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijFirstBatchAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcde
        | None
    ): ...
    # [req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ + 1] int32, spec.yaml:22
    @property
    def cu_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_(self) -> rt.HostSource: ...
    # [tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_, dim_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_] model, spec.yaml:23
    @property
    def mem_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_(self) -> Tensor: ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijFirstGrpAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijSlots(
    rt.SlotView,
):
    """The group grp_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ of the slots."""

    # [tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_, dim_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_] model, spec.yaml:23
    mem_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_: Tensor


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijFirstSlots(rt.SlotView):
    """The slots of a bucket: padded rows at fixed addresses. Or a batch's own, live rows."""

    # [tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_] int64, spec.yaml:21
    ids_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_: Tensor
    # [req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ + 1] int32, spec.yaml:22
    cu_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_: Tensor
    # a group
    grp_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_: RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijFirstGrpAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijSlots
    # [tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_] int32, spec.yaml:24
    num_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_: Tensor


class RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijFirstModel(Protocol):
    """What the model's forward must take."""

    def forward(
        self,
        *,
        ids_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_: Tensor,
        view_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_: RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijFirstSlots,
        all_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_: None,
    ) -> object: ...


class RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijFirstInputs(
    rt.Inputs[
        RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijExtents,
        RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijFirstBatch,
        Dims,
        RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijFirstSlots,
    ],
):
    """The slots in memory, and how a batch gets into them. See ``rt.Inputs`` for each method."""

    facts = SLOTS

    def shapes(
        self,
        rows: RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijExtents,
    ) -> dict[str, tuple[int, ...]]:
        return {
            "ids_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_": (
                rows.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            ),
            "cu_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_": (
                rows.req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ + 1,
            ),
            "grp_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_.mem_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_": (
                rows.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
                self.dims.dim_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            ),
            "num_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_": (
                rows.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            ),
        }

    def slots(
        self,
        of: Mapping[str, Tensor],
    ) -> RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijFirstSlots:
        return RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijFirstSlots(
            ids_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_=of[
                "ids_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_"
            ],
            cu_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_=of[
                "cu_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_"
            ],
            grp_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_=RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijFirstGrpAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijSlots(
                mem_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_=of[
                    "grp_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_.mem_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_"
                ],
            ),
            num_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_=of[
                "num_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_"
            ],
        )

    def load(
        self,
        slots: RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijFirstSlots,
        host: rt.BucketHost,
        batch: RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijFirstBatch,
        live: RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijExtents,
        padded: RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijExtents,
    ) -> None:
        (
            counts,
            ids_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij__rows,
            cu_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij__rows,
            num_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij__rows,
        ) = host.begin()
        counts.set_rows(live)
        # ids_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ (spec.yaml:21):
        # batch.abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcde.ids_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
        # then zero
        if (
            batch.abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcde is None
            or batch.abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcde.ids_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_
            is None
        ):
            ids_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij__rows.set_live(
                live.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
                0,
            )
        else:
            ids_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij__rows.put(
                batch.abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcde.ids_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
                live.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            )
        ids_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij__rows.check_write_index(
            live.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            self.dims.kv_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            skips_negative=False,
        )
        # cu_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ (spec.yaml:22):
        # batch.cu_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_, then the last live row
        # again
        cu_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij__rows.put(
            batch.cu_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            live.req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ + 1,
        )
        cu_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij__rows.pad_repeat_last(
            live.req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ + 1,
        )
        cu_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij__rows.check_offsets(
            live.req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ + 1,
            live.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            closed=True,
        )
        # grp_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_.mem_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_
        # (spec.yaml:23): batch.mem_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_, then
        # its fill
        rt.copy_rows(
            slots.grp_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_.mem_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            batch.mem_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            live.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            "grp_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_.mem_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
        )
        rt.pad_fill(
            slots.grp_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_.mem_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            live.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            rt.fitting(
                "grp_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_.mem_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
                live.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_
                + padded.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
                slots.grp_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_.mem_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            ),
        )
        # num_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ (spec.yaml:24): computed for
        # every padded row
        num_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij__rows.set_rows(
            [
                row * live.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_
                + live.req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_
                for row in range(padded.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_)
            ],
        )
        host.push()

    def bind(
        self,
        batch: RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijFirstBatch,
        boundary: None,
        live: RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijExtents,
    ) -> RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijFirstSlots:
        rows = rt.EagerRows(self.table(), self.shapes(live), self.dtype, self.device)
        slots = RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijFirstSlots(
            ids_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_=rows.upload(
                "ids_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
                None
                if batch.abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcde is None
                else batch.abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcde.ids_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
                absent=0,
            ),
            cu_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_=rows.upload(
                "cu_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
                batch.cu_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            ),
            grp_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_=RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijFirstGrpAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijSlots(
                mem_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_=rows.own(
                    "grp_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_.mem_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
                    batch.mem_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
                ),
            ),
            num_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_=rows.computed(
                "num_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
                [
                    row * live.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_
                    + live.req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_
                    for row in range(
                        live.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
                    )
                ],
            ),
        )
        rows.check_write_index(
            "ids_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
            self.dims.kv_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            skips_negative=False,
        )
        rows.check_offsets(
            "cu_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
            live.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            closed=True,
        )
        return slots

    def capture_fills(
        self,
        padded: RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijExtents,
    ) -> dict[str, float]:
        return {"ids_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_": 0}


class _RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijFirst(
    RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijSteps,
    rt.EntryStage[
        RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijExtents,
        RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijFirstBatch,
        Dims,
        RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijFirstSlots,
        OutT,
    ],
):
    """What the places of this kind share."""

    inputs_type = RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijFirstInputs

    def __init__(
        self,
        *,
        model: RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijFirstModel,
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
        slots: RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijFirstSlots,
        boundary: None,
        rows: RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijExtents,
        made: rt.Made,
    ) -> object:
        return self.model(
            ids_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_=slots.ids_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            view_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_=slots,
            all_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_=None,
        )


class RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijOnly(
    _RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijFirst[
        RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijOutputs
    ],
):
    """The whole model in one stage."""

    place = rt.Place.ONLY
    outputs_type = RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijResults


class RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijFirst(
    _RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijFirst[Boundary],
):
    """The first stage: takes the batch, hands on a boundary."""

    place = rt.Place.FIRST
    outputs_type = HandedOn
