"""Sizes and ranks of the groups that a stage is spread over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import torch.distributed as dist
from torch import Tensor

from ppcgc.runtime.counts import live_count
from ppcgc.runtime.errors import BuildError, SourceError


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """This process' place in a group. Raises BuildError for a rank outside it.

    ``group`` is the process group that the model's own collectives go over, where it is known:
    a pipeline then bounds their waiting as it does its own.
    """

    size: int = 1
    rank: int = 0
    group: Any = field(default=None, repr=False, compare=False)  # dist.ProcessGroup

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.size:
            raise BuildError(f"rank {self.rank} of a group of {self.size}: ranks run from 0")

    @classmethod
    def of(cls, group: Any) -> Self:
        """The place in a process group. Raises BuildError for one that this process is not in."""
        rank = dist.get_rank(group)
        if rank < 0:
            raise BuildError(
                f"rank {dist.get_rank()} of the world is not in the group of the ranks "
                f"{dist.get_process_group_ranks(group)}"
            )
        return cls(size=dist.get_world_size(group), rank=rank, group=group)

    def __str__(self) -> str:
        return f"rank {self.rank} of {self.size}"


ALONE = Ranks()


class GroupCounts(NamedTuple):
    """Ranks that choose a bucket together: ``over`` tp or dp, by their rows on ``axis``, which a
    batch lists at ``path``.
    """

    over: str
    axis: str
    path: str


def group_most(counts: object, path: str, ranks: Ranks, own: int) -> int:
    """The largest live count of a group, from a host list of the batch with one entry a rank.

    Every rank then chooses the same bucket. Raises SourceError for a list of another length, or
    one whose own entry differs from the batch's live count.
    """
    if isinstance(counts, Tensor) or not isinstance(counts, Sequence):
        raise SourceError(f"batch.{path} is a {type(counts).__name__}; give a list of integers")
    if len(counts) != ranks.size:
        raise SourceError(f"batch.{path} has {len(counts)} entries, the group {ranks.size} ranks")
    rows = [live_count(count, f"{path}[{rank}]") for rank, count in enumerate(counts)]
    if rows[ranks.rank] != own:
        raise SourceError(
            f"batch.{path}[{ranks.rank}] is {rows[ranks.rank]}, this rank's live count is {own}"
        )
    return max(rows)
