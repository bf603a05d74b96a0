"""The slots of a stage: what they are, where they lie, how a batch fills them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import torch
from torch import Tensor

from ppcgc.runtime.arena import DeviceArena, bytes_of_shape
from ppcgc.runtime.dims import Sizes, check_shape
from ppcgc.runtime.host_block import BucketHost, HostSlot
from ppcgc.runtime.slot_info import SlotInfo

if TYPE_CHECKING:  # see Note [what an import does not need] in ``ppcgc.runtime``
    from ppcgc.runtime.layers import LayerRange

ExtentsT = TypeVar("ExtentsT", bound=tuple[int, ...])
BatchT = TypeVar("BatchT")
DimsT = TypeVar("DimsT", bound=Sizes)
SlotsT = TypeVar("SlotsT")


class Inputs(ABC, Generic[ExtentsT, BatchT, DimsT, SlotsT]):
    """The slots of a stage. Generated subclasses fill them in straight lines."""

    facts: ClassVar[tuple[SlotInfo, ...]]  # in declared order

    def __init__(
        self, dims: DimsT, dtype: torch.dtype, device: torch.device, layers: LayerRange
    ) -> None:
        self.dims = dims
        self.dtype = dtype
        self.device = device
        self.layers = layers

    def table(self) -> tuple[SlotInfo, ...]:
        """Facts about every slot, in declared order."""
        return self.facts

    @abstractmethod
    def shapes(self, rows: ExtentsT) -> dict[str, tuple[int, ...]]:
        """The shape of every slot with these rows on the axes."""

    def lacks(self, rows: ExtentsT) -> frozenset[str]:
        """Slots that do not exist in this build, or in a bucket with these rows."""
        return frozenset()

    def initials(self) -> dict[str, float]:
        """What slots hold before a step writes them, where that is not zero.

        In the host block it is the constant padding, from which every load starts; elsewhere
        the constant of `const` or the first contents of `keep`.
        """
        return {}

    @abstractmethod
    def slots(self, of: Mapping[str, Tensor]) -> SlotsT:
        """The typed object of these slots. A slot that is missing in ``of`` is None on it."""

    @abstractmethod
    def load(
        self, slots: SlotsT, host: BucketHost, batch: BatchT, live: ExtentsT, padded: ExtentsT
    ) -> None:
        """Fill every slot: live rows from the batch, the rest by its padding."""

    def pad_late(self, slots: SlotsT, live: ExtentsT, padded: ExtentsT) -> None:
        """Pad slots that the caller or a hook wrote after the load.

        Note [padding that waits for the rows]
            Between ``begin`` and ``finish`` such a slot is open, past its live rows too, and a row
            that padding repeats is not there yet. So this runs right before the plans and the
            replay: on its stream, where the writes are, and by the live counts that the host
            knows. Nothing waits for the device.
        """

    @abstractmethod
    def bind(self, batch: BatchT, boundary: Any, live: ExtentsT) -> SlotsT:
        """The batch's own rows for an eager step, uncopied where they are on the device."""

    def capture_fills(self, padded: ExtentsT) -> dict[str, float]:
        """The value that a slot's rows have while this bucket is captured; others go by role."""
        return {}

    def absent(self, batch: BatchT) -> str | None:
        """The first slot whose source is None and that then wants an eager step."""
        return None

    # ------------------------------------------------------------ memory

    def host_slots(self, rows: ExtentsT) -> tuple[HostSlot, ...]:
        """The slots that the host fills, as the block of a bucket lays them out."""
        shapes, initials = self.shapes(rows), self.initials()
        return tuple(
            HostSlot(
                name=info.name,
                shape=check_shape(info.name, shapes[info.name]),
                dtype=info.dtype or self.dtype,
                dim=info.dim,
                image=initials.get(info.name, 0),
            )
            for info in self.facts
            if info.in_block
        )

    def rewritten(self, full: ExtentsT) -> dict[str, int]:
        """Bytes of each slot of one address that every load rewrites whole, by name in the arena.

        Not those of the block; received keys are for ``Incoming`` to tell.
        """
        whole = self.shapes(full)
        return {
            f"slot.{info.name}": bytes_of_shape(whole[info.name], info.dtype or self.dtype)
            for info in self.facts
            if info.rewritten and not info.in_block
        }

    def allocate(
        self, arena: DeviceArena, host: tuple[Tensor, ...], rows: ExtentsT, full: ExtentsT
    ) -> SlotsT:
        """The slots of a bucket. ``host`` are the device views of ``host_slots``.

        A slot that shows a key of the boundary is the very buffer that the key is received in.
        """
        shapes, whole, initials = self.shapes(rows), self.shapes(full), self.initials()
        views, lacking = iter(host), self.lacks(rows)
        found: dict[str, Tensor] = {}
        for info in self.facts:
            name, dtype = info.name, info.dtype or self.dtype
            view = next(views) if info.in_block else None
            if name in lacking:
                continue
            size = (shapes[name], check_shape(name, whole[name]), dtype)
            if view is not None:
                found[name] = view
            elif info.host_only:
                found[name] = arena.host_rows(f"slot.{name}", *size)
            elif info.boundary is not None:
                found[name] = arena.rows(f"received.{info.boundary}", *size)
            else:
                found[name] = arena.rows(f"slot.{name}", *size, initials.get(name, 0))
            if info.mirror is not None:
                found[f"{name}_host"] = arena.host_rows(f"mirror.{name}", *size)
        return self.slots(found)
