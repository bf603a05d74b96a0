# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 1; do not edit
# spec: sha256:5bd96e4653f8d40aa862a70fb2d9ee47566c099524416e4437b9b3c9e69a758d
"""The boundary: what one stage hands to the next, on the sending and on the receiving side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from ppcgc import runtime as rt
from torch import Tensor

KEYS: tuple[str, ...] = (
    "key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
    "two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
)
# keys that the runtime hands on as received; only a first stage's forward gives them
FORWARDED: tuple[str, ...] = ()


class BoundaryAxes(Protocol):
    """Rows of the axes that the boundary carries, live or padded."""

    @property
    def tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary(rt.Boundary):
    """Live rows between stages; padded rows in a stage's own slots."""

    key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_: Tensor  # [tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_, dim_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_] model, spec.yaml:13
    two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_: Tensor  # [3, 2 * tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ + 1] float32, spec.yaml:14


class HandedOn(rt.Outputs[BoundaryAxes, Boundary]):
    """The sending side: the forward's result at stable addresses."""

    def keys(self) -> tuple[str, ...]:
        return KEYS

    def buffers(self, arena: rt.DeviceArena, rows: BoundaryAxes, full: BoundaryAxes) -> Boundary:
        key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ = arena.rows(
            "handed.key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
            (rows.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_, self.dims.dim_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_),
            (full.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_, self.dims.dim_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_),
            self.dtype,
        )
        two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ = arena.rows(
            "handed.two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
            (3, 2 * rows.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ + 1),
            (3, 2 * full.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ + 1),
            torch.float32,
        )
        return Boundary(
            key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_=key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_=two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
        )

    def store(self, result: object, buffers: Boundary, boundary: object) -> None:
        values = rt.handed_on(result, boundary, self.keys(), FORWARDED)
        rt.store(
            buffers.key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            values["key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_"],
            "boundary.key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
        )
        rt.store(
            buffers.two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            values["two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_"],
            "boundary.two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
        )

    def trim(self, buffers: Boundary, live: BoundaryAxes) -> Boundary:
        key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ = buffers.key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_.narrow(0, 0, live.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_)
        two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ = buffers.two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_.narrow(1, 0, 2 * live.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ + 1)
        return Boundary(
            key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_=key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_=two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
        )

    def eager(self, result: object, boundary: object, live: BoundaryAxes) -> Boundary:
        values = rt.handed_on(result, boundary, self.keys(), FORWARDED)
        key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ = rt.check_result(
            values["key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_"],
            (live.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_, self.dims.dim_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_),
            self.dtype,
            self.device,
            "key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
        )
        two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ = rt.check_result(
            values["two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_"],
            (3, 2 * live.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ + 1),
            torch.float32,
            self.device,
            "two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
        )
        return Boundary(
            key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_=key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_=two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
        )


class Received(rt.Incoming[BoundaryAxes, Boundary]):
    """The receiving side: slots that the sender may write in place."""

    def keys(self) -> tuple[str, ...]:
        return KEYS

    def buffers(self, arena: rt.DeviceArena, rows: BoundaryAxes, full: BoundaryAxes) -> Boundary:
        key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ = arena.rows(
            "received.key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
            (rows.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_, self.dims.dim_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_),
            (full.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_, self.dims.dim_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_),
            self.dtype,
        )
        two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ = arena.rows(
            "received.two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
            (3, 2 * rows.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ + 1),
            (3, 2 * full.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ + 1),
            torch.float32,
        )
        return Boundary(
            key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_=key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_=two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
        )

    def receive(self, into: Boundary, source: Boundary, live: BoundaryAxes) -> None:
        rt.receive_rows(
            into.key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            source.key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            (live.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_, self.dims.dim_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_),
            "boundary.key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
        )
        rt.receive_rows(
            into.two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            source.two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            (3, 2 * live.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ + 1),
            "boundary.two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
        )

    def reset(self, rows: Boundary, live: Tensor, axes: tuple[str, ...]) -> None:
        rt.reset_fill(
            rows.key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            rt.axis_count(live, axes, "tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_"),
            self.dims.dim_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
        )
        rt.reset_repeat_last(
            rows.two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            rt.axis_count(live, axes, "tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_") * 2 + 1,
            dim=1,
        )

    def check(self, source: Boundary, live: BoundaryAxes) -> Boundary:
        key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ = rt.check_received(
            source.key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            (live.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_, self.dims.dim_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_),
            self.dtype,
            self.device,
            "boundary.key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
        )
        two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ = rt.check_received(
            source.two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            (3, 2 * live.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ + 1),
            torch.float32,
            self.device,
            "boundary.two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
        )
        return Boundary(
            key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_=key_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_=two_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
        )
