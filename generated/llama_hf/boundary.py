# ppcgc: generated from llama_hf.yaml by ppcgc 0.1.0, ABI 1; do not edit
# spec: sha256:75f5b9b31bb73b917f3f98e96e5c56fffeda1bc16d1a0357b0d84bd3ea79c652
"""The boundary: what one stage hands to the next, on the sending and on the receiving side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ppcgc import runtime as rt
from torch import Tensor


class BoundaryAxes(Protocol):
    """Rows of the axes that the boundary carries, live or padded."""

    @property
    def tokens(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary(rt.Boundary):
    """Live rows between stages; padded rows in a stage's own slots."""

    hidden_states: Tensor  # [tokens, hidden] model, llama_hf.yaml:26


KEYS = ("hidden_states",)


class HandedOn(rt.Outputs[BoundaryAxes, Boundary]):
    """The sending side: the forward's result at stable addresses."""

    def buffers(self, arena: rt.DeviceArena, rows: BoundaryAxes, full: BoundaryAxes) -> Boundary:
        return Boundary(
            hidden_states=arena.rows(
                "handed.hidden_states",
                (rows.tokens, self.dims.hidden),
                (full.tokens, self.dims.hidden),
                self.dtype,
            ),
        )

    def store(self, result: object, buffers: Boundary) -> None:
        (hidden_states,) = rt.boundary_values(result, KEYS)
        rt.store(buffers.hidden_states, hidden_states, "boundary.hidden_states")

    def trim(self, buffers: Boundary, live: BoundaryAxes) -> Boundary:
        return Boundary(
            hidden_states=buffers.hidden_states.narrow(0, 0, live.tokens),
        )

    def eager(self, result: object, live: BoundaryAxes) -> Boundary:
        (hidden_states,) = rt.boundary_values(result, KEYS)
        return Boundary(
            hidden_states=rt.check_result(
                hidden_states,
                (live.tokens, self.dims.hidden),
                self.dtype,
                self.device,
                "hidden_states",
            ),
        )


class Received(rt.Incoming[BoundaryAxes, Boundary]):
    """The receiving side: slots that the sender may write in place."""

    def buffers(self, arena: rt.DeviceArena, rows: BoundaryAxes, full: BoundaryAxes) -> Boundary:
        return Boundary(
            hidden_states=arena.rows(
                "received.hidden_states",
                (rows.tokens, self.dims.hidden),
                (full.tokens, self.dims.hidden),
                self.dtype,
            ),
        )

    def receive(self, into: Boundary, source: Boundary, live: BoundaryAxes) -> None:
        rt.receive_rows(
            into.hidden_states,
            source.hidden_states,
            live.tokens,
            "boundary.hidden_states",
        )

    def reset(self, rows: Boundary, live: Tensor, axes: tuple[str, ...]) -> None:
        rt.reset_fill(rows.hidden_states, rt.axis_count(live, axes, "tokens"), 0)

    def check(self, source: Boundary, live: BoundaryAxes) -> Boundary:
        return Boundary(
            hidden_states=rt.check_received(
                source.hidden_states,
                (live.tokens, self.dims.hidden),
                self.dtype,
                self.device,
                "boundary.hidden_states",
            ),
        )
