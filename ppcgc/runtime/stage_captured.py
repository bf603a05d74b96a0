"""The life of a captured stage beside its steps: reports, guards, drops, closing."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, TypeVar

from ppcgc.runtime.errors import AddressError, BuildError, NotCapturedError
from ppcgc.runtime.inputs import BatchT, DimsT, ExtentsT, SlotsT
from ppcgc.runtime.stage_build import BuiltStage
from ppcgc.runtime.stale_views import Epoch, guard_outputs

if TYPE_CHECKING:  # see Note [what an import does not need] in ``ppcgc.runtime``
    from ppcgc.runtime.addresses import Move, Places
    from ppcgc.runtime.crossover import Crossover
    from ppcgc.runtime.report import Report

InT = TypeVar("InT")
OutT = TypeVar("OutT")


class CapturedStage(BuiltStage[ExtentsT, BatchT, DimsT, SlotsT, InT, OutT]):
    """A built stage that can be captured and closed, before any step."""

    def prepare(self) -> None:
        super().prepare()
        self._captured = False
        self._places: Places = {}
        self._epoch: Epoch | None = None

    @abstractmethod
    def forget_choices(self) -> None:
        """Choose anew for every size; counters keep their totals."""

    # ------------------------------------------------------------ capture

    def mark_captured(self) -> None:
        """Called by ``capture`` when every bucket has its graph."""
        from ppcgc.runtime.addresses import places_of

        self._captured = True
        self._places = places_of(self)

    @property
    def places_at_capture(self) -> Places:
        """Where the graphs read, by name, as it was when they were captured."""
        return self._places

    @property
    def captured(self) -> bool:
        """Whether every bucket has its graph."""
        return self._captured

    def check_addresses(self, *, policy: str = "error") -> tuple[Move, ...]:
        """What the graphs read and is not where it was at capture; cheap, for after a reload.

        Parameters, buffers, declared state, slots, workspaces and outputs, by pointer, shape,
        stride and dtype. See Note [a reload must write in place] in ``addresses``. With
        ``policy="error"`` raises AddressError for any move; ``"recapture"`` captures this runner
        again instead and returns the moves.
        """
        if policy not in ("error", "recapture"):
            raise BuildError(f"policy {policy!r}: one of error, recapture")
        if not self._captured:
            raise NotCapturedError(f"{type(self).__name__} has no graphs whose addresses to check")
        from ppcgc.runtime.addresses import moves, places_of

        moved = moves(self._places, places_of(self))
        if moved and policy == "error":
            lines = "\n  ".join(map(str, moved[:8]))
            raise AddressError(
                f"{self}: {len(moved)} tensors moved since capture:\n  {lines}\n"
                "Copy into the old tensors in place, or capture again"
            )
        if moved:
            from ppcgc.runtime.capturing import capture  # it imports this module

            capture([self])
        return moved

    def drop(self, padded: ExtentsT, why: str) -> None:
        """Do without the graph of a bucket: its steps run eagerly, and the report says why."""
        bucket = self._table[padded]
        if bucket.graph is not None:
            bucket.graph.close()
            bucket.graph = None
        self.dropped[padded] = why
        self.forget_choices()

    def use_calibration(self, crossover: Crossover | None) -> None:
        """Take steps that ``crossover`` measured as slower eagerly; None takes that back.

        Raises BuildError for the measurement of another runner.
        """
        from ppcgc.runtime.crossover import Crossover

        own = f"{self.family}.{self.runner}"
        if not (crossover is None or isinstance(crossover, Crossover)):
            raise BuildError(
                f"{self}: use_calibration takes what `calibrate` returned for it, or None, "
                f"not a {type(crossover).__name__}"
            )
        if crossover is not None and crossover.runner != own:
            raise BuildError(f"{self}: the calibration is of {crossover.runner}, not of {own}")
        self.crossover = crossover
        self.forget_choices()

    def close(self) -> None:
        """Close the graphs; the runner can run eagerly still. Idempotent."""
        for bucket in self._table.values():
            if bucket.graph is not None:
                bucket.graph.close()
                bucket.graph = None
        self._captured = False
        self.forget_choices()

    # ------------------------------------------------------------ to look at

    def report(self) -> Report:
        """What the runner holds and did: buckets, replays, eager steps, padding rows, bytes."""
        from ppcgc.runtime.report import report_of

        return report_of(self)

    def _guarded(self, outputs: OutT, epoch: Epoch) -> OutT:
        epoch.now += 1
        shared = frozenset(
            buffer.untyped_storage().data_ptr()
            for prefix in ("output.", "handed.")
            for _, buffer in self.arena.named(prefix)
        )
        guarded: OutT = guard_outputs(outputs, epoch, shared)
        return guarded

    def guard_views(self, on: bool = True) -> None:
        """For debugging: output views raise StaleOutputError once a later run overwrote them.

        Runs of runners that share the memory count as well, and their views are guarded too.
        """
        together = (self,) if self.shared is None else tuple(self.shared.runners)
        epoch = Epoch(", ".join(map(str, together))) if on else None
        for runner in together:
            runner._epoch = epoch
