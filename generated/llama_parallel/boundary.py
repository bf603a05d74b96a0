# ppcgc: generated from specs/llama_parallel.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:1cf0528eed60b8101cfce9227076c03f5629733e8a71887231aa7eea6de44354
"""The boundary: what one stage hands to the next, on the sending and on the receiving side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

from ppcgc import runtime as rt
from torch import Tensor


class BoundaryAxes(Protocol):
    """Rows of the axes that the boundary carries, live or padded."""

    @property
    def tokens(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Boundary(rt.Boundary):
    """Live rows between stages; padded rows in a stage's own slots."""

    hidden_states: Tensor  # [tokens, hidden] model, llama_parallel.yaml:18
    residual: Tensor  # [tokens, hidden] model, llama_parallel.yaml:19


class BoundaryTensors(rt.Tensors[BoundaryAxes, Boundary]):
    """The keys that cross a cut, on both of its sides."""

    # the dimension of each key whose rows are split over the ranks of tp
    split: ClassVar[Mapping[str, int]] = {"hidden_states": 0, "residual": 0}

    def table(self, rows: BoundaryAxes) -> tuple[rt.TensorInfo, ...]:
        return (
            rt.TensorInfo("hidden_states", (rows.tokens, self.dims.hidden), self.dtype),
            rt.TensorInfo("residual", (rows.tokens, self.dims.hidden), self.dtype),
        )

    def held(self, of: Mapping[str, Tensor]) -> Boundary:
        return Boundary(hidden_states=of["hidden_states"], residual=of["residual"])


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
            hidden_states=rt.cut_part(buffers.hidden_states, self.dims.tp, (0, live.tokens)),
            residual=rt.cut_part(buffers.residual, self.dims.tp, (0, live.tokens)),
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
            into.hidden_states,
            source.hidden_states,
            (
                rt.live_part(live.tokens, into.hidden_states.shape[0], self.dims.tp),
                self.dims.hidden,
            ),
            "boundary.hidden_states",
        )
        host.receive_rows(
            into.residual,
            source.residual,
            (rt.live_part(live.tokens, into.residual.shape[0], self.dims.tp), self.dims.hidden),
            "boundary.residual",
        )

    def reset(self, rows: Boundary, live: Tensor, axes: tuple[str, ...]) -> None:
        self.past_live.fill(
            rows.hidden_states,
            rt.axis_count(live, axes, "tokens")
            - rt.part_start(rows.hidden_states.shape[0], self.dims.tp),
            0,
        )
        self.past_live.fill(
            rows.residual,
            rt.axis_count(live, axes, "tokens")
            - rt.part_start(rows.residual.shape[0], self.dims.tp),
            0,
        )
        self.past_live.reset()
