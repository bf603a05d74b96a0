"""A stage of a pipeline behind one runner: choose, load, replay, trim.

A step always goes in this order: read the live counts; check limits; choose once; load the
chosen bucket; the caller's window; replay; trim. Generated classes bind names, sizes and
straight-line calls; the algorithm is here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, Generic, TypeVar

import torch
from torch import Tensor

from ppcgc.runtime.addresses import Move, Places, moves, places_of
from ppcgc.runtime.arena import BucketHost, DeviceArena, HostBlock, HostSlot, offsets_of
from ppcgc.runtime.backends.base import Backend, Graph
from ppcgc.runtime.carried import Incoming, Outputs
from ppcgc.runtime.choice import Choice, Reason, StepRecord
from ppcgc.runtime.crossover import Crossover
from ppcgc.runtime.errors import (
    AddressError,
    BuildError,
    GraphRequiredError,
    NotCapturedError,
    PpcgcError,
    SourceError,
    StaleStepError,
)
from ppcgc.runtime.hooks import HookInfo, HookState, Made
from ppcgc.runtime.inputs import BatchT, DimsT, ExtentsT, Inputs, SlotsT
from ppcgc.runtime.layers import LayerRange, check_model_range
from ppcgc.runtime.report import Report, report_of
from ppcgc.runtime.slot_info import capture_batch
from ppcgc.runtime.stale_views import Epoch, guard_outputs

InT = TypeVar("InT")
OutT = TypeVar("OutT")


class Place(Enum):
    """Where a stage stands in its pipeline."""

    ONLY = "only"
    FIRST = "first"
    MIDDLE = "middle"
    LAST = "last"


@dataclass(slots=True)
class Bucket(Generic[ExtentsT, SlotsT, InT, OutT]):
    """One padded size of a stage: its views, and its graph once captured."""

    padded: ExtentsT
    live_at_capture: ExtentsT
    host: BucketHost
    live_counts: Tensor
    slots: SlotsT
    boundary: InT
    outputs: OutT
    made: dict[str, object] = field(default_factory=dict)  # what each hook's key returned
    graph: Graph | None = None
    replays: int = 0
    padding_rows: list[int] = field(default_factory=list)  # by axis, over all replays


@dataclass(frozen=True, slots=True, eq=False)
class Step(Generic[ExtentsT, SlotsT, InT]):
    """A step between ``begin`` and ``finish``: the slots are loaded, nothing has run."""

    live: ExtentsT
    choice: Choice[ExtentsT]
    slots: SlotsT
    boundary: InT
    batch: object


class StageRunner(ABC, Generic[ExtentsT, BatchT, DimsT, SlotsT, InT, OutT]):
    """Captures and replays one stage. Generated subclasses are the public classes.

    ``model`` takes the keywords that the spec binds; ``layers`` are the stage's own; ``dtype``
    is what ``dtype: model`` stands for. Raises BuildError kinds for what does not fit together.
    """

    family: ClassVar[str]
    runner: ClassVar[str]
    place: ClassVar[Place]
    axes: ClassVar[tuple[str, ...]]
    columns: ClassVar[tuple[str, ...]]  # the axes, then scalars: what extents stand for
    counts: ClassVar[Mapping[str, str]]  # column -> batch path of its number
    fingerprint: ClassVar[str]
    inputs_type: ClassVar[type[Inputs[Any, Any, Any, Any]]]
    outputs_type: ClassVar[type[Outputs[Any, Any]]]
    require_graph: ClassVar[bool] = False
    compile: ClassVar[str] = "none"
    hook_table: ClassVar[tuple[HookInfo, ...]] = ()
    transport: ClassVar[str] = "eager"  # how ranks of other processes hand its boundary on

    # padded extents of every bucket, ascending -> live extents of its capture batch
    buckets: ClassVar[Mapping[Any, Any]]

    def __init__(
        self,
        *,
        model: Callable[..., object],
        layers: LayerRange,
        dims: DimsT,
        dtype: torch.dtype,
        backend: Backend,
    ) -> None:
        check_place(self.place, layers, type(self).__name__)
        check_model_range(model, layers)
        self.model = model
        self.layers = layers
        self.dims = dims
        self.dtype = dtype
        self.backend = backend
        self.device = backend.device
        self.inputs: Inputs[ExtentsT, BatchT, DimsT, SlotsT] = self.inputs_type(
            dims, dtype, self.device, layers
        )
        self.outputs: Outputs[ExtentsT, OutT] = self.outputs_type(dims, dtype, self.device, layers)
        self.hook_states: tuple[HookState, ...] = ()
        self.arena = DeviceArena(self.device)
        self.last_step: StepRecord[ExtentsT] | None = None
        self.eager_steps: dict[Reason, int] = {}
        self.dropped: dict[ExtentsT, str] = {}  # buckets that a rank could not capture, and why
        self.compiled: Callable[..., object] | None = None  # graphs run it in the model's place
        self.compiled_as = "none"
        self.crossover: Crossover | None = None
        self._choices: dict[ExtentsT, Choice[ExtentsT]] = {}
        self._table: dict[ExtentsT, Bucket[ExtentsT, SlotsT, InT, OutT]] = {}
        self._host: HostBlock | None = None
        self._feeds: StageRunner[ExtentsT, Any, Any, Any, OutT, Any] | None = None
        self._begun: Step[ExtentsT, SlotsT, InT] | None = None
        self._captured = False
        self._places: Places = {}
        self._epoch: Epoch | None = None

    # ------------------------------------------------------------ generated by place

    @abstractmethod
    def extents(self, batch: BatchT) -> ExtentsT:
        """The live counts of a batch, host integers all of them."""

    @abstractmethod
    def choose(self, live: ExtentsT) -> Choice[ExtentsT]:
        """The bucket for these live counts, or the reason for an eager step."""

    @abstractmethod
    def forward(self, slots: SlotsT, boundary: InT, rows: ExtentsT, made: Made) -> object:
        """Call the model with the keywords of this place. ``made`` has the hooks' objects."""

    def ineligible(self, batch: BatchT, live: ExtentsT) -> str | None:
        """The condition of ``eager_when`` that makes the step eager."""
        return None

    def workspace_bytes(self) -> dict[str, int]:
        """Bytes of device memory that each hook is given."""
        return {}

    # ------------------------------------------------------------ by kind of stage

    @abstractmethod
    def boundary_buffers(self, rows: ExtentsT, full: ExtentsT) -> InT: ...

    @abstractmethod
    def receive(
        self, bucket: Bucket[ExtentsT, SlotsT, InT, OutT], source: InT, live: ExtentsT
    ) -> None: ...

    @abstractmethod
    def reset_boundary(self, bucket: Bucket[ExtentsT, SlotsT, InT, OutT]) -> None: ...

    @abstractmethod
    def check_boundary(self, source: InT, live: ExtentsT) -> InT: ...

    # ------------------------------------------------------------ build

    @property
    def full(self) -> ExtentsT:
        """The most rows of any bucket, by axis: what buffers are sized for."""
        columns = zip(*self.buckets, strict=True)
        kind: Callable[..., ExtentsT] = type(next(iter(self.buckets)))
        return kind(*(max(column) for column in columns))

    def allocate(self) -> None:
        """Give every slot, boundary and output its final address. Idempotent.

        See Note [addresses are frozen] in ``arena``.
        """
        if self._table:
            return
        if self._feeds is not None:
            self._feeds.allocate()
            for name, buffer in self._feeds.arena.named("received."):
                self.arena.adopt(f"handed.{name}", buffer)
        with torch.inference_mode(False):  # see Note [buffers outlive inference mode] in capture
            self._table = self._allocated(self.full)

    def _allocated(self, full: ExtentsT) -> dict[ExtentsT, Bucket[ExtentsT, SlotsT, InT, OutT]]:
        layouts = {padded: self._host_slots(padded) for padded in self.buckets}
        nbytes = max(offsets_of(layout)[1] for layout in layouts.values())
        self._host = HostBlock(self.device, nbytes)
        table = {}
        for padded, live in self.buckets.items():
            self.arena.lay_out(padded)
            host = BucketHost(self._host, layouts[padded])
            counts, *views = host.device_views
            table[padded] = Bucket(
                padded=padded,
                live_at_capture=live,
                host=host,
                live_counts=counts,
                slots=self.inputs.allocate(self.arena, tuple(views), padded, full),
                boundary=self.boundary_buffers(padded, full),
                outputs=self.outputs.buffers(self.arena, padded, full),
                padding_rows=[0] * len(self.axes),
            )
        return table

    def feed(self, later: StageRunner[ExtentsT, Any, Any, Any, OutT, Any]) -> None:
        """Write this stage's boundary straight into the slots of the stage after it.

        For stages on one device, before capture: the hand-off then copies nothing. Raises
        BuildError when the two do not follow each other or their boundary differs.
        """
        if self._table:
            raise BuildError(f"{self} has its buffers already: call feed before capture")
        if self.layers.end != later.layers.start or self.device != later.device:
            raise BuildError(
                f"{self} cannot feed {later}: it ends at layer {self.layers.end} on {self.device}, "
                f"the other starts at layer {later.layers.start} on {later.device}"
            )
        if self.fingerprint != later.fingerprint or self.buckets is not later.buckets:
            raise BuildError(f"{self} cannot feed {later}: they are of different specs or runners")
        if self.dims != later.dims or self.dtype != later.dtype:
            raise BuildError(
                f"{self} cannot feed {later}: it was built for {self.dims} and {self.dtype}, "
                f"the other for {later.dims} and {later.dtype}"
            )
        self._feeds = later

    def __str__(self) -> str:
        return f"{self.family}.{self.runner} {self.place.value}, layers {self.layers}"

    def _host_slots(self, padded: ExtentsT) -> tuple[HostSlot, ...]:
        counts = HostSlot(name="live counts", shape=(len(self.columns),), dtype=torch.int32)
        return (counts, *self.inputs.host_slots(padded))

    def keys_of_slots(self) -> tuple[str, ...]:
        """The keys of the boundary that slots show."""
        return tuple(info.boundary for info in self.inputs.table() if info.boundary is not None)

    def capture_batch(self, live: ExtentsT, padded: ExtentsT) -> BatchT:
        """A batch with these live counts that is legal for the kernels."""
        batch: BatchT = capture_batch(
            self.inputs.table(),
            self.inputs.shapes(live),
            dict(zip(self.columns, live, strict=True)),
            self.counts,
            self.inputs.capture_fills(padded),
            self.dtype,
            self.device,
        )
        return batch

    def load_for_capture(self, bucket: Bucket[ExtentsT, SlotsT, InT, OutT]) -> None:
        """Load the bucket with its capture batch, by the same function as every step."""
        live = bucket.live_at_capture
        batch = self.capture_batch(live, bucket.padded)
        self.inputs.load(bucket.slots, bucket.host, batch, live, bucket.padded)
        self._make_keys(bucket)
        self._load_hooks(bucket.slots, batch, live)
        self._plan_hooks(bucket.made, bucket.slots, batch, live)

    def body(
        self, bucket: Bucket[ExtentsT, SlotsT, InT, OutT], shown: InT | None = None
    ) -> Callable[[], None]:
        """The captured region of a bucket: reset the boundary, forward, store.

        ``shown`` is what the forward sees in the place of the bucket's boundary.
        """
        boundary = bucket.boundary if shown is None else shown

        def run() -> None:
            self.reset_boundary(bucket)
            result = self.forward(bucket.slots, boundary, bucket.padded, bucket.made)
            self.outputs.store(result, bucket.outputs, boundary)

        return run

    @property
    def table(self) -> Mapping[ExtentsT, Bucket[ExtentsT, SlotsT, InT, OutT]]:
        """The buckets by padded extents."""
        return self._table

    def drop(self, padded: ExtentsT, why: str) -> None:
        """Do without the graph of a bucket: its steps run eagerly, and the report says why."""
        bucket = self._table[padded]
        if bucket.graph is not None:
            bucket.graph.close()
            bucket.graph = None
        self.dropped[padded] = why
        self._choices.clear()

    def use_calibration(self, crossover: Crossover | None) -> None:
        """Take steps that ``crossover`` measured as slower eagerly; None takes that back.

        Raises BuildError for the measurement of another runner.
        """
        own = f"{self.family}.{self.runner}"
        if crossover is not None and crossover.runner != own:
            raise BuildError(f"{self}: the calibration is of {crossover.runner}, not of {own}")
        self.crossover = crossover
        self._choices.clear()

    def mark_captured(self) -> None:
        """Called by ``capture`` when every bucket has its graph."""
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
        moved = moves(self._places, places_of(self))
        if moved and policy == "error":
            lines = "\n  ".join(map(str, moved[:8]))
            raise AddressError(
                f"{self}: {len(moved)} tensors moved since capture:\n  {lines}\n"
                "Copy into the old tensors in place, or capture again"
            )
        if moved:
            from ppcgc.runtime.capture import capture  # it imports this module

            capture([self])
        return moved

    def guard_views(self, on: bool = True) -> None:
        """For debugging: output views raise StaleOutputError once a later run overwrote them."""
        self._epoch = Epoch(str(self)) if on else None

    # ------------------------------------------------------------ a step

    def _begin(self, batch: BatchT, boundary: InT) -> Step[ExtentsT, SlotsT, InT]:
        live, choice = self.decide(batch)
        return self.begin_as(batch, boundary, live, choice)

    def decide(self, batch: BatchT) -> tuple[ExtentsT, Choice[ExtentsT]]:
        """The live counts of a batch and the one choice of its step; writes nothing."""
        if not self._captured:
            raise NotCapturedError(
                f"{type(self).__name__} has no graphs: call ppcgc.runtime.capture([...]) first, "
                "or `eager` to run without graphs"
            )
        try:
            live = self.extents(batch)
            choice = self._choices.get(live)
            if choice is None:
                choice = self._remember(live)
            absent = self.inputs.absent(batch)
            ineligible = self.ineligible(batch, live)
        except AttributeError as problem:
            raise self._lacking(problem) from problem
        if absent is not None:
            choice = Choice(None, Reason.ABSENT, absent)
        elif ineligible is not None:
            choice = Choice(None, Reason.INELIGIBLE, ineligible)
        return live, choice

    def begin_as(
        self, batch: BatchT, boundary: InT, live: ExtentsT, choice: Choice[ExtentsT]
    ) -> Step[ExtentsT, SlotsT, InT]:
        """Load for a choice that is made already: later ranks take the first rank's.

        The rows of ``boundary`` may still be on their way until ``finish``.
        """
        self._begun = None  # whatever was begun before is stale: its slots are written from here
        try:
            step = self._loaded(batch, boundary, live, choice)
        except AttributeError as problem:
            raise self._lacking(problem) from problem
        self._begun = step
        return step

    def _loaded(
        self, batch: BatchT, boundary: InT, live: ExtentsT, choice: Choice[ExtentsT]
    ) -> Step[ExtentsT, SlotsT, InT]:
        if choice.padded is None:
            return self._bound(batch, boundary, live, choice)
        bucket = self._table[choice.padded]
        self.inputs.load(bucket.slots, bucket.host, batch, live, bucket.padded)
        self.receive(bucket, boundary, live)
        if self.hook_states:
            self._load_hooks(bucket.slots, batch, live)
        return Step(live, choice, bucket.slots, bucket.boundary, batch)

    def _lacking(self, problem: AttributeError) -> PpcgcError:
        """What a batch or a boundary without an attribute that the spec reads is to its caller."""
        if isinstance(problem, PpcgcError):
            return problem
        return SourceError(
            f"{type(self).__name__}: {problem}; a batch and a boundary have every attribute that "
            "the spec reads, with None for what is absent"
        )

    def _remember(self, live: ExtentsT) -> Choice[ExtentsT]:
        if len(self._choices) > 65_536:  # live counts repeat; a stream of new ones must not grow it
            self._choices.clear()
        choice = self.choose(live)
        if choice.padded in self.dropped:
            choice = Choice(None, Reason.DROPPED, self.dropped[choice.padded])
        elif self.crossover is not None and choice.padded is not None:
            slower = self.crossover.slower(choice.padded, live)
            if slower is not None:
                choice = Choice(None, Reason.SLOWER, slower)
        self._choices[live] = choice
        return choice

    def _bound(
        self, batch: BatchT, boundary: InT, live: ExtentsT, choice: Choice[ExtentsT]
    ) -> Step[ExtentsT, SlotsT, InT]:
        """An eager step: the batch's own rows."""
        if self.require_graph and choice.reason is not Reason.REQUESTED:
            raise GraphRequiredError(
                f"{type(self).__name__}: live {live} has no graph ({choice.reason.value}"
                f"{': ' + choice.detail if choice.detail else ''}) and the spec says "
                "`require_graph: true`"
            )
        received = self.check_boundary(boundary, live)
        slots = self.inputs.bind(batch, received, live)
        self._load_hooks(slots, batch, live)
        return Step(live, choice, slots, received, batch)

    def finish(self, step: Step[ExtentsT, SlotsT, InT]) -> OutT:
        """Run a begun step: replay its bucket, or the model itself in an eager step.

        Raises StaleStepError unless it is the step that this runner began last, once.
        """
        if step is not self._begun:
            raise StaleStepError(
                f"{type(self).__name__}: this step ({step.live} live) is not the one that the "
                "runner began last: it was finished, another was begun since and has overwritten "
                "its slots, or it is another runner's"
            )
        self._begun = None
        if step.choice.padded is None:
            return self._finish_eager(step)
        bucket = self._table[step.choice.padded]
        if bucket.graph is None:
            raise NotCapturedError(f"{type(self).__name__}: bucket {bucket.padded} was closed")
        if self.hook_states:
            self._plan_hooks(bucket.made, step.slots, step.batch, step.live)
        self.last_step = StepRecord(step.live, step.choice)
        bucket.graph.replay()
        bucket.replays += 1
        for axis in range(len(self.axes)):
            bucket.padding_rows[axis] += bucket.padded[axis] - step.live[axis]
        outputs = self.outputs.trim(bucket.outputs, step.live)
        return outputs if self._epoch is None else self._guarded(outputs, self._epoch)

    def _guarded(self, outputs: OutT, epoch: Epoch) -> OutT:
        epoch.now += 1
        shared = frozenset(
            buffer.untyped_storage().data_ptr()
            for prefix in ("output.", "handed.")
            for _, buffer in self.arena.named(prefix)
        )
        guarded: OutT = guard_outputs(outputs, epoch, shared)
        return guarded

    def _finish_eager(self, step: Step[ExtentsT, SlotsT, InT]) -> OutT:
        self.last_step = StepRecord(step.live, step.choice)
        reason = step.choice.reason
        self.eager_steps[reason] = self.eager_steps.get(reason, 0) + 1
        made = self._made_for(step.live, step.slots)
        self._plan_hooks(made, step.slots, step.batch, step.live)
        with torch.no_grad():
            result = self.forward(step.slots, step.boundary, step.live, made)
        return self.outputs.eager(result, step.boundary, step.live)

    def _begin_eager(self, batch: BatchT, boundary: InT) -> Step[ExtentsT, SlotsT, InT]:
        try:
            live = self.extents(batch)
            step = self._bound(batch, boundary, live, Choice(None, Reason.REQUESTED))
        except AttributeError as problem:
            raise self._lacking(problem) from problem
        self._begun = step
        return step

    # ------------------------------------------------------------ hooks

    def add_hooks(self, hooks: object) -> None:
        """Take the hooks of a build, one attribute each, and give them their workspaces."""
        nbytes = self.workspace_bytes()
        self.hook_states = tuple(
            HookState.build(info, getattr(hooks, info.name), nbytes.get(info.name, 0), self.device)
            for info in self.hook_table
        )

    def _made_for(self, rows: ExtentsT, slots: SlotsT) -> dict[str, object]:
        """What each hook's ``key`` makes for a graph of these rows."""
        return {state.info.name: state.key(rows, slots) for state in self.hook_states}

    def _make_keys(self, bucket: Bucket[ExtentsT, SlotsT, InT, OutT]) -> None:
        """``key`` runs once for each graph key, before its first warm-up."""
        if self.hook_states and not bucket.made:
            bucket.made = self._made_for(bucket.padded, bucket.slots)

    def _load_hooks(self, slots: SlotsT, batch: object, live: ExtentsT) -> None:
        for state in self.hook_states:
            state.load(slots, batch, live)

    def _plan_hooks(
        self, made: Mapping[str, object], slots: SlotsT, batch: object, live: ExtentsT
    ) -> None:
        for state in self.hook_states:
            state.plan(made[state.info.name], slots, batch, live)

    # ------------------------------------------------------------ afterwards

    def report(self) -> Report:
        """What the runner holds and did: buckets, replays, eager steps, padding rows, bytes."""
        return report_of(self)

    @property
    def host_block_bytes(self) -> int:
        return 0 if self._host is None else self._host.nbytes

    @property
    def host_bytes(self) -> Tensor | None:
        """The device side of the host block, None before ``allocate``."""
        return None if self._host is None else self._host.device_bytes

    def close(self) -> None:
        """Close the graphs; the runner can run eagerly still. Idempotent."""
        for bucket in self._table.values():
            if bucket.graph is not None:
                bucket.graph.close()
                bucket.graph = None
        self._captured = False


