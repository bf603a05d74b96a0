"""Tensors that cross the edge of a stage: the boundary that it takes, and what it gives.

Generated classes say which tensors there are, pick them out of the forward's result, and cut or
receive them in straight lines; what happens once a build or an eager step is here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

import torch
from torch import Tensor

from ppcgc.runtime.arena import DeviceArena, bytes_of_shape
from ppcgc.runtime.dims import check_shape
from ppcgc.runtime.errors import BuildError
from ppcgc.runtime.host_block import BucketHost
from ppcgc.runtime.past_live import PastLive
from ppcgc.runtime.receiving import check_received
from ppcgc.runtime.results import OutputRing, check_result, store
from ppcgc.runtime.shards import live_part, part_rows

if TYPE_CHECKING:  # see Note [what an import does not need] in ``ppcgc.runtime``
    from ppcgc.runtime.layers import LayerRange

RowsT_contra = TypeVar("RowsT_contra", contravariant=True)
HeldT = TypeVar("HeldT")


class TensorInfo(NamedTuple):
    """One tensor, with some number of rows on its axes."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype


class Tensors(ABC, Generic[RowsT_contra, HeldT]):
    """A set of tensors and the typed object that holds them. Generated.

    ``cut`` is the first layer after the cut that the tensors cross.
    """

    prefix: ClassVar[str]  # of their names in the arena
    split: ClassVar[Mapping[str, int]] = {}  # `content: {sharded: tp}` -> the dimension
    scattered: ClassVar[frozenset[str]] = frozenset()  # `wire: scatter_gather`

    def __init__(self, dims: Any, dtype: torch.dtype, device: torch.device, cut: int) -> None:
        self.dims = dims
        self.dtype = dtype
        self.device = device
        self.cut = cut

    @abstractmethod
    def table(self, rows: RowsT_contra) -> tuple[TensorInfo, ...]:
        """Every tensor that crosses the cut, with these rows on its axes, of all ranks together."""

    @abstractmethod
    def held(self, of: Mapping[str, Tensor]) -> HeldT:
        """The typed object of these tensors."""

    def in_bucket(self, padded: RowsT_contra) -> tuple[TensorInfo, ...]:
        """Every tensor as this rank holds it: its own part of what is split over ranks."""
        infos = self.table(padded)
        return tuple(map(self._part, infos, infos)) if self.split else infos

    def in_step(
        self, live: RowsT_contra, padded: RowsT_contra | None = None
    ) -> tuple[TensorInfo, ...]:
        """The live rows that this rank holds of a bucket, or in an eager step.

        See Note [a part is cut from padded rows] in ``shards``.
        """
        infos = self.table(live)
        if not self.split:
            return infos
        return tuple(map(self._part, infos, infos if padded is None else self.table(padded)))

    def _part(self, live: TensorInfo, whole: TensorInfo) -> TensorInfo:
        dim = self.split.get(live.name)
        if dim is None:
            return live
        shape = list(live.shape)
        shape[dim] = live_part(shape[dim], part_rows(whole.shape[dim], self.dims.tp), self.dims.tp)
        return live._replace(shape=tuple(shape))

    def check_parts(self, runner: str, buckets: Iterable[RowsT_contra]) -> None:
        """Raises BuildError for a bucket whose rows do not divide by the ranks they are split over.

        Note [a bucket divides]
            Padding a bucket further in silence would replay other rows than the spec lists, and
            cutting unequal parts fails in the first reduce-scatter, which names neither number.
        """
        for padded in buckets if self.split else ():
            for info in self.table(padded):
                rows = info.shape[self.split[info.name]] if info.name in self.split else 0
                if rows % self.dims.tp.size:
                    raise BuildError(
                        f"{runner}, bucket {padded}: boundary.{info.name} has {rows} rows, which "
                        f"tp.size {self.dims.tp.size} does not divide; list buckets in multiples "
                        f"of {self.dims.tp.size}, or run with other ranks"
                    )

    def rewritten(self, full: RowsT_contra) -> dict[str, int]:
        """Bytes of each buffer that every replay rewrites whole, by its name in the arena."""
        return {
            f"{self.prefix}.{info.name}": bytes_of_shape(info.shape, info.dtype)
            for info in self.in_bucket(full)
        }

    def buffers(self, arena: DeviceArena, rows: RowsT_contra, full: RowsT_contra) -> HeldT:
        """Views, of a bucket's padded shape, of buffers that all buckets share."""
        whole = {info.name: check_shape(info.name, info.shape) for info in self.in_bucket(full)}
        return self.held(
            {
                info.name: arena.rows(
                    f"{self.prefix}.{info.name}", info.shape, whole[info.name], info.dtype
                )
                for info in self.in_bucket(rows)
            }
        )


