"""The choice of a step: which bucket replays, or why the step runs eagerly.

There is one choice a step, made by one generated function over live counts alone, and it is
recorded with a reason from a closed list.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Generic, NamedTuple, TypeVar

ExtentsT = TypeVar("ExtentsT", bound=tuple[int, ...])


class Reason(Enum):
    """Why a step took its path."""

    FITS = "fits"
    OVER_CAPACITY = "over capacity"
    MAX_PADDING = "too much padding"
    NO_KEY = "scalar without a graph"
    UNEVEN = "uneven batch"
    ABSENT = "source absent"
    INELIGIBLE = "not eligible"
    REQUESTED = "asked to run eagerly"
    DROPPED = "bucket dropped"
    SLOWER = "eager measured faster"


class Choice(NamedTuple, Generic[ExtentsT]):
    """``padded`` is the bucket that replays, None for an eager step. ``detail`` names the cause."""

    padded: ExtentsT | None
    reason: Reason
    detail: str = ""


class StepRecord(NamedTuple, Generic[ExtentsT]):
    """What a step did. Prints as ``replay 47→64`` or ``eager 4096 (over capacity)``."""

    live: ExtentsT
    choice: Choice[ExtentsT]

    @property
    def path(self) -> str:
        return "eager" if self.choice.padded is None else "replay"

    def __str__(self) -> str:
        if self.choice.padded is None:
            return f"eager {self.live[0]} ({self.choice.reason.value})"
        return f"replay {self.live[0]}→{self.choice.padded[0]}"


def smallest(sizes: Sequence[int], live: int) -> int | None:
    """The smallest of the ascending ``sizes`` that is not below ``live``, None when all are."""
    at = bisect_left(sizes, live)
    return sizes[at] if at < len(sizes) else None


def bucket_table(
    kind: Callable[..., ExtentsT], table: Mapping[tuple[int, ...], tuple[int, ...]]
) -> Mapping[ExtentsT, ExtentsT]:
    """The padded rows of each graph, and the live rows of the batch that captures it."""
    return {kind(*padded): kind(*live) for padded, live in table.items()}
