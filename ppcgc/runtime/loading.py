"""Loading device-resident slots: live rows copied, every other row reset.

Each function is called once for a slot by straight-line generated code, at capture and at
replay alike.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ppcgc.runtime.errors import AbsentSourceError, SourceError
from ppcgc.runtime.host_sources import HostSource, as_host_tensor, check_dense, spread_over


def check_source(
    source: Tensor | None, shape: Sequence[int], dtype: torch.dtype, device: torch.device, name: str
) -> Tensor:
    """A device source of exactly this shape, dtype and device. Raises SourceError."""
    if source is None:
        raise AbsentSourceError(
            f"slot {name}: the source is None; give rows, or say `absent:` in the spec"
        )
    if not isinstance(source, Tensor):
        raise SourceError(
            f"slot {name}: the source is a {type(source).__name__}, not a tensor; "
            "give a tensor, or say `residency: host`"
        )
    check_dense(source, f"slot {name}: the source")
    if list(source.shape) != list(shape):
        raise SourceError(
            f"slot {name}: the source has shape {list(source.shape)}, "
            f"the live rows need {list(shape)}"
        )
    if source.dtype != dtype:
        raise SourceError(
            f"slot {name}: the source is {source.dtype}, the slot is {dtype}; "
            "convert the source, or say `cast: true`"
        )
    if source.device != device:
        raise SourceError(
            f"slot {name}: the source is on {source.device}, the stage on {device}; "
            "move the source, or say `residency: host`"
        )
    if source.requires_grad:
        raise SourceError(
            f"slot {name}: the source requires grad, and a graph replays inference only; "
            "detach it, or make it under torch.no_grad()"
        )
    return source


def live_shape(slot: Tensor, live: int, dim: int, name: str) -> list[int]:
    """The slot's shape with ``live`` rows on its axis. Raises SourceError past the padded rows."""
    shape = list(slot.shape)
    if live > shape[dim]:
        raise SourceError(f"slot {name}: {live} live rows, the bucket has {shape[dim]}")
    shape[dim] = live
    return shape


def copy_rows(
    slot: Tensor,
    source: Tensor | None,
    live: int,
    name: str,
    *,
    dim: int = 0,
    cast: bool = False,
    broadcast: bool = False,
) -> None:
    """Copy a device source into the live rows. Raises SourceError before anything is written."""
    if cast and isinstance(source, Tensor):
        source = source.to(slot.dtype)
    shape = live_shape(slot, live, dim, name)
    if broadcast:
        source = spread_over(source, shape)
    rows = check_source(source, shape, slot.dtype, slot.device, name)
    slot.narrow(dim, 0, live).copy_(rows)


def copy_whole(
    slot: Tensor,
    source: Tensor | None,
    name: str,
    *,
    cast: bool = False,
    broadcast: bool = False,
) -> None:
    """Copy a device source into a slot without a padded axis."""
    if cast and isinstance(source, Tensor):
        source = source.to(slot.dtype)
    if broadcast:
        source = spread_over(source, slot.shape)
    slot.copy_(check_source(source, slot.shape, slot.dtype, slot.device, name))


def upload_rows(
    slot: Tensor,
    source: HostSource,
    live: int,
    name: str,
    *,
    dim: int = 0,
    cast: bool = False,
    broadcast: bool = False,
) -> Tensor:
    """Copy a host source into the live rows of a slot that keeps one address for all buckets.

    Returns the source's rows as a CPU tensor.
    """
    shape = live_shape(slot, live, dim, name)
    rows = host_rows_of(source, shape, slot.dtype, name, cast=cast, broadcast=broadcast)
    slot.narrow(dim, 0, live).copy_(staged(rows, slot.device), non_blocking=True)
    return rows


def upload_whole(
    slot: Tensor, source: HostSource, name: str, *, cast: bool = False, broadcast: bool = False
) -> Tensor:
    """Copy a host source into a slot without a padded axis; returns it as a CPU tensor."""
    rows = host_rows_of(source, slot.shape, slot.dtype, name, cast=cast, broadcast=broadcast)
    slot.copy_(staged(rows, slot.device), non_blocking=True)
    return rows


def staged(rows: Tensor, device: torch.device) -> Tensor:
    """Host rows as an asynchronous copy to ``device`` may read them, whoever writes them next.

    Note [host rows go up through pinned memory]
        A copy from pageable memory makes the host wait until the stream has caught up with it, so
        that no launch of the next step hides behind the device's work. Rows that the caller has
        pinned are copied too: the caller may write them again as soon as the step returns. torch
        keeps a pinned block back from its next owner until the copy out of it is done, so nothing
        has to hold it here.
    """
    if device.type != "cuda":
        return rows
    return torch.empty(rows.shape, dtype=rows.dtype, pin_memory=True).copy_(rows)


def host_rows_of(
    source: HostSource,
    shape: Sequence[int],
    dtype: torch.dtype,
    name: str,
    *,
    cast: bool,
    broadcast: bool = False,
) -> Tensor:
    """A host source of exactly this shape. Raises SourceError."""
    rows = as_host_tensor(source, dtype, name, cast=cast)
    if broadcast:
        rows = spread_over(rows, shape)
    if list(rows.shape) != list(shape):
        raise SourceError(
            f"slot {name}: the source has shape {list(rows.shape)}, "
            f"the live rows need {list(shape)}"
        )
    return rows


def pad_fill(slot: Tensor, live: int, value: float, *, dim: int = 0) -> None:
    """Rows past ``live`` hold ``value``."""
    slot.narrow(dim, live, slot.shape[dim] - live).fill_(value)


def pad_zero(slot: Tensor, live: int, *, dim: int = 0) -> None:
    """Rows past ``live`` hold zero."""
    slot.narrow(dim, live, slot.shape[dim] - live).zero_()


def pad_repeat_last(slot: Tensor, live: int, *, dim: int = 0) -> None:
    """Rows past ``live`` repeat the last live one, zero when there is none."""
    tail = slot.narrow(dim, live, slot.shape[dim] - live)
    if live == 0:
        tail.zero_()
    else:
        tail.copy_(slot.narrow(dim, live - 1, 1))


def fill_live(slot: Tensor, live: int, value: float, *, dim: int = 0) -> None:
    """Every live row holds ``value`` (``absent: {fill: v}``)."""
    slot.narrow(dim, 0, live).fill_(value)


def fill_whole(slot: Tensor, value: float) -> None:
    """All of a slot holds ``value``: without a padded axis, or before others write it."""
    slot.fill_(value)
