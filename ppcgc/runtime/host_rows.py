"""Writing a host source into its rows of the host block, with every check it needs.

A host source is a contiguous CPU tensor, a numpy array, or a sequence of ints, of exactly the
slot's dtype and exactly the live rows. Values are checked against the slot's role at each step:
they are on the host anyway.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, TypeVar

import torch
from torch import Tensor

from ppcgc.runtime import roles
from ppcgc.runtime.errors import AbsentSourceError, SourceError

HostSource: TypeAlias = object  # Tensor | numpy.ndarray | Sequence[int]; numpy is optional


def as_host_tensor(
    source: HostSource, dtype: torch.dtype, name: str, *, cast: bool = False
) -> Tensor:
    """A CPU tensor of a host source. Raises SourceError for another kind, device or dtype.

    ``cast`` converts another dtype.
    """
    if source is None:
        raise AbsentSourceError(
            f"slot {name}: the source is None; give rows, or say `absent:` in the spec"
        )
    if isinstance(source, Tensor):
        tensor = source
    elif hasattr(source, "__array_interface__"):
        tensor = _from_array(source, name)
    elif isinstance(source, Sequence) and not isinstance(source, str | bytes):
        tensor = _from_sequence(source, dtype, name)
    else:
        raise SourceError(
            f"slot {name}: the source is a {type(source).__name__}; a host source is a CPU tensor, "
            "a numpy array or a sequence of ints"
        )
    if tensor.device.type != "cpu":
        raise SourceError(
            f"slot {name}: the source is on {tensor.device}, the spec says `residency: host`; "
            "give a CPU tensor, or change the residency"
        )
    if tensor.dtype == dtype:
        return tensor
    if cast:
        return tensor.to(dtype)
    raise SourceError(
        f"slot {name}: the source is {tensor.dtype}, the slot is {dtype}; "
        "convert the source, or say `cast: true`"
    )


def _from_array(source: Any, name: str) -> Tensor:
    """The memory of a numpy array as a tensor.

    A read-only array is copied, or torch warns; one with a negative stride, or torch refuses it.
    """
    interface = source.__array_interface__
    _, read_only = interface["data"]
    backwards = any(stride < 0 for stride in interface.get("strides") or ())
    try:
        return torch.as_tensor(source.copy() if read_only or backwards else source)
    except (TypeError, ValueError) as problem:  # a dtype that torch lacks
        raise SourceError(f"slot {name}: the array cannot be read: {problem}") from None


def _from_sequence(source: Sequence[object], dtype: torch.dtype, name: str) -> Tensor:
    if dtype.is_floating_point:
        raise SourceError(f"slot {name}: a {dtype} slot needs a tensor or an array, not a sequence")
    for row, value in enumerate(source):
        if not isinstance(value, int):
            raise SourceError(f"slot {name}: row {row} of the source is {value!r}, not an integer")
    try:
        wide = torch.tensor(source, dtype=torch.int64)
    except (OverflowError, RuntimeError, ValueError) as problem:
        raise SourceError(f"slot {name}: a value does not fit into int64: {problem}") from None
    if len(wide) and dtype != torch.bool:
        limits = torch.iinfo(dtype)
        low, high = int(wide.min()), int(wide.max())
        if low < limits.min or high > limits.max:
            raise SourceError(
                f"slot {name}: values {low} to {high} do not fit into {dtype} "
                f"({limits.min} to {limits.max})"
            )
    return wide.to(dtype)


SourceT = TypeVar("SourceT")


def spread_over(source: SourceT, shape: Sequence[int]) -> SourceT | Tensor:
    """``broadcast: true``: a tensor that lacks leading dimensions, repeated along them."""
    if isinstance(source, Tensor) and source.dim() < len(shape):
        lacking = len(shape) - source.dim()
        if list(source.shape) == list(shape[lacking:]):
            return source.expand(*shape)
    return source


def spread(values: Sequence[int], rows: Tensor, dim: int) -> Tensor:
    """One value a row along ``dim``, broadcastable to ``rows``. Raises SourceError."""
    shape = [1] * rows.dim()
    shape[dim] = len(values)
    try:
        return torch.tensor(values, dtype=rows.dtype).view(shape)
    except (OverflowError, RuntimeError, ValueError) as problem:
        raise SourceError(f"a computed value does not fit into {rows.dtype}: {problem}") from None


def spread_cells(values: Sequence[Sequence[int]], rows: Tensor, dims: tuple[int, int]) -> Tensor:
    """One value a cell of two dimensions, broadcastable to ``rows``. Raises SourceError."""
    first, second = (rows.shape[dim] for dim in dims)
    shape = [1] * rows.dim()
    shape[dims[0]], shape[dims[1]] = first, second
    try:
        cells = torch.tensor(values, dtype=rows.dtype).view(first, second)
    except (OverflowError, RuntimeError, ValueError) as problem:
        raise SourceError(f"a computed value does not fit into {rows.dtype}: {problem}") from None
    return (cells if dims[0] < dims[1] else cells.t()).reshape(shape)


# Note [small integers are read as Python integers]
#   A torch operation on a few dozen integers costs some microseconds, whatever it does; a
#   memoryview reads and writes them in tens of nanoseconds each. Rows of one dimension with an
#   integer dtype have such a view; beyond SMALL values torch is faster again.
SMALL = 256
_IntegerCode: TypeAlias = Literal["b", "B", "h", "H", "i", "I", "l", "L", "q", "Q"]
# Each code with its unsigned twin. int64 is named as numpy names it: its arrays fit as they are.
_INTEGER_CODES: dict[torch.dtype, tuple[_IntegerCode, _IntegerCode]] = {
    torch.int8: ("b", "B"),
    torch.uint8: ("B", "B"),
    torch.int16: ("h", "H"),
    torch.int32: ("i", "I"),
    torch.int64: ("l", "L") if array("l").itemsize == 8 else ("q", "Q"),
}


def bytes_of(tensor: Tensor) -> memoryview[int]:
    """The memory of a contiguous CPU tensor, as Python reads and writes it; keep the tensor."""
    if not tensor.nbytes:
        return memoryview(bytearray())
    memory = (ctypes.c_char * tensor.nbytes).from_address(tensor.data_ptr())
    return memoryview(memory).cast("B")


_Integers: TypeAlias = "memoryview[int] | None"


def _integers(tensor: Tensor) -> tuple[_Integers, _Integers]:
    """The memory of a one-dimensional integer tensor, as its own and as unsigned integers."""
    codes = _INTEGER_CODES.get(tensor.dtype)
    if codes is None or tensor.dim() != 1 or not tensor.numel():
        return None, None
    memory = bytes_of(tensor)
    return memory.cast(codes[0]), memory.cast(codes[1])


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


# C's memmove(to, from, bytes), called with the interpreter's lock held: to let it go and take it
# again costs more than to move a few hundred bytes
_move_bytes = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)(
    ctypes.cast(ctypes.memmove, ctypes.c_void_p).value or 0
)


class HostRows:
    """One slot's rows in one entry of the host ring, as one bucket lays them out."""

    __slots__ = (
        "_address",
        "_bytes",
        "_dim",
        "_dtype",
        "_formats",
        "_ints",
        "_rest",
        "_row_bytes",
        "_rows",
        "_taking",
        "_unsigned",
        "name",
        "tensor",
    )

    def __init__(self, name: str, tensor: Tensor, dim: int) -> None:
        self.name = name
        self.tensor = tensor  # a view of the ring's entry, of the padded shape
        self._dim = dim
        self._dtype = tensor.dtype
        self._rest = tuple(tensor.shape[1:])
        self._ints, self._unsigned = _integers(tensor)
        # bytes are text and no rows, though Python would take them as integers of this size
        self._taking: Any = self._ints if tensor.dtype is not torch.uint8 else None
        self._address = tensor.data_ptr()
        self._rows = rows = tensor.shape[0] if tensor.dim() else 1
        self._row_bytes = tensor.nbytes // rows if rows else 0
        self._bytes = bytes_of(tensor)
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
            self._ints is not None
            and rows.shape == (live,)
            and rows.dtype is self._dtype
            and rows.is_cpu
            and rows.is_contiguous()
            and live <= self._rows
        ):
            _move_bytes(self._address, rows.data_ptr(), live * self._row_bytes)
            return
        if type(rows) is not Tensor or rows.dtype is not self._dtype or not rows.is_cpu:
            rows = as_host_tensor(source, self._dtype, self.name, cast=cast)
        if broadcast and live <= self.tensor.shape[self._dim]:
            rows = spread_over(rows, self.tensor.narrow(self._dim, 0, live).shape)
        if self._dim or rows.shape != (live, *self._rest) or live > self._rows:
            self.check_shape(rows.shape, live)
        if self._dim == 0 and rows.is_contiguous():
            _move_bytes(self._address, rows.data_ptr(), live * self._row_bytes)
        else:
            self.tensor.narrow(self._dim, 0, live).copy_(rows)

    def _put_list(self, source: Any, live: int) -> bool:
        """Write a list of integers that fit; False leaves it to ``put``."""
        ints = self._ints
        if ints is None or type(source) not in (list, tuple) or len(source) != live:
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
        except TypeError:
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
        if self._ints is not None and self._rows == 1 and isinstance(value, int):
            self._set_integers(0, (value,))
        else:
            self.tensor.fill_(value)

    def set_rows(self, values: Sequence[int]) -> None:
        """One value for every padded row, the same in all of the row's elements."""
        if self._ints is not None and len(values) == self._rows:
            self._set_integers(0, values)
        else:
            self.tensor.copy_(spread(values, self.tensor, self._dim))

    def set_cells(self, values: Sequence[Sequence[int]], dims: tuple[int, int]) -> None:
        """One value for every padded cell of two dimensions, the same in all of its elements."""
        self.tensor.copy_(spread_cells(values, self.tensor, dims))

    def pad_fill(self, live: int, value: float) -> None:
        """Rows past ``live`` hold ``value``: padding that depends on the step's live counts."""
        self.tensor.narrow(self._dim, live, self.tensor.shape[self._dim] - live).fill_(value)

    def pad_repeat_last(self, live: int) -> None:
        """Rows past ``live`` repeat the last live one; the image holds 0 where there is none."""
        if live == 0:
            return
        ints = self._ints
        if ints is not None:
            ints[live:] = array(ints.format, (ints[live - 1],)) * (self._rows - live)
            return
        rows = self.tensor
        rows.narrow(self._dim, live, rows.shape[self._dim] - live).copy_(
            rows.narrow(self._dim, live - 1, 1)
        )

    def _set_integers(self, start: int, values: Sequence[int]) -> None:
        """Write integers from a row on. Raises SourceError for one that the dtype cannot hold."""
        ints = self._ints
        if ints is None or not values:
            return
        try:
            ints[start : start + len(values)] = array(ints.format, values)
        except (OverflowError, TypeError) as problem:
            raise SourceError(
                f"slot {self.name}: a computed value does not fit into {self._dtype}: {problem}"
            ) from None

    # ------------------------------------------------------------ roles, of the live rows

    # Note [a negative integer is a large unsigned one]
    #   One pass over the unsigned values tells both that none is negative and that none is too
    #   large. Whatever does not pass is looked at again by ``roles``, which makes the error.

    def check_index(self, live: int, limit: int) -> None:
        """See ``roles``, as for the checks below. All of them raise SourceError."""
        rows = self._unsigned
        if rows is not None and 0 < live <= SMALL and max(rows[:live]) < limit:
            return
        roles.check_index(self.name, self._live(live), limit)

    def check_write_index(self, live: int, limit: int, *, skips_negative: bool) -> None:
        rows = self._ints if skips_negative else self._unsigned
        if rows is not None and 0 < live <= SMALL and max(rows[:live]) < limit:
            return
        roles.check_write_index(self.name, self._live(live), limit, skips_negative=skips_negative)

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
        rows = self._unsigned
        if rows is not None and 0 < live <= SMALL and max(rows[:live]) <= limit:
            return
        roles.check_bounded(self.name, self._live(live), limit)

    def _live(self, live: int) -> Tensor:
        return self.tensor.narrow(self._dim, 0, live)
