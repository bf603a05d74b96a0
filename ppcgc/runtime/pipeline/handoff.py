"""What one runner takes from the rank before and hands to the rank after, as bytes in blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ppcgc.runtime.arena import first_rows, view_bytes
from ppcgc.runtime.carried import Tensors
from ppcgc.runtime.errors import BuildError
from ppcgc.runtime.parallel import ALONE
from ppcgc.runtime.pipeline.layout import (
    BlockArena,
    Extents,
    Layout,
    Wire,
    block_bytes,
    layout_of,
    wire_of,
)
from ppcgc.runtime.place import Place
from ppcgc.runtime.stage import StageRunner
from ppcgc.runtime.stage_kinds import LaterStage
from ppcgc.runtime.views import Boundary

AnyRunner = StageRunner[Any, Any, Any, Any, Any, Any]
AnyTensors = Tensors[Any, Any]


class Side:
    """One side of a runner: the layout of every bucket, and what a step's rows are in it."""

    def __init__(self, carried: AnyTensors, runner: AnyRunner) -> None:
        self._carried = carried
        self._device = runner.device
        tp = getattr(runner.dims, "tp", ALONE)
        self._rank, self._ranks = tp.rank, tp.size
        self.scattered = carried.scattered if self._ranks > 1 else frozenset()
        self.layouts: dict[Extents, Layout] = {
            padded: layout_of(carried.in_bucket(padded), self.scattered)
            for padded in runner.buckets
        }
        self._wires: dict[tuple[Extents, Extents], Wire] = {}

    @property
    def nbytes(self) -> int:
        """Bytes of a block that every bucket fits into."""
        return max(map(self._block_bytes, self.layouts.values()))

    def _block_bytes(self, layout: Layout) -> int:
        return block_bytes(layout, self.scattered, self._ranks)

    def _live(self, live: Extents, padded: Extents | None) -> Layout:
        return layout_of(self._carried.in_step(live, padded), self.scattered)

    def wire(self, padded: Extents, live: Extents) -> Wire:
        """What travels of a bucket's block for so many live rows."""
        wire = self._wires.get((padded, live))
        if wire is None:
            if len(self._wires) > 65_536:
                self._wires.clear()
            wire = self._wire(self.layouts[padded], self._live(live, padded))
            self._wires[padded, live] = wire
        return wire

    def eager_wire(self, live: Extents) -> Wire:
        """What travels of the block of an eager step."""
        layout = self._live(live, None)
        return self._wire(layout, layout)

    def _wire(self, padded: Layout, live: Layout) -> Wire:
        return wire_of(padded, live, self.scattered, self._rank, self._ranks)

    def fresh(self, live: Extents) -> tuple[Tensor, Any]:
        """A new block for an eager step, and its keys, live rows only."""
        layout = self._live(live, None)
        block = torch.empty(self._block_bytes(layout), dtype=torch.uint8, device=self._device)
        keys = {e.key: view_bytes(block, e.offset, e.shape, e.dtype) for e in layout}
        return block, self._carried.held(keys)

    def live_views(self, slots: Any, live: Extents, padded: Extents) -> Any:
        """The live rows of a bucket's own slots."""
        views = {}
        for info in self._carried.in_step(live, padded):
            views[info.name] = first_rows(slots[info.name], info.shape)
        return replace(slots, **views)  # a key that this cut does not have stays None

    def pack(self, boundary: Boundary, live: Extents) -> Tensor:
        """The rows of an eager step, copied into one block."""
        block, keys = self.fresh(live)
        for key in boundary:
            keys[key].copy_(boundary[key])
        return block

    def described(self, name: str) -> dict[str, str]:
        """``prefill 64×16`` -> the keys in words, for comparing with the neighbour's."""
        return {
            f"{name} {'×'.join(map(str, padded))}": ", ".join(map(str, layout))
            for padded, layout in self.layouts.items()
        }


class HandOff:
    """Both sides of a runner; None where its place in the pipeline has none.

    Raises BuildError for a runner that has its buffers already, or that is in a pipeline.
    """

    def __init__(self, runner: AnyRunner) -> None:
        if runner.table:
            raise BuildError(
                f"{runner} has its buffers already: open the pipeline before any capture, and "
                "build new runners for a second one"
            )
        if isinstance(runner.arena, BlockArena):
            raise BuildError(
                f"{runner} is in a pipeline already: close that one, or build new runners for a "
                "second"
            )
        self.runner = runner
        self._arena = runner.arena
        self.kind: Callable[..., Any] = type(next(iter(runner.buckets)))
        self.takes = Side(runner.incoming, runner) if isinstance(runner, LaterStage) else None
        hands_on = runner.place in (Place.FIRST, Place.MIDDLE)
        self.hands = Side(runner.outputs, runner) if hands_on else None
        self.open_slots = tuple(
            info.name for info in runner.inputs.table() if info.source == "caller"
        )

    def place(self, incoming: Tensor | None, outgoing: Tensor | None) -> None:
        """Let the runner's boundary slots and results lie in these blocks, before capture."""
        blocks: dict[str, Tensor] = {}
        layouts: dict[str, Mapping[Extents, Layout]] = {}
        for prefix, side, block in (
            ("received", self.takes, incoming),
            ("handed", self.hands, outgoing),
        ):
            if side is not None and block is not None:
                blocks[prefix], layouts[prefix] = block, side.layouts
        self.runner.arena = BlockArena(self.runner.device, blocks, layouts)

    def release(self) -> None:
        """Close the runner's graphs. One without buffers may go into another pipeline."""
        self.runner.close()
        if not self.runner.table:
            self.runner.arena = self._arena
