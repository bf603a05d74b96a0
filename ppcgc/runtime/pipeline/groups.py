"""Process groups of a pipeline: one for headers, one for each directed edge."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias

import torch
import torch.distributed as dist

from ppcgc.runtime.errors import BuildError, PeerError

Group: TypeAlias = Any  # dist.ProcessGroup; new_group is typed to give a marker to non-members


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """One end of a hand-off: the group of the two, the other's number in the world and the stage.

    ``captured`` is a group of its own for what is captured: the order of messages outside of
    graphs must not depend on when a graph replays.
    """

    group: Group
    captured: Group | None
    peer: int
    stage: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One pipeline among the ranks of the world: their numbers in the order of the stages."""

    ranks: tuple[int, ...]
    number: int
    stage: int

    @property
    def size(self) -> int:
        return len(self.ranks)


def own_lane(lanes: Sequence[Sequence[int]] | None) -> Lane:
    """The lane that this process is in; one lane of all ranks when none is given.

    Raises BuildError without a process group, or for lanes that do not have each rank once.
    """
    if not dist.is_initialized():
        raise BuildError(
            "a pipeline needs torch.distributed: start the program with torchrun and call "
            "torch.distributed.init_process_group first"
        )
    world = list(range(dist.get_world_size()))
    given = [tuple(lane) for lane in lanes] if lanes is not None else [tuple(world)]
    if sorted(rank for lane in given for rank in lane) != world:
        raise BuildError(f"lanes {given} do not have each of the {len(world)} ranks once")
    me = dist.get_rank()
    for number, lane in enumerate(given):
        if me in lane:
            return Lane(ranks=lane, number=number, stage=lane.index(me))
    raise BuildError(f"rank {me} is in none of the lanes {given}")


@dataclass(slots=True, kw_only=True)
class Groups:
    """What this rank uses of the groups. ``close`` is idempotent."""

    control: Group
    incoming: Edge | None
    outgoing: Edge | None

    def made(self) -> list[Group]:
        groups = [self.control]
        for edge in (self.incoming, self.outgoing):
            groups += [] if edge is None else [edge.group, edge.captured]
        return [group for group in groups if group is not None]

    def aborts(self) -> list[Callable[[], None]]:
        """What ends the messages that NCCL has on the GPU, which else would wait for ever."""
        return [group.abort for group in self.made() if dist.get_backend(group) == "nccl"]

    def close(self) -> None:
        """Drop the groups: see Note [a failure cascades] in ``faults``."""
        made = self.made()
        self.control = self.incoming = self.outgoing = None
        for group in made:
            if dist.is_initialized():
                dist.destroy_process_group(group)


def open_groups(
    lanes: Sequence[Sequence[int]], own: Lane, device: torch.device, timeout: float, captured: bool
) -> Groups:
    """Make the groups of every lane, in one order on all ranks of the world; keep our own.

    Raises PeerError when a rank does not come, or is gone.
    """
    backend = "nccl" if device.type == "cuda" else "gloo"
    limit = timedelta(seconds=timeout)
    mine = Groups(control=None, incoming=None, outgoing=None)
    for lane in lanes:
        control = _new(list(lane), "gloo", limit)
        ours = tuple(lane) == own.ranks
        if ours:
            mine.control = control
        for at in range(len(lane) - 1):
            pair = [lane[at], lane[at + 1]]
            group = _new(pair, backend, limit)
            inside = _new(pair, backend, limit) if captured else None
            if ours and own.stage == at:
                mine.outgoing = Edge(group=group, captured=inside, peer=pair[1], stage=at + 1)
            if ours and own.stage == at + 1:
                mine.incoming = Edge(group=group, captured=inside, peer=pair[0], stage=at)
    return mine


def _new(ranks: list[int], backend: str, limit: timedelta) -> Group:
    if backend == "nccl":
        limit = max(10 * limit, timedelta(minutes=10))
    try:
        with nccl_leaves_errors_to_us():
            return dist.new_group(ranks, backend=backend, timeout=limit)
    except RuntimeError as problem:
        raise PeerError(
            f"no process group of the ranks {ranks} of the world ({problem}): one of the world's "
            "ranks is gone, or makes other groups"
        ) from problem


@contextmanager
def nccl_leaves_errors_to_us() -> Iterator[None]:
    """See Note [NCCL's own watchdog ends the process] in ``watch``; read when a group is made."""
    name = "TORCH_NCCL_ASYNC_ERROR_HANDLING"
    before = os.environ.get(name)
    os.environ[name] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