class EntryStage(StageRunner[ExtentsT, BatchT, DimsT, SlotsT, None, OutT]):
    """A first or only stage: everything it needs is in the batch."""

    def run(self, batch: BatchT) -> OutT:
        """One step. Raises SourceError kinds before anything runs; the runner stays usable."""
        return self.finish(self._begin(batch, None))

    def begin(self, batch: BatchT) -> Step[ExtentsT, SlotsT, None]:
        """Choose and load; slots with `source: caller` may be written until ``finish``."""
        return self._begin(batch, None)

    def eager(self, batch: BatchT) -> OutT:
        """The same step without a graph, at live size."""
        return self.finish(self._begin_eager(batch, None))

    def begin_eager(self, batch: BatchT) -> Step[ExtentsT, SlotsT, None]:
        """As ``begin``, for a step without a graph whatever its counts."""
        return self._begin_eager(batch, None)

    def boundary_buffers(self, rows: ExtentsT, full: ExtentsT) -> None:
        return None

    def receive(
        self, bucket: Bucket[ExtentsT, SlotsT, None, OutT], source: None, live: ExtentsT
    ) -> None:
        return None

    def reset_boundary(self, bucket: Bucket[ExtentsT, SlotsT, None, OutT]) -> None:
        return None

    def check_boundary(self, source: None, live: ExtentsT) -> None:
        return None


