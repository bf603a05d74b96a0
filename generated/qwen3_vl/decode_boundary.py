# ppcgc: generated from specs/qwen3_vl.yaml by ppcgc 0.1.0, ABI 1; do not edit
# spec: sha256:879853a37f28b3909116e3259c9035f268ca80acc12381b00f9f746bf1c607cc
"""The boundary: what one stage hands to the next, on the sending and on the receiving side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ppcgc import runtime as rt
from torch import Tensor

from .family import Dims

KEYS: tuple[str, ...] = ("hidden_states", "deepstack")
# keys that the runtime hands on as received; only a first stage's forward gives them
FORWARDED: tuple[str, ...] = ()


class BoundaryAxes(Protocol):
    """Rows of the axes that the boundary carries, live or padded."""

    @property
    def tokens(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary(rt.Boundary):
    """Live rows between stages; padded rows in a stage's own slots."""

    hidden_states: Tensor  # [tokens, hidden] model, llama_hf.yaml:26
    deepstack: Tensor | None  # [deepstack - cut.layer, tokens, hidden] model, qwen3_vl.yaml:46


def crossing(dims: Dims, cut: int) -> tuple[str, ...]:
    """The keys that cross a cut; ``cut`` is the first layer after it."""
    conditions = (
        ("hidden_states", True),
        ("deepstack", False),
    )
    return tuple(key for key, crosses in conditions if crosses)


class HandedOn(rt.Outputs[BoundaryAxes, Boundary]):
    """The sending side: the forward's result at stable addresses."""

    def keys(self) -> tuple[str, ...]:
        return crossing(self.dims, self.cut)

    def buffers(self, arena: rt.DeviceArena, rows: BoundaryAxes, full: BoundaryAxes) -> Boundary:
        hidden_states = arena.rows(
            "handed.hidden_states",
            (rows.tokens, self.dims.hidden),
            (full.tokens, self.dims.hidden),
            self.dtype,
        )
        deepstack: Tensor | None = None
        if "deepstack" in self.keys():
            deepstack = arena.rows(
                "handed.deepstack",
                (self.dims.deepstack - self.cut, rows.tokens, self.dims.hidden),
                (self.dims.deepstack - self.cut, full.tokens, self.dims.hidden),
                self.dtype,
            )
        return Boundary(hidden_states=hidden_states, deepstack=deepstack)

    def store(self, result: object, buffers: Boundary, boundary: object) -> None:
        values = rt.handed_on(result, boundary, self.keys(), FORWARDED)
        rt.store(buffers.hidden_states, values["hidden_states"], "boundary.hidden_states")
        if buffers.deepstack is not None:
            rt.store(buffers.deepstack, values["deepstack"], "boundary.deepstack")

    def trim(self, buffers: Boundary, live: BoundaryAxes) -> Boundary:
        hidden_states = buffers.hidden_states.narrow(0, 0, live.tokens)
        deepstack: Tensor | None = None
        if buffers.deepstack is not None:
            deepstack = buffers.deepstack.narrow(1, 0, live.tokens)
        return Boundary(hidden_states=hidden_states, deepstack=deepstack)

    def eager(self, result: object, boundary: object, live: BoundaryAxes) -> Boundary:
        values = rt.handed_on(result, boundary, self.keys(), FORWARDED)
        hidden_states = rt.check_result(
            values["hidden_states"],
            (live.tokens, self.dims.hidden),
            self.dtype,
            self.device,
            "hidden_states",
        )
        deepstack: Tensor | None = None
        if "deepstack" in self.keys():
            deepstack = rt.check_result(
                values["deepstack"],
                (self.dims.deepstack - self.cut, live.tokens, self.dims.hidden),
                self.dtype,
                self.device,
                "deepstack",
            )
        return Boundary(hidden_states=hidden_states, deepstack=deepstack)


class Received(rt.Incoming[BoundaryAxes, Boundary]):
    """The receiving side: slots that the sender may write in place."""

    def keys(self) -> tuple[str, ...]:
        return crossing(self.dims, self.cut)

    def buffers(self, arena: rt.DeviceArena, rows: BoundaryAxes, full: BoundaryAxes) -> Boundary:
        hidden_states = arena.rows(
            "received.hidden_states",
            (rows.tokens, self.dims.hidden),
            (full.tokens, self.dims.hidden),
            self.dtype,
        )
        deepstack: Tensor | None = None
        if "deepstack" in self.keys():
            deepstack = arena.rows(
                "received.deepstack",
                (self.dims.deepstack - self.cut, rows.tokens, self.dims.hidden),
                (self.dims.deepstack - self.cut, full.tokens, self.dims.hidden),
                self.dtype,
            )
        return Boundary(hidden_states=hidden_states, deepstack=deepstack)

    def receive(self, into: Boundary, source: Boundary, live: BoundaryAxes) -> None:
        rt.receive_rows(
            into.hidden_states,
            source.hidden_states,
            (live.tokens, self.dims.hidden),
            "boundary.hidden_states",
        )
        if into.deepstack is not None:
            rt.receive_rows(
                into.deepstack,
                source.deepstack,
                (self.dims.deepstack - self.cut, live.tokens, self.dims.hidden),
                "boundary.deepstack",
            )

    def reset(self, rows: Boundary, live: Tensor, axes: tuple[str, ...]) -> None:
        rt.reset_fill(rows.hidden_states, rt.axis_count(live, axes, "tokens"), 0)
        if rows.deepstack is not None:
            rt.reset_fill(rows.deepstack, rt.axis_count(live, axes, "tokens"), 0, dim=1)

    def check(self, source: Boundary, live: BoundaryAxes) -> Boundary:
        hidden_states = rt.check_received(
            source.hidden_states,
            (live.tokens, self.dims.hidden),
            self.dtype,
            self.device,
            "boundary.hidden_states",
        )
        deepstack: Tensor | None = None
        if "deepstack" in self.keys():
            deepstack = rt.check_received(
                source.deepstack,
                (self.dims.deepstack - self.cut, live.tokens, self.dims.hidden),
                self.dtype,
                self.device,
                "boundary.deepstack",
            )
        return Boundary(hidden_states=hidden_states, deepstack=deepstack)
