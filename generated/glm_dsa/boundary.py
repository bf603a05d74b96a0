# ppcgc: generated from specs/glm_dsa.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:a44205a61e5ce44ca77b1e6bd3d9721b7635392f90a79dd313071ff9cd66b30a
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

    hidden_states: Tensor  # [tokens, hidden] model, llama_hf.yaml:26
    topk_indices: Tensor | None  # [tokens, topk] int32, deepseek_v32.yaml:20


class BoundaryTensors(rt.Tensors[BoundaryAxes, Boundary]):
    """The keys that cross a cut, on both of its sides."""

    def table(self, rows: BoundaryAxes) -> tuple[rt.TensorInfo, ...]:
        infos: list[rt.TensorInfo] = []
        infos.append(rt.TensorInfo("hidden_states", (rows.tokens, self.dims.hidden), self.dtype))
        if self.cut in self.dims.kinds.reuses_topk:
            infos.append(rt.TensorInfo("topk_indices", (rows.tokens, self.dims.topk), torch.int32))
        return tuple(infos)

    def held(self, of: Mapping[str, Tensor]) -> Boundary:
        return Boundary(hidden_states=of["hidden_states"], topk_indices=of.get("topk_indices"))


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
            hidden_states=buffers.hidden_states.narrow(0, 0, live.tokens),
            topk_indices=rt.cut_rows(buffers.topk_indices, (0, live.tokens)),
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
            (live.tokens, self.dims.hidden),
            "boundary.hidden_states",
        )
        if into.topk_indices is not None:
            host.receive_rows(
                into.topk_indices,
                source.topk_indices,
                (live.tokens, self.dims.topk),
                "boundary.topk_indices",
            )

    def reset(self, rows: Boundary, live: Tensor, axes: tuple[str, ...]) -> None:
        self.past_live.fill(rows.hidden_states, rt.axis_count(live, axes, "tokens"), 0)
        if rows.topk_indices is not None:
            self.past_live.fill(rows.topk_indices, rt.axis_count(live, axes, "tokens"), -1)
        self.past_live.reset()
