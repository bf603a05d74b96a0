"""Writing a host source into its rows of the host block, with every check it needs.

A host source is a contiguous CPU tensor, a numpy array, or a sequence of ints, of exactly the
slot's dtype and exactly the live rows. Values are checked against the slot's role at each step:
they are on the host anyway.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TypeAlias

import torch
from torch import Tensor

from ppcgc.runtime.errors import AbsentSourceError, SourceError

HostSource: TypeAlias = object  # Tensor | numpy.ndarray | Sequence[int]; numpy is optional

ARRAY_DTYPES = {
    "|b1": torch.bool,
    "|u1": torch.uint8,
    "|i1": torch.int8,
    "<i2": torch.int16,
    "<i4": torch.int32,
    "<i8": torch.int64,
    "<f2": torch.float16,
    "<f4": torch.float32,
    "<f8": torch.float64,
}


def as_host_tensor(source: HostSource, dtype: torch.dtype, name: str) -> Tensor:
    """A CPU tensor of a host source. Raises SourceError for another kind, dtype or device."""
    if source is None:
        raise AbsentSourceError(
            f"slot {name}: the source is None; give rows, or say `absent:` in the spec"
        )
    if isinstance(source, Tensor):
        tensor = source
    elif hasattr(source, "__array_interface__"):
        tensor = torch.as_tensor(source)
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
    if tensor.dtype != dtype:
        raise SourceError(
            f"slot {name}: the source is {tensor.dtype}, the slot is {dtype}; "
            "convert the source, or say `cast: true`"
        )
    return tensor


def _from_sequence(source: Sequence[object], dtype: torch.dtype, name: str) -> Tensor:
    if dtype.is_floating_point:
        raise SourceError(f"slot {name}: a {dtype} slot needs a tensor or an array, not a sequence")
    for row, value in enumerate(source):
        if not isinstance(value, int):
            raise SourceError(f"slot {name}: row {row} of the source is {value!r}, not an integer")
    try:
        wide = torch.tensor(source, dtype=torch.int64)
    except (OverflowError, RuntimeError) as problem:
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


class HostRows:
    """One slot's rows in one entry of the host ring, as one bucket lays them out."""

    __slots__ = ("_address", "_dim", "_row_bytes", "name", "tensor")

    def __init__(self, name: str, tensor: Tensor, dim: int) -> None:
        self.name = name
        self.tensor = tensor  # a view of the ring's entry, of the padded shape
        self._dim = dim
        self._address = tensor.data_ptr()
        rows = tensor.shape[0] if tensor.dim() else 1
        self._row_bytes = tensor.nbytes // rows if rows else 0

    def put(self, source: HostSource, live: int, *, cast: bool = False) -> None:
        """Write the live rows. Raises SourceError when the source has another shape or dtype.

        The rows past ``live`` hold the padding already.
        """
        dtype = self.tensor.dtype
        if cast and isinstance(source, Tensor):
            source = source.to(dtype)
        rows = as_host_tensor(source, dtype, self.name)
        self.check_shape(rows.shape, live)
        if self._dim == 0 and rows.is_contiguous():
            ctypes.memmove(self._address, rows.data_ptr(), live * self._row_bytes)
        else:
            self.tensor.narrow(self._dim, 0, live).copy_(rows)

    def put_whole(self, source: HostSource, *, cast: bool = False) -> None:
        """Write a slot without a padded dimension. Raises SourceError for another shape."""
        if cast and isinstance(source, Tensor):
            source = source.to(self.tensor.dtype)
        rows = as_host_tensor(source, self.tensor.dtype, self.name)
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
        self.tensor.fill_(value)

    def set_rows(self, values: Sequence[int]) -> None:
        """One value for every padded row of a slot with one dimension."""
        self.tensor.copy_(torch.tensor(values, dtype=self.tensor.dtype))

    def pad_fill(self, live: int, value: float) -> None:
        """Rows past ``live`` hold ``value``: padding that depends on the step's live counts."""
        self.tensor.narrow(self._dim, live, self.tensor.shape[self._dim] - live).fill_(value)

    def pad_repeat_last(self, live: int) -> None:
        """Rows past ``live`` repeat the last live one; the image holds 0 where there is none."""
        if live == 0:
            return
        rows = self.tensor
        rows.narrow(self._dim, live, rows.shape[self._dim] - live).copy_(
            rows.narrow(self._dim, live - 1, 1)
        )

    # ------------------------------------------------------------ roles

    def check_index(self, live: int, limit: int) -> None:
        """Raises SourceError unless every live value is in [0, limit)."""
        low, high = self._range(live)
        if low < 0 or high >= limit:
            raise SourceError(
                f"slot {self.name}: live values run from {low} to {high}, "
                f"legal are 0 to {limit - 1}"
            )

    def check_write_index(self, live: int, limit: int, *, skips_negative: bool) -> None:
        """As ``check_index``; a negative value is legal where the consumer skips it."""
        low, high = self._range(live)
        if high >= limit or (low < 0 and not skips_negative):
            raise SourceError(
                f"slot {self.name}: live values run from {low} to {high}, the state has rows "
                f"0 to {limit - 1}"
            )

    def check_offsets(self, live: int, end: int, *, closed: bool) -> None:
        """Raises SourceError unless live offsets start at 0, do not decrease and end at ``end``.

        ``closed``: the n + 1 form, whose last value is the end itself; else each value is a start.
        """
        if live == 0:
            return
        rows = self.tensor.narrow(self._dim, 0, live)
        first, last = int(rows[0]), int(rows[-1])
        ends_right = last == end if closed else last <= end
        if first != 0 or not ends_right or bool((rows[1:] < rows[:-1]).any()):
            raise SourceError(
                f"slot {self.name}: offsets {rows.tolist()} must start at 0, not decrease, and "
                f"{'end at' if closed else 'stay within'} the {end} live rows"
            )

    def check_lengths(self, live: int, total: int) -> None:
        """Raises SourceError unless the live lengths are non-negative and add up to ``total``."""
        rows = self.tensor.narrow(self._dim, 0, live)
        found = int(rows.sum())
        if found != total or (live and int(rows.min()) < 0):
            raise SourceError(
                f"slot {self.name}: lengths {rows.tolist()} add up to {found}, "
                f"the axis has {total} live rows"
            )

    def check_bounded(self, live: int, limit: int) -> None:
        """Raises SourceError unless every live value is in [0, limit]."""
        low, high = self._range(live)
        if low < 0 or high > limit:
            raise SourceError(
                f"slot {self.name}: live values run from {low} to {high}, legal are 0 to {limit}"
            )

    def _range(self, live: int) -> tuple[int, int]:
        rows = self.tensor.narrow(self._dim, 0, live)
        if rows.numel() == 0:
            return 0, 0
        low, high = torch.aminmax(rows)
        return int(low), int(high)
