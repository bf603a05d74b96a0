"""What a runner reads from a batch beside its slots: live counts, scalars, conditions, groups."""

from __future__ import annotations

from dataclasses import dataclass

from ppcgc.emit.batch_protocol import PathTree
from ppcgc.emit.source import Code
from ppcgc.ir import (
    BatchCount,
    BatchSource,
    EqualsBuckets,
    Family,
    Scalar,
    SourceRows,
)
from ppcgc.plan import RunnerPlan, counts


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRead:
    """One attribute path that ``extents`` or a condition reads, with its type for the Protocol."""

    path: tuple[str, ...]
    type: str
    note: str
    optional: bool = False
    column: str | None = None  # the axis or scalar whose number it is


def reads_own_count(planned: RunnerPlan, axis: str) -> bool:
    """Is the batch's own count of an axis read: not where it follows another and nobody asks."""
    follows = any(isinstance(r, EqualsBuckets) and r.axis == axis for r in planned.runner.buckets)
    return not follows or planned.runner.uneven is not None


def count_reads(family: Family, planned: RunnerPlan) -> list[BatchRead]:
    """What ``extents`` reads."""
    reads = []
    for axis in planned.axes:
        live, group = family.axis(axis).live, family.axis(axis).group
        note = f"live {axis}"
        if isinstance(live, BatchCount) and reads_own_count(planned, axis):
            reads.append(BatchRead(path=live.path, type="int", note=note, column=axis))
        elif isinstance(live, SourceRows) and reads_own_count(planned, axis):
            path, _ = rows_source(planned, axis)
            reads.append(BatchRead(path=path, type="object", note=note))
        if group is not None:
            note = f"live {axis} of each {group.over} rank"
            reads.append(BatchRead(path=group.path, type="object", note=note))
    return [*reads, *map(_scalar_read, _read_scalars(planned))]


def _read_scalars(planned: RunnerPlan) -> list[Scalar]:
    return [s for s in planned.runner.scalars if isinstance(s.source, BatchCount)]


def _scalar_read(scalar: Scalar) -> BatchRead:
    path = scalar.source.path if isinstance(scalar.source, BatchCount) else ()
    note = f"scalar {scalar.name}"
    return BatchRead(path=path, type="int", note=note, column=scalar.name)


def presence_reads(planned: RunnerPlan) -> list[BatchRead]:
    """Sources whose presence is part of the graph key."""
    found = []
    for scalar in planned.runner.scalars:
        if scalar.presence_of is not None:
            path = presence_path(planned, scalar)
            found.append(
                BatchRead(path=path, type="object", note=f"decides {scalar.name}", optional=True)
            )
    return found


def presence_path(planned: RunnerPlan, scalar: Scalar) -> tuple[str, ...]:
    """The batch path of the slot that a presence scalar speaks of."""
    slot = next(s for s in planned.runner.slots if s.qualified == scalar.presence_of)
    if not isinstance(slot.source, BatchSource):
        raise TypeError(f"slot {slot.qualified} cannot be absent")
    return slot.source.path


def condition_reads(planned: RunnerPlan) -> list[BatchRead]:
    """What ``eager_when`` reads."""
    types = {"present": "object", "is_true": "bool", "is_false": "bool", "above": "int"}
    return [
        BatchRead(
            path=when.path,
            type=types[when.kind],
            note=f"eager: {when.reason}",
            optional=when.kind == "present",
        )
        for when in planned.runner.eager_when
        if when.path
    ]


def add_reads(tree: PathTree, reads: list[BatchRead]) -> None:
    """Put reads into a Protocol's tree; a slot's own type has the say where both read a path."""
    for read in reads:
        if not tree.has(read.path):
            tree.add(read.path, Code(read.type), Code(f"# {read.note}"), optional=read.optional)


def rows_source(planned: RunnerPlan, axis: str) -> tuple[tuple[str, ...], int]:
    """The path and dimension of the source whose rows are an axis' live count.

    A rule refused specs without one.
    """
    found = counts.rows_source(planned.runner, axis)
    if found is None:
        raise ValueError(f"axis {axis} has no source to count")
    source = found[0].source
    if not isinstance(source, BatchSource):
        raise TypeError(f"axis {axis} is counted by {source}")
    return source.path, found[1]
