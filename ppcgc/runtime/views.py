"""Base classes of the generated, typed views: slots of a bucket, boundary, outputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING

from torch import Tensor

from ppcgc.runtime.errors import MissingSlotError


class View:
    """Prints as names, dtypes and shapes: reading values would wait for the device."""

    __slots__ = ()

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{field.name}={_shown(getattr(self, field.name))}"
            for field in fields(self)  # type: ignore[arg-type]  # subclasses are dataclasses
        )
        return f"{type(self).__name__}({shown})"


def _shown(value: object) -> str:
    if not isinstance(value, Tensor):
        return repr(value)  # None, or a group of slots
    dtype = str(value.dtype).removeprefix("torch.")
    return f"{dtype}{list(value.shape)} on {value.device}"


class SlotView(View):
    """A closed set of slots: the padded buffers of one bucket, or a batch's own live rows.

    Any attribute that is not a slot of the stage raises MissingSlotError, which names it.
    """

    __slots__ = ()

    if not TYPE_CHECKING:  # a visible __getattr__ would hide missing slots from a type checker

        def __getattr__(self, name: str) -> Tensor:
            if name.startswith("__"):
                raise AttributeError(name)
            have = ", ".join(field.name for field in fields(self))
            raise MissingSlotError(
                f"{type(self).__name__} has no slot {name!r}: this stage has {have}. "
                "Declare the slot for this stage in the spec, or do not read it here"
            )


class Boundary(View):
    """What one stage hands to the next, readable by attribute, by key, or as a mapping.

    A key that does not cross this cut is None as an attribute and no key of the mapping, so that
    a forward may ask ``"topk_indices" in boundary``.

    Note [where a boundary was cut]
        Every cut of a pipeline may have the same keys and shapes, so nothing else about a boundary
        tells that a stage was left out, or run twice. The runner that gives one out writes the
        first layer behind the cut on it; one that a caller has made has none.
    """

    __slots__ = ("_cut",)  # no key begins so

    def __getitem__(self, key: str) -> Tensor:
        if key in self.declared() and key not in self:
            raise MissingSlotError(
                f"boundary key {key!r} does not cross this cut: its `when` does not hold there"
            )
        if key not in self:
            raise MissingSlotError(
                f"the boundary has no key {key!r}: it has {', '.join(self.keys())}. "
                "Declare the key under pipeline.boundary, or do not read it"
            )
        value: Tensor = getattr(self, key)
        return value

    def __contains__(self, key: object) -> bool:
        return key in self.keys()

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.keys())

    def declared(self) -> tuple[str, ...]:
        """Every key of the spec, whether it crosses this cut or not."""
        return tuple(field.name for field in fields(self))  # type: ignore[arg-type]  # subclasses are dataclasses

    def keys(self) -> tuple[str, ...]:
        """The keys that cross this cut."""
        return tuple(key for key in self.declared() if getattr(self, key) is not None)

    def items(self) -> Iterator[tuple[str, Tensor]]:
        return ((key, self[key]) for key in self.keys())


def cut_of(boundary: object, family: str) -> int | None:
    """The first layer of the stage that it is for.

    None where no runner of the family wrote it down: what a caller made, a copy, another family's.
    """
    cut: tuple[str, int] | None = None
    if isinstance(boundary, Boundary):
        cut = getattr(boundary, "_cut", None)
    return cut[1] if cut is not None and cut[0] == family else None


def write_cut(given: object, family: str, layer: int) -> None:
    """Write the first layer behind the cut on a boundary; other outputs have none."""
    if isinstance(given, Boundary):
        object.__setattr__(given, "_cut", (family, layer))  # generated boundaries are frozen