class Outputs(Tensors[RowsT_contra, HeldT]):
    """What a stage gives: a boundary for the next one, or the last stage's outputs. Generated."""

    prefix = "output"
    views_only: ClassVar[bool] = True  # False where `keep` copies an output at each step
    ring_entries: ClassVar[Mapping[str, int]] = {}  # outputs with `keep: ring(n)`

    def __init__(
        self, dims: Any, dtype: torch.dtype, device: torch.device, layers: LayerRange
    ) -> None:
        super().__init__(dims, dtype, device, layers.end)
        self.rings: dict[str, OutputRing] = {}

    @abstractmethod
    def pick(
        self, result: object, boundary: object, names: tuple[str, ...]
    ) -> Mapping[str, object]:
        """The named tensors of the forward's result. Raises OutputError.

        ``boundary`` is what the stage received, for keys that the runtime hands on.
        """

    @abstractmethod
    def trim(self, buffers: HeldT, live: RowsT_contra) -> HeldT:
        """The live rows."""

    def kept(self, name: str, rows: Tensor) -> Tensor:
        """A copy of an output's live rows, in the next buffer of its ring.

        Or one of its own, in eager steps: of a runner that has no rings yet, and of more rows than
        any bucket has.
        """
        ring = self.rings.get(name)
        return rows.clone() if ring is None or not ring.holds(rows) else ring.keep(rows)

    def buffers(self, arena: DeviceArena, rows: RowsT_contra, full: RowsT_contra) -> HeldT:
        """As for all tensors; and the rings that keep some of them."""
        for info in self.table(full):
            if info.name in self.ring_entries and info.name not in self.rings:
                entries = self.ring_entries[info.name]
                ring = OutputRing(arena, info.name, info.shape, info.dtype, entries)
                self.rings[info.name] = ring
        return super().buffers(arena, rows, full)

    def store(self, result: object, buffers: HeldT, boundary: object) -> None:
        """Put the forward's result into the buffers, inside the captured region."""
        into = {name: rows for name, rows in _members(buffers) if rows is not None}
        values = self.pick(result, boundary, tuple(into))
        for name, rows in into.items():
            store(rows, values[name], self._label(name))

    def eager(self, result: object, boundary: object, live: RowsT_contra) -> HeldT:
        """The result of an eager step, checked to have exactly the live rows.

        What is kept for the caller is a copy here too: a forward may return what it was given.
        """
        infos = self.in_step(live)
        values = self.pick(result, boundary, tuple(info.name for info in infos))
        held = self.held(
            {
                info.name: check_result(
                    values[info.name], info.shape, info.dtype, self.device, self._label(info.name)
                )
                for info in infos
            }
        )
        return held if self.views_only else self.trim(held, live)

    def _label(self, name: str) -> str:
        return f"boundary.{name}" if self.prefix == "handed" else name


class Incoming(Tensors[RowsT_contra, HeldT]):
    """The boundary that a later stage takes. Generated."""

    prefix = "received"

    def __init__(
        self, dims: Any, dtype: torch.dtype, device: torch.device, layers: LayerRange
    ) -> None:
        super().__init__(dims, dtype, device, layers.start)
        self.past_live = PastLive(device)

    @abstractmethod
    def receive(self, into: HeldT, source: HeldT, live: RowsT_contra, host: BucketHost) -> None:
        """Take the live rows with the load of ``host``; nothing is copied that is in place."""

    @abstractmethod
    def reset(self, rows: HeldT, live: Tensor, axes: tuple[str, ...]) -> None:
        """Inside the captured region: rows past the live counts hold their padding.

        Note [padded rows received are never trusted]
            The sender's replay computed its padded rows too, so the receiver resets them, from
            the live counts of its own load, before its forward reads them.
        """

    def check(self, source: HeldT, live: RowsT_contra) -> HeldT:
        """The boundary of an eager step, checked to have exactly the live rows."""
        return self.held(
            {
                info.name: check_received(
                    getattr(source, info.name),
                    info.shape,
                    info.dtype,
                    self.device,
                    f"boundary.{info.name}",
                )
                for info in self.in_step(live)
            }
        )


def tensors_of(held: object) -> list[Tensor]:
    """The tensors that there are of a generated dataclass."""
    return [tensor for _, tensor in _members(held) if tensor is not None]


def _members(held: object) -> list[tuple[str, Tensor | None]]:
    """The tensors of a generated dataclass by name."""
    return [(field.name, getattr(held, field.name)) for field in fields(held)]  # type: ignore[arg-type]  # a dataclass
