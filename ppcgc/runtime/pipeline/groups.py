"""Process groups of a pipeline: one for headers, one for each directed edge."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from ppcgc.runtime.errors import BuildError
from ppcgc.runtime.pipeline.faults import Faults, reason_of

if TYPE_CHECKING:
    from ppcgc.runtime.pipeline.team import Team

Group: TypeAlias = Any  # dist.ProcessGroup; new_group is typed to give a marker to non-members


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """One end of a hand-off: the group of the two, and the other's number in the world.

    ``captured`` is a group of its own for what is captured: the order of messages outside of
    graphs must not depend on when a graph replays.
    """

    group: Group
    captured: Group | None
    peer: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One pipeline among the ranks of the world: their numbers in the order of the stages."""

    ranks: tuple[int, ...]
    number: int
    stage: int

    @property
    def size(self) -> int:
        return len(self.ranks)


def aborts(groups: Sequence[Group]) -> list[Callable[[], None]]:
    """What ends the calls that NCCL has on the GPU, of those groups that are NCCL's."""
    return [group.abort for group in groups if dist.get_backend(group) == "nccl"]


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

    control: Group = None  # of all ranks of the team
    incoming: Edge | None = None
    outgoing: Edge | None = None
    joining: Group = None  # of the ranks of tp of this stage, for parts that travel apart
    firsts: Group = None  # of the ranks that choose, where they choose together

    def made(self) -> list[Group]:
        groups = [self.control, self.joining, self.firsts]
        for edge in (self.incoming, self.outgoing):
            groups += [] if edge is None else [edge.group, edge.captured]
        return [group for group in groups if group is not None]

    def aborts(self) -> list[Callable[[], None]]:
        """What ends the messages that NCCL has on the GPU, which else would wait for ever."""
        return aborts(self.made())

    def close(self) -> None:
        """Drop the groups: see Note [a failure cascades] in ``faults``."""
        made = self.made()
        self.control = self.incoming = self.outgoing = self.joining = self.firsts = None
        for group in made:
            if dist.is_initialized():
                dist.destroy_process_group(group)


def open_groups(
    mine: Groups,
    teams: Sequence[Team],
    device: torch.device,
    faults: Faults,
    *,
    captured: bool,
    scattered: bool,
) -> None:
    """Make the groups of every team, in one order on all ranks of the world; ``mine`` keeps ours.

    ``captured`` asks for a second group on each edge, ``scattered`` for one of the ranks of tp of
    each stage. Raises PeerError kinds.
    """
    backend = "nccl" if device.type == "cuda" else "gloo"
    me = dist.get_rank()
    for team in teams:
        control = _new(list(team.ranks), "gloo", faults)
        if me in team.ranks:
            mine.control = control
        for lane in team.lanes:
            for pair in pairwise(lane):
                group = _new(list(pair), backend, faults)
                inside = _new(list(pair), backend, faults) if captured else None
                if pair[0] == me:
                    mine.outgoing = Edge(group=group, captured=inside, peer=pair[1])
                if pair[1] == me:
                    mine.incoming = Edge(group=group, captured=inside, peer=pair[0])
        for ranks in team.of_tp() if scattered else ():
            joining = _new(list(ranks), backend, faults)
            if me in ranks:
                mine.joining = joining
        if len(team.firsts) > 1:
            firsts = _new(list(team.firsts), "gloo", faults)
            if me in team.firsts:
                mine.firsts = firsts


def _new(ranks: list[int], backend: str, faults: Faults) -> Group:
    """A group whose making ends within the timeout; those of NCCL wait longer afterwards."""
    limit = timedelta(seconds=faults.timeout)
    try:
        with nccl_leaves_errors_to_us():
            group = dist.new_group(ranks, backend=backend, timeout=limit)
    except RuntimeError as problem:
        why, me = reason_of(problem), dist.get_rank()
        waited_for = ranks if me in ranks else faults.board.members  # TORCH_DIST_INIT_BARRIER=1
        raise faults.absent(
            [rank for rank in waited_for if rank != me],
            step=-1,
            what=f"the making of a process group of ranks {ranks}",
            late="timeout" in why.lower() or "timed out" in why.lower(),
            why=why,
        ) from problem
    if backend == "nccl" and dist.get_rank() in ranks:
        c10d._set_pg_timeout(max(10 * limit, timedelta(minutes=10)), group)
    return group


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
