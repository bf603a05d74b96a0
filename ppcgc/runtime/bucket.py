"""One padded size of a stage: its buffers, its graph, and what its steps have been.

Note [a cut is made once]
    An output that is a view of its buffer is the same view whenever the live rows are the same,
    and making views is a good part of a step. So the cut of each live size is kept and given out
    again. What is copied for the caller (`keep: clone`, `keep: ring`) is cut at each step.

Note [a boundary that is known]
    A stage on the same device gives out one boundary for each live size, whose rows are the slots
    of the next stage. It is frozen, so what was checked once stays true, and a step with the same
    object need not look at its rows. That holds for the object, not for its tensors: one that is
    pointed elsewhere by ``.data`` or turned in place by ``t_`` is not seen. A caller with another
    object gets that one known in its place; to find out costs as much as it saves, so one that
    makes a boundary for each step is asked ever more rarely.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from torch import Tensor

from ppcgc.runtime.backends.base import Graph
from ppcgc.runtime.choice import Choice, StepRecord
from ppcgc.runtime.host_block import BucketHost

ExtentsT = TypeVar("ExtentsT", bound=tuple[int, ...])
SlotsT = TypeVar("SlotsT")
InT = TypeVar("InT")
OutT = TypeVar("OutT")

MOST_PATIENCE = 64
NOT_SEEN = object()  # is no boundary, None is one: of a stage that takes none


@dataclass(slots=True, eq=False, repr=False)
class Seen(Generic[ExtentsT, OutT]):
    """Replays of a bucket with the same live rows."""

    record: StepRecord[ExtentsT]
    outputs: OutT | None = None  # cut to the live rows, where a cut can be given out again
    replays: int = 0
    in_place: object = NOT_SEEN  # a boundary whose rows were found in the bucket's own slots
    known_at: int = 0  # replays before that
    others: int = 0  # boundaries since then that were not it
    patience: int = 1  # how many of them it takes until another is looked for

    def takes_another(self) -> bool:
        """Whether the step's boundary, which is not the known one, may take its place.

        See Note [a boundary that is known].
        """
        self.others += 1
        if self.others < self.patience:
            return False
        met = self.replays - self.known_at - self.others
        self.patience = 1 if met > self.others else min(2 * self.patience, MOST_PATIENCE)
        self.others, self.known_at = 0, self.replays
        return True


@dataclass(slots=True, eq=False, repr=False)
class Bucket(Generic[ExtentsT, SlotsT, InT, OutT]):
    """One padded size of a stage: its views, and its graph once captured."""

    padded: ExtentsT
    live_at_capture: ExtentsT
    host: BucketHost
    live_counts: Tensor
    slots: SlotsT
    boundary: InT
    outputs: OutT
    axes: int  # how many columns of padded are axes; scalars follow them
    made: dict[str, object] = field(default_factory=dict)  # what each hook's key returned
    graph: Graph | None = None
    seen: dict[ExtentsT, Seen[ExtentsT, OutT]] = field(default_factory=dict)
    earlier_replays: int = 0  # of what is not in seen any more
    earlier_padding: tuple[int, ...] = ()

    def seen_with(self, live: ExtentsT, choice: Choice[ExtentsT]) -> Seen[ExtentsT, OutT]:
        """What is known of replays with these live rows."""
        seen = self.seen.get(live)
        if seen is None:
            seen = self.seen[live] = Seen(StepRecord(live, choice))
        return seen

    def count_from(self, replays: int, padding_rows: tuple[int, ...]) -> None:
        """Forget what was seen, and count on from these totals."""
        self.seen.clear()
        self.earlier_replays, self.earlier_padding = replays, padding_rows

    @property
    def replays(self) -> int:
        return self.earlier_replays + sum(seen.replays for seen in self.seen.values())

    @property
    def padding_rows(self) -> tuple[int, ...]:
        """For each axis, rows that all replays computed for nobody."""
        rows = list(self.earlier_padding or (0,) * self.axes)
        for live, seen in self.seen.items():
            for axis in range(self.axes):
                rows[axis] += seen.replays * (self.padded[axis] - live[axis])
        return tuple(rows)
