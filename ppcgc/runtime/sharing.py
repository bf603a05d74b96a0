"""Runners of one stage that never work at the same time, in the same memory.

Note [what is shared]
    Only what every step writes before it reads: slots that a load fills whole, received keys
    (their live rows are taken, the others reset inside the graph), and outputs. Whatever keeps a
    value from one step to the next has memory of its own: `padding: keep`, `mutable`, `const`,
    slots that a graph, the caller or a hook writes, rings, host twins, workspaces of hooks.

Note [inputs and outputs stay apart]
    A step may be loaded from what another runner's last step gave. So inputs share memory with
    inputs and outputs with outputs, and no load overwrites what it copies from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch import Tensor

from ppcgc.runtime.arena import aligned
from ppcgc.runtime.errors import BuildError

if TYPE_CHECKING:
    from ppcgc.runtime.stage_captured import CapturedStage

    AnyRunner: TypeAlias = CapturedStage[Any, Any, Any, Any, Any, Any]

HOST_BLOCK = "host block"  # its device side, among the inputs by name


class Turn:
    """What some memory holds; runners that share it have one turn.

    Note [whose rows a slot holds]
        A boundary that a stage feeds into the next one lies in that one's slots until something
        else is loaded there: a boundary from elsewhere, a runner that shares them, the batch of a
        capture. It is the same object all the while, and its rows are those of another step then.
        So the memory knows for which runner it was fed last, until it is written otherwise.
    """

    __slots__ = ("begun", "written_for")

    def __init__(self) -> None:
        self.begun: object = None  # the one step that is begun in it
        self.written_for: object = None  # the runner whose slots hold what it was fed


class Shared:
    """Runners of one stage in the same memory, a block for inputs and one for outputs."""

    def __init__(self) -> None:
        self.runners: list[AnyRunner] = []
        self.turn = Turn()
        self.blocks: list[Tensor] = []  # for inputs, for outputs

    def takes(self, runner: AnyRunner) -> bool:
        """Whether a runner is of this stage and never works while one of these does."""
        return all(
            _stage_of(runner) == _stage_of(other)
            and runner.runner != other.runner
            and runner.runner not in other.overlaps
            and other.runner not in runner.overlaps
            for other in self.runners
        )

    def lend(self) -> None:
        """Make the blocks, and let each runner's buffers lie in them from their begin."""
        wanted = [runner.rewritten() for runner in self.runners]
        for side in zip(*wanted, strict=True):  # all inputs, then all outputs
            nbytes = max(map(_end_of, side))
            block = torch.zeros(nbytes, dtype=torch.uint8, device=self.runners[0].device)
            self.blocks.append(block)
            for runner, sizes in zip(self.runners, side, strict=True):
                runner.lend(_laid_out(block, sizes))
        for runner in self.runners:
            runner.shared, runner.turn = self, self.turn

    @property
    def nbytes(self) -> int:
        """Bytes of the memory, however many runners lie in it."""
        return sum(block.nbytes for block in self.blocks)

    def others(self, runner: AnyRunner) -> tuple[str, ...]:
        """The names of the runners that one shares its memory with."""
        return tuple(other.runner for other in self.runners if other is not runner)


def share(runners: Sequence[AnyRunner]) -> None:
    """Put runners of one stage that do not overlap into the same memory, before ``allocate``.

    Each goes to the first of its stage with which it may share all; `overlaps` in the spec says
    which may not. Raises BuildError for a runner that has buffers of its own already.
    """
    groups: list[Shared] = []
    for runner in runners:
        if runner.shared is not None:
            continue  # addresses are frozen: as it was shared first, so it stays
        if runner.table:
            raise BuildError(
                f"{runner} has its buffers already: share at the first capture, or build it anew"
            )
        group = next((group for group in groups if group.takes(runner)), None)
        if group is None:
            groups.append(group := Shared())
        group.runners.append(runner)
    for group in groups:
        if len(group.runners) > 1:
            with torch.inference_mode(False):  # see Note [buffers outlive inference mode]
                group.lend()


def _stage_of(runner: AnyRunner) -> tuple[object, ...]:
    """What runners must have in common: one backend orders their steps over streams."""
    return (runner.fingerprint, runner.layers, runner.place, id(runner.backend))


def _end_of(sizes: Mapping[str, int]) -> int:
    return sum(map(aligned, sizes.values()))


def _laid_out(block: Tensor, sizes: Mapping[str, int]) -> dict[str, Tensor]:
    """The bytes of each buffer, one behind the other."""
    found: dict[str, Tensor] = {}
    end = 0
    for name, nbytes in sizes.items():
        found[name] = block[end : end + nbytes]
        end += aligned(nbytes)
    return found
