# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:60d459386d8bcb3f35623106fbaeb1751445f3d616ea8c6f033a1bf3df210b40
"""The boundary: what one stage hands to the next, on the sending and on the receiving side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from ppcgc import runtime as rt
from torch import Tensor


class BoundaryAxes(Protocol):
    """Rows of the axes that the boundary carries, live or padded."""

    @property
    def tokens(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Boundary(rt.Boundary):
    """Live rows between stages; padded rows in a stage's own slots."""

    hidden_states: Tensor  # [tokens, hidden] model, spec.yaml:10


class BoundaryTensors(rt.Tensors[BoundaryAxes, Boundary]):
    """The keys that cross a cut, on both of its sides."""

    def table(self, rows: BoundaryAxes) -> tuple[rt.TensorInfo, ...]:
        return (rt.TensorInfo("hidden_states", (rows.tokens, self.dims.hidden), self.dtype),)

    def held(self, of: Mapping[str, Tensor]) -> Boundary:
        return Boundary(hidden_states=of["hidden_states"])


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
        return Boundary(hidden_states=buffers.hidden_states.narrow(0, 0, live.tokens))


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
            into.hidden_states,
            source.hidden_states,
            (live.tokens, self.dims.hidden),
            "boundary.hidden_states",
        )

    def reset(self, rows: Boundary, live: Tensor, axes: tuple[str, ...]) -> None:
        self.past_live.fill(rows.hidden_states, rt.axis_count(live, axes, "tokens"), 0)
        self.past_live.reset()
