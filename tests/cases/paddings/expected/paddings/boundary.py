# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 1; do not edit
# spec: sha256:9cdb2ab0335cbdd0602631574ee19ae6f97e0f398e0057ca8f489ce472a649c2
"""The boundary: what one stage hands to the next, on the sending and on the receiving side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from ppcgc import runtime as rt
from torch import Tensor

KEYS: tuple[str, ...] = ("zeroed", "filled", "computed", "repeated", "whole")
# keys that the runtime hands on as received; only a first stage's forward gives them
FORWARDED: tuple[str, ...] = ()


class BoundaryAxes(Protocol):
    """Rows of the axes that the boundary carries, live or padded."""

    @property
    def tokens(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary(rt.Boundary):
    """Live rows between stages; padded rows in a stage's own slots."""

    zeroed: Tensor  # [tokens, hidden] model, spec.yaml:10
    filled: Tensor  # [tokens] float32, spec.yaml:11
    computed: Tensor  # [tokens] int64, spec.yaml:12
    repeated: Tensor  # [2, tokens] float32, spec.yaml:13
    whole: Tensor  # [hidden] float32, spec.yaml:14


class HandedOn(rt.Outputs[BoundaryAxes, Boundary]):
    """The sending side: the forward's result at stable addresses."""

    def keys(self) -> tuple[str, ...]:
        return KEYS

    def buffers(self, arena: rt.DeviceArena, rows: BoundaryAxes, full: BoundaryAxes) -> Boundary:
        zeroed = arena.rows(
            "handed.zeroed",
            (rows.tokens, self.dims.hidden),
            (full.tokens, self.dims.hidden),
            self.dtype,
        )
        filled = arena.rows("handed.filled", (rows.tokens,), (full.tokens,), torch.float32)
        computed = arena.rows("handed.computed", (rows.tokens,), (full.tokens,), torch.int64)
        repeated = arena.rows("handed.repeated", (2, rows.tokens), (2, full.tokens), torch.float32)
        whole = arena.rows("handed.whole", (self.dims.hidden,), (self.dims.hidden,), torch.float32)
        return Boundary(
            zeroed=zeroed,
            filled=filled,
            computed=computed,
            repeated=repeated,
            whole=whole,
        )

    def store(self, result: object, buffers: Boundary, boundary: object) -> None:
        values = rt.handed_on(result, boundary, self.keys(), FORWARDED)
        rt.store(buffers.zeroed, values["zeroed"], "boundary.zeroed")
        rt.store(buffers.filled, values["filled"], "boundary.filled")
        rt.store(buffers.computed, values["computed"], "boundary.computed")
        rt.store(buffers.repeated, values["repeated"], "boundary.repeated")
        rt.store(buffers.whole, values["whole"], "boundary.whole")

    def trim(self, buffers: Boundary, live: BoundaryAxes) -> Boundary:
        zeroed = buffers.zeroed.narrow(0, 0, live.tokens)
        filled = buffers.filled.narrow(0, 0, live.tokens)
        computed = buffers.computed.narrow(0, 0, live.tokens)
        repeated = buffers.repeated.narrow(1, 0, live.tokens)
        whole = buffers.whole
        return Boundary(
            zeroed=zeroed,
            filled=filled,
            computed=computed,
            repeated=repeated,
            whole=whole,
        )

    def eager(self, result: object, boundary: object, live: BoundaryAxes) -> Boundary:
        values = rt.handed_on(result, boundary, self.keys(), FORWARDED)
        zeroed = rt.check_result(
            values["zeroed"],
            (live.tokens, self.dims.hidden),
            self.dtype,
            self.device,
            "zeroed",
        )
        filled = rt.check_result(
            values["filled"],
            (live.tokens,),
            torch.float32,
            self.device,
            "filled",
        )
        computed = rt.check_result(
            values["computed"],
            (live.tokens,),
            torch.int64,
            self.device,
            "computed",
        )
        repeated = rt.check_result(
            values["repeated"],
            (2, live.tokens),
            torch.float32,
            self.device,
            "repeated",
        )
        whole = rt.check_result(
            values["whole"],
            (self.dims.hidden,),
            torch.float32,
            self.device,
            "whole",
        )
        return Boundary(
            zeroed=zeroed,
            filled=filled,
            computed=computed,
            repeated=repeated,
            whole=whole,
        )


class Received(rt.Incoming[BoundaryAxes, Boundary]):
    """The receiving side: slots that the sender may write in place."""

    def keys(self) -> tuple[str, ...]:
        return KEYS

    def buffers(self, arena: rt.DeviceArena, rows: BoundaryAxes, full: BoundaryAxes) -> Boundary:
        zeroed = arena.rows(
            "received.zeroed",
            (rows.tokens, self.dims.hidden),
            (full.tokens, self.dims.hidden),
            self.dtype,
        )
        filled = arena.rows("received.filled", (rows.tokens,), (full.tokens,), torch.float32)
        computed = arena.rows("received.computed", (rows.tokens,), (full.tokens,), torch.int64)
        repeated = arena.rows(
            "received.repeated",
            (2, rows.tokens),
            (2, full.tokens),
            torch.float32,
        )
        whole = arena.rows(
            "received.whole",
            (self.dims.hidden,),
            (self.dims.hidden,),
            torch.float32,
        )
        return Boundary(
            zeroed=zeroed,
            filled=filled,
            computed=computed,
            repeated=repeated,
            whole=whole,
        )

    def receive(self, into: Boundary, source: Boundary, live: BoundaryAxes) -> None:
        rt.receive_rows(
            into.zeroed,
            source.zeroed,
            (live.tokens, self.dims.hidden),
            "boundary.zeroed",
        )
        rt.receive_rows(into.filled, source.filled, (live.tokens,), "boundary.filled")
        rt.receive_rows(into.computed, source.computed, (live.tokens,), "boundary.computed")
        rt.receive_rows(into.repeated, source.repeated, (2, live.tokens), "boundary.repeated")
        rt.receive_rows(into.whole, source.whole, (self.dims.hidden,), "boundary.whole")

    def reset(self, rows: Boundary, live: Tensor, axes: tuple[str, ...]) -> None:
        rt.reset_fill(rows.zeroed, rt.axis_count(live, axes, "tokens"), 0)
        rt.reset_fill(rows.filled, rt.axis_count(live, axes, "tokens"), -1.5)
        rt.reset_fill(rows.computed, rt.axis_count(live, axes, "tokens"), self.dims.sink + 8)
        rt.reset_repeat_last(rows.repeated, rt.axis_count(live, axes, "tokens"), dim=1)

    def check(self, source: Boundary, live: BoundaryAxes) -> Boundary:
        zeroed = rt.check_received(
            source.zeroed,
            (live.tokens, self.dims.hidden),
            self.dtype,
            self.device,
            "boundary.zeroed",
        )
        filled = rt.check_received(
            source.filled,
            (live.tokens,),
            torch.float32,
            self.device,
            "boundary.filled",
        )
        computed = rt.check_received(
            source.computed,
            (live.tokens,),
            torch.int64,
            self.device,
            "boundary.computed",
        )
        repeated = rt.check_received(
            source.repeated,
            (2, live.tokens),
            torch.float32,
            self.device,
            "boundary.repeated",
        )
        whole = rt.check_received(
            source.whole,
            (self.dims.hidden,),
            torch.float32,
            self.device,
            "boundary.whole",
        )
        return Boundary(
            zeroed=zeroed,
            filled=filled,
            computed=computed,
            repeated=repeated,
            whole=whole,
        )
