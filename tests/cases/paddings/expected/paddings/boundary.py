# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:4aa9ba1a69bf7eca98cd0758fd684b7173544242b678df2027b62ca1f727b8ef
"""The boundary: what one stage hands to the next, on the sending and on the receiving side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from ppcgc import runtime as rt
from torch import Tensor


class BoundaryAxes(Protocol):
    """Rows of the axes that the boundary carries, live or padded."""

    @property
    def tokens(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Boundary(rt.Boundary):
    """Live rows between stages; padded rows in a stage's own slots."""

    zeroed: Tensor  # [tokens, hidden] model, spec.yaml:10
    filled: Tensor  # [tokens] float32, spec.yaml:11
    computed: Tensor  # [tokens] int64, spec.yaml:12
    repeated: Tensor  # [2, tokens] float32, spec.yaml:13
    whole: Tensor  # [hidden] float32, spec.yaml:14


class BoundaryTensors(rt.Tensors[BoundaryAxes, Boundary]):
    """The keys that cross a cut, on both of its sides."""

    def table(self, rows: BoundaryAxes) -> tuple[rt.TensorInfo, ...]:
        return (
            rt.TensorInfo("zeroed", (rows.tokens, self.dims.hidden), self.dtype),
            rt.TensorInfo("filled", (rows.tokens,), torch.float32),
            rt.TensorInfo("computed", (rows.tokens,), torch.int64),
            rt.TensorInfo("repeated", (2, rows.tokens), torch.float32),
            rt.TensorInfo("whole", (self.dims.hidden,), torch.float32),
        )

    def held(self, of: Mapping[str, Tensor]) -> Boundary:
        return Boundary(
            zeroed=of["zeroed"],
            filled=of["filled"],
            computed=of["computed"],
            repeated=of["repeated"],
            whole=of["whole"],
        )


class HandedOn(BoundaryTensors, rt.Outputs[BoundaryAxes, Boundary]):
    """The sending side: the forward's result at stable addresses."""

    prefix = "handed"

    def pick(
        self,
        result: object,
        boundary: object,
        names: tuple[str, ...],
    ) -> Mapping[str, object]:
        return rt.boundary_values(result, names)

    def trim(self, buffers: Boundary, live: BoundaryAxes) -> Boundary:
        return Boundary(
            zeroed=buffers.zeroed.narrow(0, 0, live.tokens),
            filled=buffers.filled.narrow(0, 0, live.tokens),
            computed=buffers.computed.narrow(0, 0, live.tokens),
            repeated=buffers.repeated.narrow(1, 0, live.tokens),
            whole=buffers.whole,
        )


class Received(BoundaryTensors, rt.Incoming[BoundaryAxes, Boundary]):
    """The receiving side: slots that the sender may write in place."""

    def receive(
        self,
        into: Boundary,
        source: Boundary,
        live: BoundaryAxes,
        host: rt.BucketHost,
    ) -> None:
        host.receive_rows(
            into.zeroed,
            source.zeroed,
            (live.tokens, self.dims.hidden),
            "boundary.zeroed",
        )
        host.receive_rows(into.filled, source.filled, (live.tokens,), "boundary.filled")
        host.receive_rows(into.computed, source.computed, (live.tokens,), "boundary.computed")
        host.receive_rows(into.repeated, source.repeated, (2, live.tokens), "boundary.repeated")
        host.receive_rows(into.whole, source.whole, (self.dims.hidden,), "boundary.whole")

    def reset(self, rows: Boundary, live: Tensor, axes: tuple[str, ...]) -> None:
        self.past_live.fill(rows.zeroed, rt.axis_count(live, axes, "tokens"), 0)
        self.past_live.fill(rows.filled, rt.axis_count(live, axes, "tokens"), -1.5)
        self.past_live.fill(rows.computed, rt.axis_count(live, axes, "tokens"), self.dims.sink + 8)
        self.past_live.repeat_last(rows.repeated, rt.axis_count(live, axes, "tokens"), dim=1)
        self.past_live.reset()
