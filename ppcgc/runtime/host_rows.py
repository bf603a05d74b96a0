"""Writing a host source into its rows of the host block, with every check it needs.

Values are checked against the slot's role at each step: they are on the host anyway.
"""

from __future__ import annotations

import ctypes
import struct
from array import array
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from ppcgc.runtime import roles
from ppcgc.runtime.errors import SourceError
from ppcgc.runtime.host_sources import (
    HostSource,
    as_host_tensor,
    check_fits,
    spread,
    spread_cells,
    spread_over,
)

# Note [small integers are read as Python integers]
#   A torch operation on a few dozen integers costs some microseconds, whatever it does; a
#   memoryview reads and writes them in tens of nanoseconds each. Rows of one dimension with an
#   integer dtype have such a view; beyond SMALL values torch is faster again.
SMALL = 256
INTS = frozenset({int})
FEW = 8  # see Note [the largest is found by numpy]
_IntegerCode: TypeAlias = Literal["b", "B", "h", "i", "l", "q"]
# int64 is named as numpy names it: its arrays fit as they are.
_INTEGER_CODES: dict[torch.dtype, _IntegerCode] = {
    torch.int8: "b",
    torch.uint8: "B",
    torch.int16: "h",
    torch.int32: "i",
    torch.int64: "l" if array("l").itemsize == 8 else "q",
}


def bytes_of(tensor: Tensor) -> memoryview[int]:
    """The memory of a contiguous CPU tensor, as Python reads and writes it; keep the tensor."""
    if not tensor.nbytes:
        return memoryview(bytearray())
    memory = (ctypes.c_char * tensor.nbytes).from_address(tensor.data_ptr())
    return memoryview(memory).cast("B")


_Integers: TypeAlias = "memoryview[int] | None"


def _integers(tensor: Tensor) -> _Integers:
    """The memory of a one-dimensional integer tensor, as integers."""
    code = _INTEGER_CODES.get(tensor.dtype)
    if code is None or tensor.dim() != 1 or not tensor.numel():
        return None
    return bytes_of(tensor).cast(code)


def _packer(ints: memoryview[int]) -> struct.Struct:
    """Writes all of the integers at once; as native as the view is."""
    return struct.Struct(f"{len(ints)}{ints.format}")


def _array_of(tensor: Tensor, ints: _Integers) -> Any:
    """The same memory as a numpy array; None where it holds other values, or without numpy."""
    if ints is None:
        return None
    try:
        return tensor.numpy()
    except RuntimeError:  # torch's word for a process without numpy
        return None


# Note [arrays are read through the buffer protocol]
#   Making a tensor of a numpy array costs more than all else that a slot's load does. A
#   memoryview of the array tells dtype, shape and contiguity, and its bytes are copied as they
#   are. What it cannot tell (another dtype, a stride) goes the long way, where errors are made.
#   For one dimension of integers, assigning to a slice of a view is all of it at once: Python
#   raises ValueError unless format and length are equal, so that nothing is written then.
_BUFFER_FORMATS: dict[torch.dtype, tuple[str, ...]] = {
    torch.bool: ("?",),
    torch.int8: ("b",),
    torch.uint8: ("B",),
    torch.int16: ("h",),
    torch.int32: ("i", "l") if array("l").itemsize == 4 else ("i",),
    torch.int64: ("q", "l") if array("l").itemsize == 8 else ("q",),
    torch.float16: ("e",),
    torch.float32: ("f",),
    torch.float64: ("d",),
}


# Note [tensors are read as memory]
#   A tensor has no buffer protocol, and `Tensor.numpy()` costs more than all else that a slot's
#   load does. So its rows are a slice of this view of all addresses, from where the tensor says
#   that it lies: slicing costs less than a call of C's memmove, and lengths that differ raise
#   ValueError.
_MEMORY = memoryview((ctypes.c_char * (1 << 62)).from_address(0)).cast("B")


