"""Sizes and ranks of the groups that a stage is spread over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from ppcgc.runtime.counts import live_count
from ppcgc.runtime.errors import BuildError, SourceError


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """This process' place in a group. Raises BuildError for a rank outside it."""

    size: int = 1
    rank: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.size:
            raise BuildError(f"rank {self.rank} of a group of {self.size}: ranks run from 0")


ALONE = Ranks()


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
