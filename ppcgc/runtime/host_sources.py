"""What a host source may be: a contiguous CPU tensor, a numpy array, or a sequence of ints.

Of exactly the slot's dtype and exactly the live rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from operator import index
from typing import Any, SupportsIndex, TypeAlias, TypeVar

import torch
from torch import Tensor

from ppcgc.runtime.errors import AbsentSourceError, SourceError

HostSource: TypeAlias = object  # Tensor | numpy.ndarray | Sequence[int]; numpy is optional


def check_dense(source: Tensor, what: str) -> None:
    """Raises SourceError for a tensor whose rows do not lie in memory one behind the other."""
    if source.layout is not torch.strided:
        raise SourceError(f"{what} is a {source.layout} tensor; give a dense one, `to_dense()`")


def as_host_tensor(
    source: HostSource, dtype: torch.dtype, name: str, *, cast: bool = False
) -> Tensor:
    """A CPU tensor of a host source. Raises SourceError for another kind, device or dtype.

    ``cast`` converts another dtype, where every value of an integer slot stays what it is.
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
    check_dense(tensor, f"slot {name}: the source")
    if tensor.device.type != "cpu":
        raise SourceError(
            f"slot {name}: the source is on {tensor.device}, the spec says `residency: host`; "
            "give a CPU tensor, or change the residency"
        )
    if tensor.dtype == dtype:
        return tensor
    if cast:
        return _converted(tensor, dtype, name)
    raise SourceError(
        f"slot {name}: the source is {tensor.dtype}, the slot is {dtype}; "
        "convert the source, or say `cast: true`"
    )


def _converted(tensor: Tensor, dtype: torch.dtype, name: str) -> Tensor:
    """Raises SourceError for integers that would wrap, fractions and imaginary parts cut off."""
    if tensor.is_complex() and not dtype.is_complex:
        raise SourceError(
            f"slot {name}: the source is {tensor.dtype}, the slot is {dtype}: a cast drops the "
            "imaginary parts; give `source.real`"
        )
    whole = not (dtype.is_floating_point or dtype.is_complex or dtype == torch.bool)
    if not whole or not tensor.numel() or tensor.dtype == torch.bool:
        return tensor.to(dtype)
    _check_range(tensor, dtype, name)
    if tensor.is_floating_point() and bool((tensor != tensor.trunc()).any()):
        raise SourceError(
            f"slot {name}: the source is {tensor.dtype} with fractions, the slot is {dtype}: a "
            "cast cuts them off; round them as you mean it"
        )
    return tensor.to(dtype)


def _check_range(values: Tensor, dtype: torch.dtype, name: str) -> None:
    """Raises SourceError unless all values, of which there are some, fit into an integer dtype."""
    limits = torch.iinfo(dtype)
    low, high = values.min().item(), values.max().item()
    if not (limits.min <= low and high <= limits.max):  # false for a nan as well
        raise SourceError(
            f"slot {name}: values {low} to {high} do not fit into {dtype} "
            f"({limits.min} to {limits.max})"
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
    integers = []
    for row, value in enumerate(source):
        integer = _integer(value)
        if integer is None or (isinstance(value, bool) and dtype != torch.bool):
            raise SourceError(
                f"slot {name}: row {row} of the source is {value!r}, not an integer; give a tensor "
                "or an array for rows of other kinds"
            )
        integers.append(integer)
    try:
        wide = torch.tensor(integers, dtype=torch.int64)
    except (OverflowError, RuntimeError, ValueError) as problem:
        raise SourceError(f"slot {name}: a value does not fit into int64: {problem}") from None
    if len(wide) and dtype != torch.bool:
        _check_range(wide, dtype, name)
    return wide.to(dtype)


def _integer(value: object) -> int | None:
    """An integer of Python or numpy. A tensor is none: it may be on a device."""
    if isinstance(value, Tensor) or not isinstance(value, SupportsIndex):
        return None
    try:
        return index(value)
    except TypeError:  # an array of several elements
        return None


SourceT = TypeVar("SourceT")


def spread_over(source: SourceT, shape: Sequence[int]) -> SourceT | Tensor:
    """``broadcast: true``: a tensor that lacks leading dimensions, repeated along them."""
    if isinstance(source, Tensor) and source.dim() < len(shape):
        lacking = len(shape) - source.dim()
        if list(source.shape) == list(shape[lacking:]):
            return source.expand(*shape)
    return source


def check_fits(name: str, values: Iterable[float], dtype: torch.dtype) -> None:
    """Raises SourceError for an integer that the dtype cannot hold: torch may wrap it."""
    if dtype is torch.bool or dtype.is_complex:
        return
    limits = torch.finfo(dtype) if dtype.is_floating_point else torch.iinfo(dtype)
    for value in values:
        if isinstance(value, int) and not limits.min <= value <= limits.max:
            raise SourceError(
                f"slot {name}: a computed value does not fit into {dtype}: {value}, legal are "
                f"{limits.min} to {limits.max}; give the slot a wider dtype, or smaller numbers"
            )


def fitting(name: str, value: float, slot: Tensor) -> float:
    """``value`` itself, for rows of this slot. Raises SourceError as above."""
    check_fits(name, (value,), slot.dtype)
    return value


def spread(name: str, values: Sequence[int], rows: Tensor, dim: int) -> Tensor:
    """One value a row along ``dim``, broadcastable to ``rows``. Raises SourceError."""
    check_fits(name, values, rows.dtype)
    shape = [1] * rows.dim()
    shape[dim] = len(values)
    return torch.tensor(values, dtype=rows.dtype).view(shape)


def spread_cells(
    name: str, values: Sequence[Sequence[int]], rows: Tensor, dims: tuple[int, int]
) -> Tensor:
    """One value a cell of two dimensions, broadcastable to ``rows``. Raises SourceError."""
    check_fits(name, chain.from_iterable(values), rows.dtype)
    first, second = (rows.shape[dim] for dim in dims)
    shape = [1] * rows.dim()
    shape[dims[0]], shape[dims[1]] = first, second
    cells = torch.tensor(values, dtype=rows.dtype).view(first, second)
    return (cells if dims[0] < dims[1] else cells.t()).reshape(shape)