class HostRows:
    """One slot's rows in one entry of the host ring, as one bucket lays them out."""

    __slots__ = (
        "_bytes",
        "_dim",
        "_dtype",
        "_formats",
        "_ints",
        "_most",
        "_most_integers",
        "_pack",
        "_rest",
        "_row_bytes",
        "_rows",
        "_signed",
        "_taking",
        "_unsigned",
        "_unsigned_ints",
        "name",
        "tensor",
    )

    def __init__(self, name: str, tensor: Tensor, dim: int) -> None:
        self.name = name
        self.tensor = tensor  # a view of the ring's entry, of the padded shape
        self._dim = dim
        self._dtype = tensor.dtype
        self._rest = tuple(tensor.shape[1:])
        self._ints = _integers(tensor)
        # bytes are text and no rows, though Python would take them as integers of this size
        self._taking: Any = self._ints if tensor.dtype is not torch.uint8 else None
        self._rows = rows = tensor.shape[0] if tensor.dim() else 1
        self._most_integers = -1 if self._ints is None else rows  # rows of one integer each
        self._row_bytes = tensor.nbytes // rows if rows else 0
        self._bytes = bytes_of(tensor)
        self._pack = None if self._ints is None else _packer(self._ints).pack_into
        # see Note [the largest is found by numpy]
        self._signed = signed = _array_of(tensor, self._ints)
        self._unsigned = None if signed is None else signed.view(f"u{self._row_bytes}")
        self._unsigned_ints: Any = None
        self._most = 0
        if self._ints is not None:
            code: Any = self._ints.format.upper()
            self._unsigned_ints = self._bytes.cast(code)
            self._most = torch.iinfo(self._dtype).max
        self._formats = _BUFFER_FORMATS.get(tensor.dtype, ()) if dim == 0 else ()

    def put(
        self, source: HostSource, live: int, *, cast: bool = False, broadcast: bool = False
    ) -> None:
        """Write the live rows. Raises SourceError when the source has another shape or dtype.

        The rows past ``live`` hold the padding already. ``broadcast`` lets the source lack leading
        dimensions.
        """
        rows: Any = source
        if type(rows) is not Tensor:
            if live <= self._rows:
                try:  # see Note [arrays are read through the buffer protocol]
                    self._taking[:live] = rows
                    return
                except (TypeError, ValueError):
                    if self._put_list(rows, live):
                        return  # else the long way takes it, or says what is wrong
            if self._put_buffer(source, live):
                return
        elif (
            live <= self._most_integers
            and rows.shape == (live,)
            and rows.dtype is self._dtype
            and rows.is_cpu
            and rows.is_contiguous()
        ):
            at, nbytes = rows.data_ptr(), live * self._row_bytes
            self._bytes[:nbytes] = _MEMORY[at : at + nbytes]
            return
        if (
            type(rows) is not Tensor
            or rows.dtype is not self._dtype
            or not rows.is_cpu
            or rows.layout is not torch.strided
        ):
            rows = as_host_tensor(source, self._dtype, self.name, cast=cast)
        if broadcast and live <= self.tensor.shape[self._dim]:
            rows = spread_over(rows, self.tensor.narrow(self._dim, 0, live).shape)
        if self._dim or rows.shape != (live, *self._rest) or live > self._rows:
            self.check_shape(rows.shape, live)
        if self._dim == 0 and rows.is_contiguous():
            at, nbytes = rows.data_ptr(), live * self._row_bytes
            self._bytes[:nbytes] = _MEMORY[at : at + nbytes]
        else:
            self.tensor.narrow(self._dim, 0, live).copy_(rows)

    def _put_list(self, source: Any, live: int) -> bool:
        """Write a list of integers that fit; False leaves it to ``put``."""
        ints = self._ints
        if ints is None or type(source) not in (list, tuple) or len(source) != live:
            return False
        # Python would take truths and tensors for integers
        if not INTS.issuperset(map(type, source)):
            return False
        try:
            ints[:live] = array(ints.format, source)
        except (OverflowError, TypeError):
            return False
        return True

    def _put_buffer(self, source: Any, live: int) -> bool:
        """Copy an array's bytes where it fits as it is; False leaves it to ``put``."""
        try:
            rows = memoryview(source)
        except (TypeError, ValueError, BufferError):  # no buffer, or one that Python cannot name
            return False
        if (
            rows.format not in self._formats
            or rows.shape != (live, *self._rest)
            or not rows.c_contiguous
            or not 0 < rows.nbytes <= len(self._bytes)
            or isinstance(source, bytes)  # text is no array
        ):
            return False
        self._bytes[: rows.nbytes] = rows.cast("B")
        return True

    def put_whole(self, source: HostSource, *, cast: bool = False, broadcast: bool = False) -> None:
        """Write a slot without a padded dimension. Raises SourceError for another shape."""
        rows = as_host_tensor(source, self.tensor.dtype, self.name, cast=cast)
        if broadcast:
            rows = spread_over(rows, self.tensor.shape)
        if rows.shape != self.tensor.shape:
            raise SourceError(
                f"slot {self.name}: the source has shape {list(rows.shape)}, "
                f"the slot has {list(self.tensor.shape)}"
            )
        self.tensor.copy_(rows)

    def check_shape(self, shape: torch.Size, live: int) -> None:
        """Raises SourceError unless ``shape`` is the slot's with ``live`` rows on its axis."""
        expected = list(self.tensor.shape)
        if live > expected[self._dim]:
            raise SourceError(
                f"slot {self.name}: {live} live rows, the bucket has {expected[self._dim]}"
            )
        expected[self._dim] = live
        if list(shape) != expected:
            raise SourceError(
                f"slot {self.name}: the source has shape {list(shape)}, "
                f"the live rows need {expected}"
            )

    def set_live(self, live: int, value: float) -> None:
        """Every live row holds ``value`` (``absent: {fill: v}``)."""
        self.tensor.narrow(self._dim, 0, live).fill_(value)

    def set_all(self, value: float) -> None:
        """Every padded row holds ``value``."""
        if self._pack is not None and self._rows == 1 and isinstance(value, int):
            self._set_integers(self._pack, (value,))
        else:
            check_fits(self.name, (value,), self._dtype)
            self.tensor.fill_(value)

    def set_rows(self, values: Sequence[int]) -> None:
        """One value for every padded row, the same in all of the row's elements."""
        if self._pack is not None and len(values) == self._rows:
            self._set_integers(self._pack, values)
        else:
            self.tensor.copy_(spread(self.name, values, self.tensor, self._dim))

    def set_cells(self, values: Sequence[Sequence[int]], dims: tuple[int, int]) -> None:
        """One value for every padded cell of two dimensions, the same in all of its elements."""
        self.tensor.copy_(spread_cells(self.name, values, self.tensor, dims))

    def pad_fill(self, live: int, value: float) -> None:
        """Rows past ``live`` hold ``value``: padding that depends on the step's live counts."""
        check_fits(self.name, (value,), self._dtype)
        self.tensor.narrow(self._dim, live, self.tensor.shape[self._dim] - live).fill_(value)

    def pad_repeat_last(self, live: int) -> None:
        """Rows past ``live`` repeat the last live one; the image holds 0 where there is none."""
        if live == 0:
            return
        if self._ints is not None:
            end, width = live * self._row_bytes, self._row_bytes
            self._bytes[end:] = self._bytes[end - width : end].tobytes() * (self._rows - live)
            return
        rows = self.tensor
        rows.narrow(self._dim, live, rows.shape[self._dim] - live).copy_(
            rows.narrow(self._dim, live - 1, 1)
        )

    def _set_integers(self, pack: Callable[..., None], values: Sequence[int]) -> None:
        """An integer for every row. Raises SourceError for one that the dtype cannot hold."""
        try:
            pack(self._bytes, 0, *values)
        except struct.error:
            check_fits(self.name, values, self._dtype)
            raise

    # ------------------------------------------------------------ roles, of the live rows

    # Note [the largest is found by numpy]
    #   `argmax` of an array costs a quarter of a microsecond for a few integers and no more for a
    #   thousand; each operation of torch costs several times that, and `max` of a memoryview less
    #   for some eight. Read as unsigned, a negative integer is larger than any other, so one look
    #   finds whatever is not in [0, limit). What does not pass, and all of it without numpy, is
    #   looked at by ``roles``, which makes the error.

    def _all_within(self, live: int, limit: int) -> bool:
        """Whether all live rows are surely in [0, limit)."""
        ints, unsigned = self._ints, self._unsigned
        if ints is None or not 0 < live <= self._rows:
            return False
        if live <= FEW:
            highest: int = max(self._unsigned_ints[:live])
            return highest < limit and highest <= self._most
        if unsigned is None:
            return False
        highest = ints[unsigned[:live].argmax()]
        return 0 <= highest < limit

    def _all_below(self, live: int, limit: int) -> bool:
        """Whether all live rows are surely below ``limit``; they may be negative."""
        ints, signed = self._ints, self._signed
        if ints is None or signed is None or not 0 < live <= self._rows:
            return False
        highest: int = ints[signed[:live].argmax()]
        return highest < limit

    def check_index(self, live: int, limit: int, *, skips_negative: bool = False) -> None:
        """See ``roles``, as for the checks below. All of them raise SourceError."""
        surely = self._all_below if skips_negative else self._all_within
        if not surely(live, limit):
            roles.check_index(self.name, self._live(live), limit, skips_negative=skips_negative)

    def check_write_index(self, live: int, limit: int, *, skips_negative: bool) -> None:
        surely = self._all_below if skips_negative else self._all_within
        if not surely(live, limit):
            roles.check_write_index(
                self.name, self._live(live), limit, skips_negative=skips_negative
            )

    def check_offsets(self, live: int, end: int, *, closed: bool) -> None:
        ints = self._ints
        if ints is not None and 0 < live <= SMALL:
            rows = ints[:live].tolist()
            ends_right = rows[-1] == end if closed else rows[-1] <= end
            if rows[0] == 0 and ends_right and rows == sorted(rows):
                return
        roles.check_offsets(self.name, self._live(live), end, closed=closed)

    def check_lengths(self, live: int, total: int) -> None:
        ints = self._ints
        if ints is not None and 0 < live <= SMALL:
            rows = ints[:live]
            if sum(rows) == total and min(rows) >= 0:
                return
        roles.check_lengths(self.name, self._live(live), total)

    def check_bounded(self, live: int, limit: int) -> None:
        if not self._all_within(live, limit + 1):
            roles.check_bounded(self.name, self._live(live), limit)

    def _live(self, live: int) -> Tensor:
        return self.tensor.narrow(self._dim, 0, live)
