"""The build of a stage: its buffers, its captured region, what its graphs are bound to.

Steps are in ``stage``, which builds on this.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import torch
from torch import Tensor

from ppcgc.runtime.arena import DeviceArena
from ppcgc.runtime.backends.base import Backend
from ppcgc.runtime.bucket import Bucket
from ppcgc.runtime.capture_rows import rows_of_hook, write_as_caller
from ppcgc.runtime.carried import Outputs
from ppcgc.runtime.choice import Reason, StepRecord
from ppcgc.runtime.errors import BuildError
from ppcgc.runtime.hooks import HookInfo, Hooks, Made
from ppcgc.runtime.host_block import BucketHost, HostBlock, HostSlot, block_bytes, offsets_of
from ppcgc.runtime.inputs import BatchT, DimsT, ExtentsT, Inputs, SlotsT
from ppcgc.runtime.place import Place, check_place
from ppcgc.runtime.sharing import HOST_BLOCK, Shared, Turn
from ppcgc.runtime.slot_info import capture_batch

if TYPE_CHECKING:  # see Note [what an import does not need] in ``ppcgc.runtime``
    from ppcgc.runtime.crossover import Crossover
    from ppcgc.runtime.layers import LayerRange
    from ppcgc.runtime.parallel import GroupCounts, Ranks

InT = TypeVar("InT")
OutT = TypeVar("OutT")


class BuiltStage(ABC, Generic[ExtentsT, BatchT, DimsT, SlotsT, InT, OutT]):
    """A stage with its buffers and graphs, before any step.

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
    groups: ClassVar[Mapping[str, GroupCounts]] = {}  # column of a largest count -> of whom
    overlaps: ClassVar[tuple[str, ...]] = ()  # runners whose steps may be under way with its own
    transport: ClassVar[str] = "eager"  # how ranks of other processes hand its boundary on

    # padded extents of every bucket, ascending -> live extents of its capture batch
    buckets: Mapping[Any, Any]

    def __init__(
        self,
        *,
        model: Callable[..., object],
        layers: LayerRange,
        dims: DimsT,
        dtype: torch.dtype,
        backend: Backend,
    ) -> None:
        from ppcgc.runtime.layers import check_count, check_model_range

        check_count(layers, dims.layer_count)
        check_place(self.place, layers, type(self).__name__)
        check_model_range(model, layers)
        self.model = model
        self.layers = layers
        self.dims = dims
        self.dtype = dtype
        self.backend = backend
        self.device = backend.device
        # the most rows of any bucket, by axis: what buffers are sized for
        self.full: ExtentsT = _most_rows(self.buckets)
        self.inputs: Inputs[ExtentsT, BatchT, DimsT, SlotsT] = self.inputs_type(
            dims, dtype, self.device, layers
        )
        self.outputs: Outputs[ExtentsT, OutT] = self.outputs_type(dims, dtype, self.device, layers)
        self.outputs.check_parts(f"{self.family}.{self.runner}", self.buckets)
        self.hook_calls = Hooks()
        self.arena = DeviceArena(self.device)
        self.last_step: StepRecord[ExtentsT] | None = None
        self.eager_steps: dict[Reason, int] = {}
        self.dropped: dict[ExtentsT, str] = {}  # buckets that a rank could not capture, and why
        self.compiled: Callable[..., object] | None = None  # graphs run it in the model's place
        self.compiled_as = "none"
        self.crossover: Crossover | None = None
        self.among_ranks = False  # other processes have its other stages
        self._table: dict[ExtentsT, Bucket[ExtentsT, SlotsT, InT, OutT]] = {}
        self._host: HostBlock | None = None
        self._feeds: BuiltStage[ExtentsT, Any, Any, Any, OutT, Any] | None = None
        self.turn = Turn()
        self.shared: Shared | None = None  # with runners that never work while this one does
        self._lent_block: Tensor | None = None
        self.shares_boundary = False  # the slots that it is received in are others' as well
        self.is_fed = False  # the stage before it may write there
        self.prepare()

    def prepare(self) -> None:
        """What a subclass holds beside: the last part of the build, each after its base's."""

    # ------------------------------------------------------------ generated

    @abstractmethod
    def forward(self, slots: SlotsT, boundary: InT, rows: ExtentsT, made: Made) -> object:
        """Call the model with the keywords of this place. ``made`` has the hooks' objects."""

    def workspace_bytes(self) -> dict[str, int]:
        """Bytes of device memory that each hook is given."""
        return {}

    # ------------------------------------------------------------ by kind of stage

    @abstractmethod
    def boundary_tensors(self, bucket: Bucket[ExtentsT, SlotsT, InT, OutT]) -> list[Tensor]:
        """Where the bucket takes the boundary of the stage before it."""

    @abstractmethod
    def boundary_sizes(self, full: ExtentsT) -> dict[str, int]:
        """Bytes of the received keys that every step rewrites, by name in the arena."""

    @abstractmethod
    def boundary_buffers(self, rows: ExtentsT, full: ExtentsT) -> InT: ...

    @abstractmethod
    def reset_boundary(self, bucket: Bucket[ExtentsT, SlotsT, InT, OutT]) -> None: ...

    # ------------------------------------------------------------ build

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
        with torch.inference_mode(False):  # see Note [buffers outlive inference mode] in capturing
            self._table = self._allocated(self.full)

    def _allocated(self, full: ExtentsT) -> dict[ExtentsT, Bucket[ExtentsT, SlotsT, InT, OutT]]:
        layouts = self._host_layouts()
        self._host = HostBlock(self.device, _bytes_of(layouts), device_bytes=self._lent_block)
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
                axes=len(self.axes),
            )
        return table

    def _host_layouts(self) -> dict[ExtentsT, tuple[HostSlot, ...]]:
        return {padded: self._host_slots(padded) for padded in self.buckets}

    def rewritten(self) -> tuple[dict[str, int], dict[str, int]]:
        """Bytes of the inputs and of the outputs that every step rewrites, by name.

        Without what lies in memory that is given already. See Note [what is shared] in
        ``sharing``.
        """
        inputs = {
            HOST_BLOCK: block_bytes(self.device, _bytes_of(self._host_layouts())),
            **self.inputs.rewritten(self.full),
            **self.boundary_sizes(self.full),
        }
        outputs = {} if self._feeds is not None else self.outputs.rewritten(self.full)
        return self._unplaced(inputs), self._unplaced(outputs)

    def _unplaced(self, sizes: dict[str, int]) -> dict[str, int]:
        return {name: size for name, size in sizes.items() if not self.arena.is_placed(name)}

    def lend(self, memory: Mapping[str, Tensor]) -> None:
        """Let what is rewritten lie in these bytes, which other runners use as well."""
        for name, part in memory.items():
            self.shares_boundary |= name.startswith("received.")
            if name == HOST_BLOCK:
                self._lent_block = part
            else:
                self.arena.lend(name, part)

    def feed(self, later: BuiltStage[ExtentsT, Any, Any, Any, OutT, Any]) -> None:
        """Write this stage's boundary straight into the slots of the stage after it.

        For stages on one device, before capture: the hand-off then copies nothing. Raises
        BuildError when the two do not follow each other or their boundary differs.
        """
        if self._table:
            raise BuildError(f"{self} has its buffers already: call feed before capture")
        if not isinstance(later, BuiltStage):
            raise BuildError(
                f"{self} feeds the runner of the next stage, not a {type(later).__name__}"
            )
        if self.layers.end != later.layers.start or self.device != later.device:
            raise BuildError(
                f"{self} cannot feed {later}: it ends at layer {self.layers.end} on {self.device}, "
                f"the other starts at layer {later.layers.start} on {later.device}"
            )
        if self.fingerprint != later.fingerprint or self.runner != later.runner:
            raise BuildError(f"{self} cannot feed {later}: they are of different specs or runners")
        if self.dims != later.dims or self.dtype != later.dtype:
            raise BuildError(
                f"{self} cannot feed {later}: it was built for {self.dims} and {self.dtype}, "
                f"the other for {later.dims} and {later.dtype}"
            )
        self._feeds = later
        later.is_fed = True

    def fed(self) -> None:
        """The stage before this one replays into its slots: what was begun there is stale."""
        self.turn.begun = None
        self.turn.written_for = self

    def __str__(self) -> str:
        return f"{self.family}.{self.runner} {self.place.value}, layers {self.layers}"

    def _host_slots(self, padded: ExtentsT) -> tuple[HostSlot, ...]:
        # of axes alone, which come first: what resets rows reads no scalar
        counts = HostSlot(name="live counts", shape=(len(self.axes),), dtype=torch.int32)
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
            self._rows_of_hooks(live, padded, of_caller=False),
            {
                group.path: [live[self.columns.index(group.axis)]] * self._size_of(group.over)
                for group in self.groups.values()
            },
        )
        return batch

    def _size_of(self, group: str) -> int:
        ranks: Ranks = getattr(self.dims, group)
        return ranks.size

    def with_largest(self, live: ExtentsT) -> ExtentsT:
        """These live counts in a group whose other ranks have no more."""
        values = list(live)
        for column, group in self.groups.items():
            values[self.columns.index(column)] = live[self.columns.index(group.axis)]
        kind: Callable[..., ExtentsT] = type(live)
        return kind(*values)

    def _rows_of_hooks(
        self, live: ExtentsT, padded: ExtentsT, *, of_caller: bool
    ) -> dict[str, Tensor]:
        """What hooks give for slots that say so while capturing, checked as sources are."""
        shapes, lacks = self.inputs.shapes(live), self.inputs.lacks(padded)
        return {
            info.name: rows_of_hook(
                self.hook_calls.rows_for_capture(info.capture_hook, info.name, live),
                info,
                shapes[info.name],
                info.dtype or self.dtype,
                self.device,
            )
            for info in self.inputs.table()
            if info.capture_hook is not None
            and info.name not in lacks
            and (info.source == "caller") == of_caller
        }

    def load_for_capture(self, bucket: Bucket[ExtentsT, SlotsT, InT, OutT]) -> None:
        """Load the bucket with its capture batch, by the same function as every step."""
        self.backend.join_stream()
        self.turn.begun = self.turn.written_for = None  # whatever its memory held is gone
        live = bucket.live_at_capture
        batch = self.capture_batch(live, bucket.padded)
        bucket.host.open()
        self.inputs.load(bucket.slots, bucket.host, batch, live, bucket.padded)
        write_as_caller(
            self.inputs.table(),
            bucket.slots,
            self.inputs.shapes(live),
            self.inputs.capture_fills(bucket.padded),
            self._rows_of_hooks(live, bucket.padded, of_caller=True),
        )
        if not bucket.made:  # once for each graph key, before its first warm-up
            bucket.made = self.hook_calls.made_for(bucket.padded, bucket.slots)
        self.hook_calls.load(bucket.slots, batch, live)
        self.inputs.pad_late(bucket.slots, live, bucket.padded)
        self.hook_calls.plan(bucket.made, bucket.slots, batch, live)

    def body(
        self,
        bucket: Bucket[ExtentsT, SlotsT, InT, OutT],
        shown: InT | None = None,
        arrive: Callable[[], None] = lambda: None,
    ) -> Callable[[], None]:
        """The captured region of a bucket: load, reset the boundary, forward, store.

        ``shown`` is what the forward sees in the place of the bucket's boundary. ``arrive`` waits
        for what another rank hands over, behind the load, which needs none of it.
        """
        boundary = bucket.boundary if shown is None else shown

        def run() -> None:
            bucket.host.load_in_graph(self.boundary_tensors(bucket))
            arrive()
            self.reset_boundary(bucket)
            result = self.forward(bucket.slots, boundary, bucket.padded, bucket.made)
            self.outputs.store(result, bucket.outputs, boundary)

        return run

    @property
    def table(self) -> Mapping[ExtentsT, Bucket[ExtentsT, SlotsT, InT, OutT]]:
        """The buckets by padded extents."""
        return self._table

    # ------------------------------------------------------------ hooks

    def add_hooks(self, hooks: object) -> None:
        """Take the hooks of a build, one attribute each, and give them their workspaces."""
        self.hook_calls = Hooks.build(self.hook_table, hooks, self.workspace_bytes(), self.device)

    @property
    def host_block_bytes(self) -> int:
        """Bytes of the host block on the device, where they are the runner's own."""
        return self._host.nbytes if self._host is not None and self._lent_block is None else 0

    @property
    def host_bytes(self) -> Tensor | None:
        """The device side of the host block, None before ``allocate``."""
        return None if self._host is None else self._host.device_bytes


def _bytes_of(layouts: Mapping[Any, tuple[HostSlot, ...]]) -> int:
    """Bytes of a block that every bucket's layout fits into."""
    return max(offsets_of(layout)[1] for layout in layouts.values())


def _most_rows(buckets: Mapping[Any, Any]) -> Any:
    kind = type(next(iter(buckets)))
    return kind(*(max(column) for column in zip(*buckets, strict=True)))
