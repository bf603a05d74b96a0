"""What the forward returned: picked apart, checked, stored at stable addresses, cut to live rows.

Note [padding rows are computed]
    A replay computes every padded row. What it leaves there is nobody's data: outputs are cut
    back to the live rows, and only live rows are compared or handed on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import le
from typing import overload

import torch
from torch import Tensor

from ppcgc.runtime.arena import DeviceArena, first_rows
from ppcgc.runtime.errors import OutputError
from ppcgc.runtime.views import Boundary


def pick_key(result: object, key: str) -> object:
    """``result.<key>``: an entry of a mapping or an attribute. Raises OutputError."""
    if isinstance(result, Mapping):
        if key in result:
            return result[key]
        raise OutputError(f"the forward returned the keys {sorted(map(str, result))}, not {key!r}")
    value = getattr(result, key, None)
    if value is None:
        raise OutputError(f"the forward returned {_kind(result)} without {key!r}")
    return value


def pick_index(result: object, index: int) -> object:
    """``result.<index>``: an item of a tuple or list. Raises OutputError."""
    if not isinstance(result, Sequence) or isinstance(result, str):
        raise OutputError(f"the forward returned {_kind(result)}, not a tuple")
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
            f"the forward returned {_kind(result)}; a stage that is not the last returns "
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


def _kind(result: object) -> str:
    """What a forward returned, and how it would do, where that is not plain from its type."""
    named = f"a {type(result).__name__}"
    if result is None:
        return f"{named} (is its `return` missing?)"
    if isinstance(result, Mapping):
        return f"{named} of {sorted(map(str, result))} (`from: result.KEY` under outputs takes one)"
    if isinstance(result, tuple | list):
        return f"{named} of {len(result)} (`from: result.0` under outputs takes the first)"
    return named


def check_result(
    value: object, shape: Sequence[int], dtype: torch.dtype, device: torch.device, name: str
) -> Tensor:
    """A tensor of exactly this shape, dtype and device. Raises OutputError."""
    if not isinstance(value, Tensor):
        raise OutputError(f"output {name}: the forward gave {_kind(value)}, not a tensor")
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

    def holds(self, rows: Tensor) -> bool:
        """Whether its buffers have room for so many rows."""
        return all(map(le, rows.shape, self._entries[0].shape))

    def keep(self, rows: Tensor) -> Tensor:
        """A copy of ``rows``, valid until the n-th run after this one."""
        entry = self._entries[self._turn]
        self._turn = (self._turn + 1) % len(self._entries)
        return first_rows(entry, rows.shape).copy_(rows)
