"""The header of a step: what the first rank chose, ahead of the data.

Every later rank takes the path that the header says, eager steps included, so no two ranks can
choose differently.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import torch
from torch import Tensor

from ppcgc.runtime.choice import Choice, Reason

REASONS = tuple(Reason)
_FIXED = 6  # step, runner, path, reason, columns, bytes of the note


class Path(IntEnum):
    """What the ranks do with a step."""

    REPLAY = 0
    EAGER = 1
    REFUSED = 2  # the first rank would not take the batch; the note says why
    END = 3  # no more steps in this stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """``live`` and ``padded`` are extents of the runner, ``padded`` empty unless a bucket replays.

    ``runner`` is the place of the runner in the agreed list; ``note`` is the detail of the reason
    or the text of a refusal.
    """

    step: int
    runner: int
    path: Path
    reason: Reason = Reason.FITS
    live: tuple[int, ...] = ()
    padded: tuple[int, ...] = ()
    note: str = ""


def header_of(step: int, runner: int, live: tuple[int, ...], choice: Choice[Any]) -> Header:
    """The header of a step that is chosen."""
    return Header(
        step=step,
        runner=runner,
        path=Path.EAGER if choice.padded is None else Path.REPLAY,
        reason=choice.reason,
        live=tuple(live),
        padded=tuple(choice.padded or ()),
        note=choice.detail,
    )


def header_size(columns: int) -> int:
    """Integers in a header of runners whose extents have at most so many columns."""
    return _FIXED + 2 * columns


def encode(header: Header, columns: int) -> tuple[Tensor, Tensor | None]:
    """The header as int64 [header_size(columns)], and its note as uint8 bytes, None when empty."""
    note = header.note.encode()
    values = [
        header.step,
        header.runner,
        int(header.path),
        REASONS.index(header.reason),
        len(header.live),
        len(note),
        *_filled(header.live, columns),
        *_filled(header.padded, columns),
    ]
    data = torch.frombuffer(bytearray(note), dtype=torch.uint8) if note else None
    return torch.tensor(values, dtype=torch.int64), data


def _filled(extents: tuple[int, ...], columns: int) -> list[int]:
    return [*extents, *(0 for _ in range(columns - len(extents)))]


def note_bytes(numbers: Tensor) -> int:
    """How many bytes of note follow these numbers."""
    return int(numbers[_FIXED - 1])


def decode(numbers: Tensor, note: Tensor | None) -> Header:
    """The header that was encoded."""
    step, runner, path, reason, columns, _, *extents = numbers.tolist()
    half = len(extents) // 2
    return Header(
        step=step,
        runner=runner,
        path=Path(path),
        reason=REASONS[reason],
        live=tuple(extents[:columns]),
        padded=tuple(extents[half : half + columns]) if path == Path.REPLAY else (),
        note="" if note is None else bytes(note.tolist()).decode(),
    )