class LaterStage(StageRunner[ExtentsT, BatchT, DimsT, SlotsT, InT, OutT]):
    """A middle or last stage: takes the boundary of the stage before it."""

    incoming_type: ClassVar[type[Incoming[Any, Any]]]

    def __init__(
        self,
        *,
        model: Callable[..., object],
        layers: LayerRange,
        dims: DimsT,
        dtype: torch.dtype,
        backend: Backend,
    ) -> None:
        super().__init__(model=model, layers=layers, dims=dims, dtype=dtype, backend=backend)
        self.incoming: Incoming[ExtentsT, InT] = self.incoming_type(
            dims, dtype, self.device, layers
        )

    def run(self, batch: BatchT, boundary: InT) -> OutT:
        """One step. Raises SourceError kinds before anything runs; the runner stays usable."""
        return self.finish(self._begin(batch, boundary))

    def begin(self, batch: BatchT, boundary: InT) -> Step[ExtentsT, SlotsT, InT]:
        """Choose and load; slots with `source: caller` may be written until ``finish``."""
        return self._begin(batch, boundary)

    def eager(self, batch: BatchT, boundary: InT) -> OutT:
        """The same step without a graph, at live size."""
        return self.finish(self._begin_eager(batch, boundary))

    def begin_eager(self, batch: BatchT, boundary: InT) -> Step[ExtentsT, SlotsT, InT]:
        """As ``begin``, for a step without a graph whatever its counts."""
        return self._begin_eager(batch, boundary)

    def boundary_buffers(self, rows: ExtentsT, full: ExtentsT) -> InT:
        return self.incoming.buffers(self.arena, rows, full)

    def receive(
        self, bucket: Bucket[ExtentsT, SlotsT, InT, OutT], source: InT, live: ExtentsT
    ) -> None:
        self.incoming.receive(bucket.boundary, source, live)

    def reset_boundary(self, bucket: Bucket[ExtentsT, SlotsT, InT, OutT]) -> None:
        self.incoming.reset(bucket.boundary, bucket.live_counts, self.columns)

    def check_boundary(self, source: InT, live: ExtentsT) -> InT:
        return self.incoming.check(source, live)


def check_place(place: Place, layers: LayerRange, runner: str) -> None:
    """Raises BuildError when a range of layers cannot stand at this place of a pipeline."""
    first, last = layers.start == 0, layers.end == layers.count
    stands = {
        (True, True): Place.ONLY,
        (True, False): Place.FIRST,
        (False, False): Place.MIDDLE,
        (False, True): Place.LAST,
    }[first, last]
    if stands is not place:
        raise BuildError(
            f"{runner} is for the {place.value} stage; layers {layers} make the {stands.value} one"
        )
