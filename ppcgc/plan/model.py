"""What the compiler decided: buckets, places of slots in memory, kinds of stage, fingerprint."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ppcgc.ir import Family, Limit, Place, Runner, Slot


class Placement(Enum):
    """Where a slot lives.

    ``HOST_BLOCK``: filled on the host, at each bucket's own compact offset, loaded by one copy.
    ``DEVICE``: one address for all buckets.
    """

    HOST_BLOCK = "host block"
    DEVICE = "device"


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketPlan:
    """One graph: padded rows by axis, and the live rows of the batch it is captured with."""

    padded: tuple[int, ...]
    live: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotPlan:
    slot: Slot
    placement: Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class KindPlan:
    """Places of the pipeline whose stages have the very same slots, and so share their code."""

    name: str
    places: tuple[Place, ...]
    slots: tuple[SlotPlan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerPlan:
    """``axes`` are in the order of the runner's ``buckets``; every bucket has them all.

    ``columns`` are the axes and then the scalars: what a bucket's numbers stand for. ``late``:
    only a build knows the buckets, and there are none here. ``limits`` are the spec's, and what
    the slots ask for.
    """

    runner: Runner
    axes: tuple[str, ...]
    columns: tuple[str, ...]
    buckets: tuple[BucketPlan, ...]
    kinds: tuple[KindPlan, ...]
    late: bool
    limits: tuple[Limit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    family: Family
    runners: tuple[RunnerPlan, ...]
    fingerprint: str
