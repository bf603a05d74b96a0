"""The boundary that a later stage takes: live rows taken, all others reset inside the graph."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ppcgc.runtime.errors import SourceError
from ppcgc.runtime.host_sources import check_dense

_FLOAT8 = frozenset({torch.float8_e4m3fn, torch.float8_e5m2})


def receive_rows(slot: Tensor, source: Tensor | None, shape: tuple[int, ...], name: str) -> None:
    """Take the live rows, of this shape, of a boundary tensor. Raises SourceError.

    Nothing is copied when the sender wrote into this very slot.
    """
    if (
        type(source) is Tensor
        and source.layout is torch.strided
        and source.data_ptr() == slot.data_ptr()
        and source.shape == shape
        and source.stride() == slot.stride()
        and source.dtype is slot.dtype
        and source.device == slot.device
        and not source.requires_grad
        and shape[:1] <= slot.shape[:1]
        and shape[1:] == slot.shape[1:]
    ):
        return  # every check below at once, for what each step of a pipeline does
    if any(live > padded for live, padded in zip(shape, slot.shape, strict=True)):
        raise SourceError(f"{name}: {list(shape)} live rows, the bucket has {list(slot.shape)}")
    rows = check_received(source, shape, slot.dtype, slot.device, name)
    if rows.data_ptr() != slot.data_ptr():
        for dim, live in enumerate(shape):
            slot = slot.narrow(dim, 0, live)
        slot.copy_(rows)
    elif any(
        live > 1 and given != own
        for live, given, own in zip(shape, rows.stride(), slot.stride(), strict=True)
    ):
        raise SourceError(
            f"{name}: the rows received lie in the slot itself in another order, strides "
            f"{list(rows.stride())}, the slot has {list(slot.stride())}; send the slot's own rows, "
            "or rows elsewhere"
        )


def check_received(
    source: object, shape: Sequence[int], dtype: torch.dtype, device: torch.device, name: str
) -> Tensor:
    """A received tensor of exactly the live rows, for an eager step. Raises SourceError."""
    if not isinstance(source, Tensor):
        raise SourceError(f"{name}: received a {type(source).__name__}, not a tensor")
    check_dense(source, f"{name}: the tensor received")
    if list(source.shape) != list(shape) or source.dtype != dtype or source.device != device:
        raise SourceError(
            f"{name}: received {source.dtype} {list(source.shape)} on {source.device}, the live "
            f"rows need {dtype} {list(shape)} on {device}"
        )
    if source.requires_grad:
        raise SourceError(f"{name}: the received tensor requires grad; detach it")
    return source


def axis_count(live: Tensor, axes: tuple[str, ...], axis: str) -> Tensor:
    """The one-element device tensor that holds an axis' live count, out of the bucket's counts."""
    at = axes.index(axis)
    return live[at : at + 1]


def _past_live(rows: Tensor, live: Tensor, dim: int) -> Tensor:
    """A mask of the rows past ``live`` (a one-element device tensor), broadcastable to ``rows``."""
    numbers = torch.arange(rows.shape[dim], device=rows.device, dtype=live.dtype)
    shape = [1] * rows.dim()
    shape[dim] = rows.shape[dim]
    return (numbers >= live).view(shape)


def _as_bytes(rows: Tensor) -> Tensor:
    """float8 rows as their bytes, where zero is zero: masks and selections do not know float8."""
    return rows.view(torch.uint8) if rows.dtype in _FLOAT8 else rows


def reset_fill(rows: Tensor, live: Tensor, value: float, *, dim: int = 0) -> None:
    """Inside the captured region: rows past the device-side live count hold ``value``.

    By masking, never by multiplying: 0 * NaN is NaN.
    """
    past = _past_live(rows, live, dim)
    if rows.dtype in _FLOAT8:
        cell = torch.full((1,), value, dtype=rows.dtype, device=rows.device)
        bytes_of = _as_bytes(rows)
        bytes_of.copy_(torch.where(past, _as_bytes(cell), bytes_of))
    else:
        rows.masked_fill_(past, value)


def reset_repeat_last(rows: Tensor, live: Tensor, *, dim: int = 0) -> None:
    """Inside the captured region: rows past the live count repeat the last live one, else 0."""
    rows = _as_bytes(rows)
    last = rows.index_select(dim, (live - 1).clamp(min=0).to(torch.int64))
    last = last.masked_fill((live == 0).view([1] * rows.dim()), 0)
    rows.copy_(torch.where(_past_live(rows, live, dim), last, rows))
