# ppcgc: generated from specs/deepseek_v32.yaml by ppcgc 0.1.0, ABI 1; do not edit
# spec: sha256:48ccd55660a2f8ceb40cc0f61e8cbc0ce1fb531b7c3fe3b8533b30127730b21e
"""The boundary: what one stage hands to the next, on the sending and on the receiving side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from ppcgc import runtime as rt
from torch import Tensor

from .family import Dims

KEYS: tuple[str, ...] = ("hidden_states", "topk_indices")
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
    topk_indices: Tensor | None  # [tokens, topk] int32, deepseek_v32.yaml:20


def crossing(dims: Dims, cut: int) -> tuple[str, ...]:
    """The keys that cross a cut; ``cut`` is the first layer after it."""
    conditions = (
        ("hidden_states", True),
        ("topk_indices", cut in dims.kinds.reuses_topk),
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
        topk_indices: Tensor | None = None
        if "topk_indices" in self.keys():
            topk_indices = arena.rows(
                "handed.topk_indices",
                (rows.tokens, self.dims.topk),
                (full.tokens, self.dims.topk),
                torch.int32,
            )
        return Boundary(hidden_states=hidden_states, topk_indices=topk_indices)

    def store(self, result: object, buffers: Boundary, boundary: object) -> None:
        values = rt.handed_on(result, boundary, self.keys(), FORWARDED)
        rt.store(buffers.hidden_states, values["hidden_states"], "boundary.hidden_states")
        if buffers.topk_indices is not None:
            rt.store(buffers.topk_indices, values["topk_indices"], "boundary.topk_indices")

    def trim(self, buffers: Boundary, live: BoundaryAxes) -> Boundary:
        hidden_states = buffers.hidden_states.narrow(0, 0, live.tokens)
        topk_indices: Tensor | None = None
        if buffers.topk_indices is not None:
            topk_indices = buffers.topk_indices.narrow(0, 0, live.tokens)
        return Boundary(hidden_states=hidden_states, topk_indices=topk_indices)

    def eager(self, result: object, boundary: object, live: BoundaryAxes) -> Boundary:
        values = rt.handed_on(result, boundary, self.keys(), FORWARDED)
        hidden_states = rt.check_result(
            values["hidden_states"],
            (live.tokens, self.dims.hidden),
            self.dtype,
            self.device,
            "hidden_states",
        )
        topk_indices: Tensor | None = None
        if "topk_indices" in self.keys():
            topk_indices = rt.check_result(
                values["topk_indices"],
                (live.tokens, self.dims.topk),
                torch.int32,
                self.device,
                "topk_indices",
            )
        return Boundary(hidden_states=hidden_states, topk_indices=topk_indices)


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
        topk_indices: Tensor | None = None
        if "topk_indices" in self.keys():
            topk_indices = arena.rows(
                "received.topk_indices",
                (rows.tokens, self.dims.topk),
                (full.tokens, self.dims.topk),
                torch.int32,
            )
        return Boundary(hidden_states=hidden_states, topk_indices=topk_indices)

    def receive(self, into: Boundary, source: Boundary, live: BoundaryAxes) -> None:
        rt.receive_rows(
            into.hidden_states,
            source.hidden_states,
            (live.tokens, self.dims.hidden),
            "boundary.hidden_states",
        )
        if into.topk_indices is not None:
            rt.receive_rows(
                into.topk_indices,
                source.topk_indices,
                (live.tokens, self.dims.topk),
                "boundary.topk_indices",
            )

    def reset(self, rows: Boundary, live: Tensor, axes: tuple[str, ...]) -> None:
        rt.reset_fill(rows.hidden_states, rt.axis_count(live, axes, "tokens"), 0)
        if rows.topk_indices is not None:
            rt.reset_fill(rows.topk_indices, rt.axis_count(live, axes, "tokens"), -1)

    def check(self, source: Boundary, live: BoundaryAxes) -> Boundary:
        hidden_states = rt.check_received(
            source.hidden_states,
            (live.tokens, self.dims.hidden),
            self.dtype,
            self.device,
            "boundary.hidden_states",
        )
        topk_indices: Tensor | None = None
        if "topk_indices" in self.keys():
            topk_indices = rt.check_received(
                source.topk_indices,
                (live.tokens, self.dims.topk),
                torch.int32,
                self.device,
                "boundary.topk_indices",
            )
        return Boundary(hidden_states=hidden_states, topk_indices=topk_indices)
