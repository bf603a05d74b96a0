# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:1e4305ee185251b0d581b9816b805fe79e4b5279f68fcee4c8dec058a34ec0b5
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
    def tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Boundary(rt.Boundary):
    """Live rows between stages; padded rows in a stage's own slots."""

    # [tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_, dim_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_] model, spec.yaml:13
    key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_: Tensor
    # [3, 2 * tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ + 1] float32, spec.yaml:14
    two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_: Tensor


class BoundaryTensors(rt.Tensors[BoundaryAxes, Boundary]):
    """The keys that cross a cut, on both of its sides."""

    def table(self, rows: BoundaryAxes) -> tuple[rt.TensorInfo, ...]:
        return (
            rt.TensorInfo(
                "key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
                (
                    rows.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
                    self.dims.dim_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
                ),
                self.dtype,
            ),
            rt.TensorInfo(
                "two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
                (3, 2 * rows.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ + 1),
                torch.float32,
            ),
        )

    def held(self, of: Mapping[str, Tensor]) -> Boundary:
        return Boundary(
            key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_=of[
                "key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_"
            ],
            two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_=of[
                "two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_"
            ],
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
            key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_=buffers.key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_.narrow(
                0,
                0,
                live.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            ),
            two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_=buffers.two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_.narrow(
                1,
                0,
                2 * live.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ + 1,
            ),
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
            into.key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            source.key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            (
                live.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
                self.dims.dim_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            ),
            "boundary.key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
        )
        host.receive_rows(
            into.two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            source.two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            (3, 2 * live.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ + 1),
            "boundary.two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
        )

    def reset(self, rows: Boundary, live: Tensor, axes: tuple[str, ...]) -> None:
        self.past_live.fill(
            rows.key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            rt.axis_count(
                live,
                axes,
                "tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
            ),
            self.dims.dim_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
        )
        self.past_live.repeat_last(
            rows.two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            rt.axis_count(live, axes, "tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_")
            * 2
            + 1,
            dim=1,
        )
        self.past_live.reset()
