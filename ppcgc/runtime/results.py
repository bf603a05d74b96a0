"""What the forward returned: picked apart, checked, stored at stable addresses, cut to live rows.

Note [padding rows are computed]
    A replay computes every padded row. What it leaves there is nobody's data: outputs are cut
    back to the live rows, and only live rows are compared or handed on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import overload

import torch
from torch import Tensor

from ppcgc.runtime.arena import DeviceArena
from ppcgc.runtime.errors import OutputError, SourceError
from ppcgc.runtime.views import Boundary

_FLOAT8 = frozenset({torch.float8_e4m3fn, torch.float8_e5m2})


def pick_key(result: object, key: str) -> object:
    """``result.<key>``: an entry of a mapping or an attribute. Raises OutputError."""
    if isinstance(result, Mapping):
        if key in result:
            return result[key]
        raise OutputError(f"the forward returned the keys {sorted(map(str, result))}, not {key!r}")
    value = getattr(result, key, None)
    if value is None:
        raise OutputError(f"the forward returned a {type(result).__name__} without {key!r}")
    return value


def pick_index(result: object, index: int) -> object:
    """``result.<index>``: an item of a tuple or list. Raises OutputError."""
    if not isinstance(result, Sequence) or isinstance(result, str):
        raise OutputError(f"the forward returned a {type(result).__name__}, not a tuple")
    if index >= len(result):
        raise OutputError(f"the forward returned {len(result)} values, the spec wants item {index}")
    return result[index]


def handed_on(
    result: object, received: object, keys: tuple[str, ...], forwarded: tuple[str, ...]
) -> dict[str, object]:
    """The boundary that leaves a stage: what its forward made, and what the runtime hands on.

    A key that the runtime hands on is taken from the boundary that came in, where it is there.
    """
    passed: dict[str, object] = {}
    if isinstance(received, Boundary):
        passed = {
            key: value
            for key in forwarded
            if key in keys and (value := getattr(received, key, None)) is not None
        }
    made = boundary_values(result, tuple(key for key in keys if key not in passed))
    return {**passed, **made}


def boundary_values(result: object, keys: tuple[str, ...]) -> dict[str, object]:
    """The boundary's tensors by key.

    ``result`` is a mapping or boundary with exactly these keys; a bare tensor serves where the
    boundary has one key. Raises OutputError naming the keys that are missing or too many.
    """
    if isinstance(result, Tensor) and len(keys) == 1:
        return {keys[0]: result}
    if not isinstance(result, Mapping | Boundary):
        raise OutputError(
            f"the forward returned a {type(result).__name__}; a stage that is not the last returns "
            f"a mapping with the keys {list(keys)}"
        )
    missing = [key for key in keys if key not in result]
    unknown = [key for key in result if key not in keys]
    if missing or unknown:
        raise OutputError(
            f"the forward's boundary lacks {missing} and has {unknown} beyond the declared "
            f"{list(keys)}; make the forward and pipeline.boundary agree"
        )
    return {key: result[key] for key in keys}


def check_result(
    value: object, shape: Sequence[int], dtype: torch.dtype, device: torch.device, name: str
) -> Tensor:
    """A tensor of exactly this shape, dtype and device. Raises OutputError."""
    if not isinstance(value, Tensor):
        raise OutputError(f"output {name}: the forward gave a {type(value).__name__}, not a tensor")
    if list(value.shape) != list(shape):
        raise OutputError(
            f"output {name}: the forward gave shape {list(value.shape)}, the spec says "
            f"{list(shape)}"
        )
    if value.dtype != dtype:
        raise OutputError(
            f"output {name}: the forward gave {value.dtype}, the spec says {dtype}; "
            "change the spec's dtype or the model's"
        )
    if value.device != device:
        raise OutputError(f"output {name}: on {value.device}, the stage is on {device}")
    return value


@overload
def cut_rows(buffer: Tensor, *cuts: tuple[int, int]) -> Tensor: ...


@overload
def cut_rows(buffer: None, *cuts: tuple[int, int]) -> None: ...


@overload
def cut_rows(buffer: Tensor | None, *cuts: tuple[int, int]) -> Tensor | None: ...


def cut_rows(buffer: Tensor | None, *cuts: tuple[int, int]) -> Tensor | None:
    """The first ``(dim, rows)`` of each cut; None for a key that does not cross."""
    if buffer is None:
        return None
    for dim, rows in cuts:
        buffer = buffer.narrow(dim, 0, rows)
    return buffer


def store(buffer: Tensor, value: object, name: str) -> None:
    """Put a result at its stable address, inside the captured region. Raises OutputError."""
    rows = check_result(value, buffer.shape, buffer.dtype, buffer.device, name)
    if rows.data_ptr() != buffer.data_ptr():
        buffer.copy_(rows)


# ---------------------------------------------------------------- the receiving side


def receive_rows(slot: Tensor, source: Tensor | None, shape: tuple[int, ...], name: str) -> None:
    """Take the live rows, of this shape, of a boundary tensor. Raises SourceError.

    Nothing is copied when the sender wrote into this very slot.
    """
    if any(live > padded for live, padded in zip(shape, slot.shape, strict=True)):
        raise SourceError(f"{name}: {list(shape)} live rows, the bucket has {list(slot.shape)}")
    rows = check_received(source, shape, slot.dtype, slot.device, name)
    if rows.data_ptr() != slot.data_ptr():
        for dim, live in enumerate(shape):
            slot = slot.narrow(dim, 0, live)
        slot.copy_(rows)


def check_received(
    source: object, shape: Sequence[int], dtype: torch.dtype, device: torch.device, name: str
) -> Tensor:
    """A received tensor of exactly the live rows, for an eager step. Raises SourceError."""
    if not isinstance(source, Tensor):
        raise SourceError(f"{name}: received a {type(source).__name__}, not a tensor")
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


# ---------------------------------------------------------------- keeping outputs


class OutputRing:
    """``keep: ring(n)``: live rows copied into the next of n fixed buffers after each replay."""

    def __init__(
        self, arena: DeviceArena, name: str, full: tuple[int, ...], dtype: torch.dtype, entries: int
    ) -> None:
        self._entries = tuple(
            arena.rows(f"ring.{name}.{entry}", full, full, dtype) for entry in range(entries)
        )
        self._turn = 0

    def keep(self, rows: Tensor) -> Tensor:
        """A copy of ``rows``, valid until the n-th run after this one."""
        entry = self._entries[self._turn]
        self._turn = (self._turn + 1) % len(self._entries)
        for dim, extent in enumerate(rows.shape):
            entry = entry.narrow(dim, 0, extent)
        return entry.copy_(rows)
