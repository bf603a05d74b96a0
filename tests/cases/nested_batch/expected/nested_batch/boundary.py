# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 1; do not edit
# spec: sha256:629f4a4f06922c70560a978a219f6381aae2003707843c81773037413dcb7db5
"""The boundary: what one stage hands to the next, on the sending and on the receiving side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ppcgc import runtime as rt
from torch import Tensor

KEYS: tuple[str, ...] = ("hidden_states",)
# keys that the runtime hands on as received; only a first stage's forward gives them
FORWARDED: tuple[str, ...] = ()


class BoundaryAxes(Protocol):
    """Rows of the axes that the boundary carries, live or padded."""

    @property
    def tokens(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary(rt.Boundary):
    """Live rows between stages; padded rows in a stage's own slots."""

    hidden_states: Tensor  # [tokens, hidden] model, spec.yaml:11


class HandedOn(rt.Outputs[BoundaryAxes, Boundary]):
    """The sending side: the forward's result at stable addresses."""

    def keys(self) -> tuple[str, ...]:
        return KEYS

    def buffers(self, arena: rt.DeviceArena, rows: BoundaryAxes, full: BoundaryAxes) -> Boundary:
        hidden_states = arena.rows(
            "handed.hidden_states",
            (rows.tokens, self.dims.hidden),
            (full.tokens, self.dims.hidden),
            self.dtype,
        )
        return Boundary(hidden_states=hidden_states)

    def store(self, result: object, buffers: Boundary, boundary: object) -> None:
        values = rt.handed_on(result, boundary, self.keys(), FORWARDED)
        rt.store(buffers.hidden_states, values["hidden_states"], "boundary.hidden_states")

    def trim(self, buffers: Boundary, live: BoundaryAxes) -> Boundary:
        hidden_states = buffers.hidden_states.narrow(0, 0, live.tokens)
        return Boundary(hidden_states=hidden_states)

    def eager(self, result: object, boundary: object, live: BoundaryAxes) -> Boundary:
        values = rt.handed_on(result, boundary, self.keys(), FORWARDED)
        hidden_states = rt.check_result(
            values["hidden_states"],
            (live.tokens, self.dims.hidden),
            self.dtype,
            self.device,
            "hidden_states",
        )
        return Boundary(hidden_states=hidden_states)


class Received(rt.Incoming[BoundaryAxes, Boundary]):
    """The receiving side: slots that the sender may write in place."""

    def keys(self) -> tuple[str, ...]:
        return KEYS

    def buffers(self, arena: rt.DeviceArena, rows: BoundaryAxes, full: BoundaryAxes) -> Boundary:
        hidden_states = arena.rows(
            "received.hidden_states",
            (rows.tokens, self.dims.hidden),
            (full.tokens, self.dims.hidden),
            self.dtype,
        )
        return Boundary(hidden_states=hidden_states)

    def receive(self, into: Boundary, source: Boundary, live: BoundaryAxes) -> None:
        rt.receive_rows(
            into.hidden_states,
            source.hidden_states,
            (live.tokens, self.dims.hidden),
            "boundary.hidden_states",
        )

    def reset(self, rows: Boundary, live: Tensor, axes: tuple[str, ...]) -> None:
        rt.reset_fill(rows.hidden_states, rt.axis_count(live, axes, "tokens"), 0)

    def check(self, source: Boundary, live: BoundaryAxes) -> Boundary:
        hidden_states = rt.check_received(
            source.hidden_states,
            (live.tokens, self.dims.hidden),
            self.dtype,
            self.device,
            "boundary.hidden_states",
        )
        return Boundary(hidden_states=hidden_states)
