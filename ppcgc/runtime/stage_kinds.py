"""Stages by kind: those that begin a pipeline, and those that take a boundary."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

from torch import Tensor

from ppcgc.runtime.bucket import Bucket
from ppcgc.runtime.carried import Incoming, tensors_of
from ppcgc.runtime.inputs import BatchT, DimsT, ExtentsT, SlotsT
from ppcgc.runtime.stage import StageRunner, Step
from ppcgc.runtime.views import Boundary

_LOOK_AGAIN = object()  # is no boundary

InT = TypeVar("InT")
OutT = TypeVar("OutT")


class EntryStage(StageRunner[ExtentsT, BatchT, DimsT, SlotsT, None, OutT]):
    """A first or only stage: everything it needs is in the batch."""

    def run(self, batch: BatchT) -> OutT:
        """One step. Raises SourceError kinds before anything runs; the runner stays usable."""
        return self._run(batch, None)

    def begin(self, batch: BatchT) -> Step[ExtentsT, SlotsT, None]:
        """Choose and load; slots with `source: caller` may be written until ``finish``."""
        return self._begin(batch, None)

    def eager(self, batch: BatchT) -> OutT:
        """The same step without a graph, at live size."""
        return self.finish(self._begin_eager(batch, None))

    def begin_eager(self, batch: BatchT) -> Step[ExtentsT, SlotsT, None]:
        """As ``begin``, for a step without a graph whatever its counts."""
        return self._begin_eager(batch, None)

    def boundary_tensors(self, bucket: Bucket[ExtentsT, SlotsT, None, OutT]) -> list[Tensor]:
        return []

    def boundary_sizes(self, full: ExtentsT) -> dict[str, int]:
        return {}

    def boundary_buffers(self, rows: ExtentsT, full: ExtentsT) -> None:
        return None

    def receive(
        self, bucket: Bucket[ExtentsT, SlotsT, None, OutT], source: None, live: ExtentsT
    ) -> None:
        return None

    def in_place(self, bucket: Bucket[ExtentsT, SlotsT, None, OutT], source: None) -> None:
        return None

    def reset_boundary(self, bucket: Bucket[ExtentsT, SlotsT, None, OutT]) -> None:
        return None

    def check_boundary(self, source: None, live: ExtentsT) -> None:
        return None


class LaterStage(StageRunner[ExtentsT, BatchT, DimsT, SlotsT, InT, OutT]):
    """A middle or last stage: takes the boundary of the stage before it."""

    incoming_type: ClassVar[type[Incoming[Any, Any]]]

    def prepare(self) -> None:
        super().prepare()
        self.incoming: Incoming[ExtentsT, InT] = self.incoming_type(
            self.dims, self.dtype, self.device, self.layers
        )
        self.incoming.check_parts(f"{self.family}.{self.runner}", self.buckets)

    def run(self, batch: BatchT, boundary: InT) -> OutT:
        """One step. Raises SourceError kinds before anything runs; the runner stays usable."""
        return self._run(batch, boundary)

    def begin(self, batch: BatchT, boundary: InT) -> Step[ExtentsT, SlotsT, InT]:
        """Choose and load; slots with `source: caller` may be written until ``finish``."""
        return self._begin(batch, boundary)

    def eager(self, batch: BatchT, boundary: InT) -> OutT:
        """The same step without a graph, at live size."""
        return self.finish(self._begin_eager(batch, boundary))

    def begin_eager(self, batch: BatchT, boundary: InT) -> Step[ExtentsT, SlotsT, InT]:
        """As ``begin``, for a step without a graph whatever its counts."""
        return self._begin_eager(batch, boundary)

    def boundary_tensors(self, bucket: Bucket[ExtentsT, SlotsT, InT, OutT]) -> list[Tensor]:
        return tensors_of(bucket.boundary)

    def boundary_sizes(self, full: ExtentsT) -> dict[str, int]:
        return self.incoming.rewritten(full)

    def boundary_buffers(self, rows: ExtentsT, full: ExtentsT) -> InT:
        return self.incoming.buffers(self.arena, rows, full)

    def receive(
        self, bucket: Bucket[ExtentsT, SlotsT, InT, OutT], source: InT, live: ExtentsT
    ) -> None:
        self.incoming.receive(bucket.boundary, source, live, bucket.host)

    def in_place(self, bucket: Bucket[ExtentsT, SlotsT, InT, OutT], source: InT) -> object:
        """``source``, where a later step with the same object need not look at its rows again.

        Note [a boundary that is known]
            A stage on the same device gives out one boundary for each live size, whose rows are
            the slots of the next stage. It is frozen, so what was checked once stays true.
        """
        lies_here = isinstance(source, Boundary) and all(
            tensor is None or tensor.data_ptr() == getattr(bucket.boundary, name).data_ptr()
            for name, tensor in ((name, getattr(source, name)) for name in source)
        )
        return source if lies_here else _LOOK_AGAIN

    def reset_boundary(self, bucket: Bucket[ExtentsT, SlotsT, InT, OutT]) -> None:
        self.incoming.reset(bucket.boundary, bucket.live_counts, self.columns)

    def check_boundary(self, source: InT, live: ExtentsT) -> InT:
        return self.incoming.check(source, live)
