"""What one runner takes from the rank before and hands to the rank after, as bytes in blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ppcgc.runtime.arena import first_rows
from ppcgc.runtime.errors import BuildError
from ppcgc.runtime.pipeline.layout import (
    BlockArena,
    Extents,
    Layout,
    block_bytes,
    layout_of,
    wire_bytes,
)
from ppcgc.runtime.place import Place
from ppcgc.runtime.stage import StageRunner
from ppcgc.runtime.stage_kinds import LaterStage
from ppcgc.runtime.views import Boundary

AnyRunner = StageRunner[Any, Any, Any, Any, Any, Any]
Buffers = Callable[[Any, Any, Any], object]


class Side:
    """One side of a runner: the layout of every bucket, and what a step's rows are in it."""

    def __init__(self, prefix: str, buffers: Buffers, runner: AnyRunner) -> None:
        self._prefix = prefix
        self._buffers = buffers
        self._device = runner.device
        self._full = runner.full
        self.layouts: dict[Extents, Layout] = {
            padded: layout_of(buffers, padded) for padded in runner.buckets
        }
        self._sizes: dict[tuple[Extents, Extents], int] = {}

    @property
    def nbytes(self) -> int:
        """Bytes of a block that every bucket fits into."""
        return max(map(block_bytes, self.layouts.values()))

    def wire_bytes(self, padded: Extents, live: Extents) -> int:
        """Bytes of a bucket's block that travel for so many live rows."""
        size = self._sizes.get((padded, live))
        if size is None:
            if len(self._sizes) > 65_536:
                self._sizes.clear()
            size = wire_bytes(self.layouts[padded], layout_of(self._buffers, live))
            self._sizes[padded, live] = size
        return size

    def fresh(self, live: Extents) -> tuple[Tensor, Any]:
        """A new block for an eager step, and its keys, live rows only."""
        layout = layout_of(self._buffers, live)
        block = torch.empty(block_bytes(layout), dtype=torch.uint8, device=self._device)
        arena = BlockArena(self._device, {self._prefix: block}, {self._prefix: {live: layout}})
        arena.lay_out(live)
        return block, self._buffers(arena, live, live)

    def live_views(self, slots: Any, live: Extents) -> Any:
        """The live rows of a bucket's own slots."""
        views = {}
        for entry in layout_of(self._buffers, live):
            views[entry.key] = first_rows(slots[entry.key], entry.shape)
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

    Raises BuildError for a runner that has its buffers already.
    """

    def __init__(self, runner: AnyRunner) -> None:
        if runner.table:
            raise BuildError(
                f"{runner} has its buffers already: open the pipeline before any capture, and "
                "build new runners for a second one"
            )
        self.runner = runner
        self.kind: Callable[..., Any] = type(next(iter(runner.buckets)))
        self.takes = (
            Side("received", runner.incoming.buffers, runner)
            if isinstance(runner, LaterStage)
            else None
        )
        hands_on = runner.place in (Place.FIRST, Place.MIDDLE)
        self.hands = Side("handed", runner.outputs.buffers, runner) if hands_on else None

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
