"""Stages by kind: those that begin a pipeline, and those that take a boundary."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from types import FunctionType
from typing import Any, ClassVar, TypeVar, get_type_hints

import torch
from torch import Tensor

from ppcgc.runtime.bucket import Bucket
from ppcgc.runtime.carried import Incoming, tensors_of
from ppcgc.runtime.errors import SourceError, StaleStepError
from ppcgc.runtime.inputs import BatchT, DimsT, ExtentsT, SlotsT
from ppcgc.runtime.stage import StageRunner, Step
from ppcgc.runtime.views import Boundary, cut_of

_LOOK_AGAIN = object()  # is no boundary

InT = TypeVar("InT")
OutT = TypeVar("OutT")


class EntryStage(StageRunner[ExtentsT, BatchT, DimsT, SlotsT, None, OutT]):
    """A first or only stage: everything it needs is in the batch, and its boundary is None."""

    def run(self, batch: BatchT, boundary: None = None) -> OutT:
        """One step. Raises SourceError kinds before anything runs; the runner stays usable."""
        return self._run(batch, boundary)

    def begin(self, batch: BatchT, boundary: None = None) -> Step[ExtentsT, SlotsT, None]:
        """Choose and load; slots with `source: caller` may be written until ``finish``."""
        return self._begin(batch, boundary)

    def eager(self, batch: BatchT, boundary: None = None) -> OutT:
        """The same step without a graph, at live size."""
        return self.finish(self._begin_eager(batch, boundary))

    def begin_eager(self, batch: BatchT, boundary: None = None) -> Step[ExtentsT, SlotsT, None]:
        """As ``begin``, for a step without a graph whatever its counts."""
        return self._begin_eager(batch, boundary)

    def boundary_tensors(self, bucket: Bucket[ExtentsT, SlotsT, None, OutT]) -> list[Tensor]:
        return []

    def boundary_sizes(self, full: ExtentsT) -> dict[str, int]:
        return {}

    def boundary_buffers(self, rows: ExtentsT, full: ExtentsT) -> None:
        return None

    def receive(
        self, bucket: Bucket[ExtentsT, SlotsT, None, OutT], source: None, live: ExtentsT
    ) -> None:
        self.check_boundary(source, live)

    def in_place(self, bucket: Bucket[ExtentsT, SlotsT, None, OutT], source: None) -> None:
        return None

    def reset_boundary(self, bucket: Bucket[ExtentsT, SlotsT, None, OutT]) -> None:
        return None

    def check_boundary(self, source: None, live: ExtentsT) -> None:
        """There is none. Raises SourceError."""
        if source is not None:
            raise SourceError(
                f"{type(self).__name__} is the {self.place.value} stage and takes the batch alone, "
                f"as in run(batch); it was given a {type(source).__name__} as boundary too"
            )

    def take_over(self, bucket: Bucket[ExtentsT, SlotsT, None, OutT], source: None) -> None:
        return None

    def check_written(self, source: None) -> None:
        return None

    def boundary_with(self, key: str) -> None:
        return None


class LaterStage(StageRunner[ExtentsT, BatchT, DimsT, SlotsT, InT, OutT]):
    """A middle or last stage: takes the boundary of the stage before it."""

    incoming_type: ClassVar[type[Incoming[Any, Any]]]

    def __init_subclass__(cls) -> None:
        """Python's own error then names the class: ``PrefillLast.run() missing ... 'boundary'``."""
        super().__init_subclass__()
        for name in ("run", "begin", "eager", "begin_eager"):
            if name not in cls.__dict__:
                setattr(cls, name, _named(getattr(cls, name), f"{cls.__qualname__}.{name}"))

    def prepare(self) -> None:
        super().prepare()
        self.incoming: Incoming[ExtentsT, InT] = self.incoming_type(
            self.dims, self.dtype, self.device, self.layers
        )
        self.incoming.check_parts(f"{self.family}.{self.runner}", self.buckets)
        crossing = {info.name for info in self.incoming.table(next(iter(self.buckets)))}
        keys = [field.name for field in fields(self._boundary_kind())]
        self._absent = tuple(key for key in keys if key not in crossing)

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
        self._check_cut(source)
        if self.is_fed or self.shares_boundary:
            self.take_over(bucket, source)
        self.incoming.receive(bucket.boundary, source, live, bucket.host)

    def in_place(self, bucket: Bucket[ExtentsT, SlotsT, InT, OutT], source: InT) -> object:
        """``source``, where a later step with the same object need not look at its rows again.

        See Note [a boundary that is known] in ``bucket``.
        """
        slots = bucket.boundary
        if type(source) is not type(slots) or not isinstance(source, Boundary):
            return _LOOK_AGAIN  # a class of the caller's own may change under our eyes
        rows = list(_same_rows(slots, source))
        return source if rows and all(rows) else _LOOK_AGAIN

    def take_over(self, bucket: Bucket[ExtentsT, SlotsT, InT, OutT], source: InT) -> None:
        """See Note [whose rows a slot holds] in ``sharing``."""
        self.check_written(source)
        self.turn.written_for = self if _lies_in(bucket.boundary, source) else None

    def check_written(self, source: InT) -> None:
        """See Note [whose rows a slot holds] in ``sharing``."""
        if not self.is_fed or self.turn.written_for is self:
            return
        if any(_touches(bucket.boundary, source) for bucket in self._table.values()):
            raise StaleStepError(
                f"{type(self).__name__}: the rows of this boundary lay in slots that were written "
                "since, by another step, another runner that shares them, or a capture; run the "
                "stages of a step one behind the other, or keep a copy of the boundary"
            )

    def reset_boundary(self, bucket: Bucket[ExtentsT, SlotsT, InT, OutT]) -> None:
        self.incoming.past_live.begin()
        self.incoming.reset(bucket.boundary, bucket.live_counts, self.columns)

    def check_boundary(self, source: InT, live: ExtentsT) -> InT:
        self._check_cut(source)
        return self.incoming.check(source, live)

    def _check_cut(self, source: InT) -> None:
        """See Note [where a boundary was cut] in ``views``."""
        cut = cut_of(source, self.family)
        if cut is not None and cut != self.layers.start:
            raise SourceError(
                f"{type(self).__name__} of layers {self.layers} was given the boundary in front of "
                f"layer {cut}: a stage was left out or run twice; give each stage what the one "
                "before it returned"
            )
        for name in self._absent:
            if getattr(source, name, None) is not None:
                raise SourceError(
                    f"{type(self).__name__} of layers {self.layers}: boundary.{name} does not "
                    f"cross the cut in front of layer {self.layers.start}; leave it out, or give "
                    "what the stage before returned"
                )

    def _boundary_kind(self) -> Any:
        """The generated class of the boundary."""
        return get_type_hints(type(self.incoming).held)["return"]

    def boundary_with(self, key: str) -> str | None:
        kind = self._boundary_kind()
        keys = [field.name for field in fields(kind)]
        _, _, module = kind.__module__.rpartition(".")
        home = self.family if module == "boundary" else f"{self.family}.{module}"
        made = f"{home}.{kind.__name__}({', '.join(f'{name}=...' for name in keys)})"
        return made if key in keys else None


def _named(function: FunctionType, name: str) -> FunctionType:
    """The same function by another name."""
    code, scope = function.__code__, function.__globals__
    same = FunctionType(code, scope, None, function.__defaults__, function.__closure__)
    same.__doc__, same.__annotations__ = function.__doc__, function.__annotations__
    same.__kwdefaults__, same.__module__ = function.__kwdefaults__, function.__module__
    same.__qualname__ = name
    return same


def _lies_in(slots: object, source: object) -> bool:
    """Whether all rows of a boundary are those of the slots themselves."""
    return isinstance(source, Boundary) and all(_same_rows(slots, source))


def _touches(slots: object, source: object) -> bool:
    """Whether any rows of a boundary are."""
    return isinstance(source, Boundary) and any(_same_rows(slots, source))


def _same_rows(slots: object, source: Boundary) -> Iterator[bool]:
    """For each key that has rows, whether they are the slot's. What is no rows is not looked at."""
    for name in source:
        rows = getattr(source, name)
        if isinstance(rows, Tensor) and rows.layout is torch.strided and rows.numel():
            yield rows.data_ptr() == getattr(slots, name).data_ptr()
