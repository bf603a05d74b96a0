"""Which declared tensor an address belongs to: slot, parameter, buffer, state, output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from torch import Tensor

from ppcgc.runtime.addresses import model_tensors
from ppcgc.runtime.verification.cases import Case
from ppcgc.runtime.verification.comparing import tensors_of
from ppcgc.runtime.verification.stages import StageUnderTest
from ppcgc.runtime.verification.tracing import reach


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """A range of addresses with a name. ``writable``: the graph may write it."""

    kind: str
    name: str
    start: int
    end: int
    writable: bool


class MemoryMap:
    """The declared memory of one bucket of a stage.

    Slots of the host block are told apart by range, since they share one storage: bytes of the
    block outside this bucket's slots are nobody's.
    """

    def __init__(self, stage: StageUnderTest, case: Case) -> None:
        runner, bucket = stage.runner, stage.runner.table[case.padded]
        self.regions: list[Region] = [_region("live counts", "", bucket.live_counts, False)]
        for info, tensor in stage.slots(case):
            writable = info.mutable or info.source == "graph"
            kind = "host slot" if info.host_only else "slot"
            self.regions.append(_region(kind, f"{info.name} ({info.line})", tensor, writable))
        for kind, view in (("boundary", bucket.boundary), ("output", bucket.outputs)):
            for name, tensor in tensors_of(view).items():
                self.regions.append(_region(kind, name, tensor, True))
        for name, tensor in stage.state.items():
            self.regions.append(_region("state", name.removeprefix("state "), tensor, True))
        for name, tensor in model_tensors(runner.model):
            kind, _, short = name.partition(" ")
            self.regions.append(_region(kind, short, tensor, False))
        for name, tensor in runner.arena.named(""):
            if not name.startswith("slot."):
                self.regions.append(_region("arena", name, tensor, True))
        for name, tensor in planned_tensors(runner, bucket):
            self.regions.append(_region("hook", name, tensor, True))
        block: Tensor = runner.host_bytes
        self._block = (block.data_ptr(), block.data_ptr() + block.nbytes)

    def find(self, start: int, end: int) -> Region | None:
        """The region that holds these bytes."""
        return next((r for r in self.regions if r.start <= start and end <= r.end), None)

    def is_block(self, start: int) -> bool:
        """Whether an address lies in the host block."""
        return self._block[0] <= start < self._block[1]


def planned_tensors(runner: Any, bucket: Any) -> Iterator[tuple[str, Tensor]]:
    """Workspaces of hooks, and tensors of what their keys made: each plan writes those."""
    for hook in runner.hook_calls.states:
        if hook.workspace is not None:
            yield f"{hook.info.name} workspace", hook.workspace
    for name, made in bucket.made.items():
        yield from _held(made, name, set())


MOST_HELD = 1000  # objects that are looked into: what a key made is small


def _held(value: object, name: str, seen: set[int]) -> Iterator[tuple[str, Tensor]]:
    """Tensors in attributes, lists and dicts of an object, however deep."""
    if isinstance(value, Tensor):
        yield name, value
        return
    if id(value) in seen or len(seen) > MOST_HELD or isinstance(value, type | ModuleType):
        return
    seen.add(id(value))
    if isinstance(value, Mapping):
        items = [(f"{name}[{key!r}]", item) for key, item in value.items()]
    elif isinstance(value, list | tuple):
        items = [(f"{name}[{place}]", item) for place, item in enumerate(value)]
    else:
        items = [(f"{name}.{key}", item) for key, item in getattr(value, "__dict__", {}).items()]
    for inner, item in items:
        yield from _held(item, inner, seen)


def _region(kind: str, name: str, tensor: Tensor, writable: bool) -> Region:
    start = tensor.data_ptr()
    return Region(kind=kind, name=name, start=start, end=start + reach(tensor), writable=writable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """An access of the captured region to memory that it did not make."""

    start: int
    end: int
    shape: tuple[int, ...]
    dtype: Any
    device: str
    written: bool
    op: str
    place: str


def uses_of(stage: StageUnderTest, case: Case) -> list[Use]:
    """What the graph itself reads and writes on a CPU; what an eager run does elsewhere."""
    graph = stage.runner.table[case.padded].graph
    if hasattr(graph, "externals"):
        return [
            Use(
                start=use.address,
                end=use.storage_address + use.end,
                shape=use.shape,
                dtype=use.dtype,
                device="cpu",
                written=use.written,
                op=use.op,
                place=str(use.line),
            )
            for use in graph.externals
        ]
    watched = stage.watched(case)
    return [
        Use(
            start=read.address,
            end=read.address + read.nbytes,
            shape=read.shape,
            dtype=read.dtype,
            device=read.device.type,
            written=read.written,
            op=read.op.name,
            place=str(read.op.line) + (f" ({read.op.layer})" if read.op.layer else ""),
        )
        for read in watched.reads
    ]
