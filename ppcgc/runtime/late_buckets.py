"""The bucket table of a runner whose sizes follow from numbers of the build.

Generated code has the table as constants where it can. Where sizes, live counts or limits name a
size of the config, an option or the size of a group of ranks, it is computed here.

Note [no bucket is left out by a guess]
    A bucket exists when some live counts within the limits need it, and is captured with the
    fullest of them. A limit may be any condition, so counts are tried one by one, from the
    fullest down, until one fits or none is left. A runner that needs more than ``MOST_TRIES``
    for all of its buckets is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Generic, TypeVar

from ppcgc.runtime.errors import DimError, LimitError

MOST_TRIES = 500_000  # about a second

ExtentsT = TypeVar("ExtentsT", bound=tuple[int, ...])
Span = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class LateBuckets(Generic[ExtentsT]):
    """What the table of one runner is computed from.

    ``own`` has each size of the axes that follow no other, and each value of the scalars, as
    the least and the most live rows that it serves. ``stated`` are the axes whose live counts a
    batch states; ``following`` those whose sizes follow, with their capacities. ``most`` is the
    greatest number of graphs, ``where`` what messages name.
    """

    where: str
    kind: Callable[..., ExtentsT]
    columns: tuple[str, ...]
    own: Mapping[str, tuple[Span, ...]]
    stated: tuple[str, ...]
    following: Mapping[str, int]
    most: int
    follow_sizes: Callable[[ExtentsT], ExtentsT]  # put in what follows from other columns
    follow_counts: Callable[[ExtentsT], ExtentsT]
    check_limits: Callable[[ExtentsT], None]

    def table(self) -> Mapping[ExtentsT, ExtentsT]:
        """The padded rows of each graph, and the live rows of the batch that captures it.

        Raises DimError for a size that does not fit its axis, for more graphs than are allowed,
        and for limits that no batch meets or that take too long to tell.
        """
        found: dict[ExtentsT, ExtentsT] = {}
        tries = iter(range(MOST_TRIES))
        for spans in product(*self.own.values()):
            served = dict(zip(self.own, spans, strict=True))
            padded = self.follow_sizes(self._extents({n: most for n, (_, most) in served.items()}))
            sizes = dict(zip(self.columns, padded, strict=True))
            self._check(sizes, served)
            served |= {axis: (0, sizes[axis]) for axis in self.following}
            live = self._fullest(served, tries)
            if live is not None:
                found[padded] = live
        if not found:
            raise DimError(f"{self.where}: with these dims no batch meets the limits")
        if len(found) > self.most:
            raise DimError(
                f"{self.where}: {len(found)} graphs with these dims, `max_graphs` is {self.most}"
            )
        return dict(sorted(found.items()))

    def _extents(self, values: Mapping[str, int]) -> ExtentsT:
        return self.kind(*(values.get(column, 0) for column in self.columns))

    def _check(self, sizes: Mapping[str, int], served: Mapping[str, Span]) -> None:
        """Raises DimError for a size that follows and is too large, or no size at all."""
        least = 0 if any(most == 0 for _, most in served.values()) else 1
        for axis, capacity in self.following.items():
            if not least <= sizes[axis] <= capacity:
                bucket = ", ".join(f"{name} {sizes[name]}" for name in served)
                raise DimError(
                    f"{self.where}: with these dims, bucket {bucket} has {sizes[axis]} rows of "
                    f"{axis}; legal are {least} to {capacity}"
                )

    def _fullest(self, served: Mapping[str, Span], tries: Iterator[int]) -> ExtentsT | None:
        """The fullest live counts of a bucket; None where no batch needs it."""
        for stated in self._from_the_fullest(served):
            if next(tries, None) is None:
                raise DimError(
                    f"{self.where}: no legal batch for a bucket after {MOST_TRIES} tries; give "
                    "`generate` the dims with --bind and --set, or use simpler limits"
                )
            live = self.follow_counts(stated)
            counts = dict(zip(self.columns, live, strict=True))
            if all(low <= counts[name] <= high for name, (low, high) in served.items()):
                try:
                    self.check_limits(live)
                except LimitError:
                    continue
                return live
        return None

    def _from_the_fullest(self, served: Mapping[str, Span]) -> Iterator[ExtentsT]:
        """All live counts that a batch may state, and all values of scalars."""
        names = [name for name in served if name in self.stated]
        ranges = [range(served[name][1], served[name][0] - 1, -1) for name in names]
        for counts in product(*ranges):
            yield self._extents(dict(zip(names, counts, strict=True)))


def no_limits(live: object) -> None:
    """The limits of a runner that has none."""
