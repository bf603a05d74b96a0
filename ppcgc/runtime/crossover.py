"""Where a replay is faster than an eager step, as measured: what calibration keeps.

Note [a padded replay can lose to eager]
    A replay computes every padded row and an eager step only the live ones, at the price of
    launching each kernel from Python. For few rows that price is most of the step; beyond some
    hundred it hides behind the device's work, and padding is what is left. Where the two meet
    depends on model, device and host, so it is measured and not guessed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ppcgc.runtime.errors import BuildError

# Note [a replay has to win]
#   The same step measured twice differs by some tenths of a percent, and the device's clock by more
#   within a minute. A bucket that is chosen for winning by less loses as often in service.
WINS_BY = 0.01  # of eager's time


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketTimes:
    """Seconds of a step as one of a stream: the bucket's replay, and eager steps by live rows."""

    padded: tuple[int, ...]
    replay: float
    eager: tuple[tuple[int, float], ...]  # live rows of the axis, ascending -> seconds
    least: int  # replays from so many live rows on; more than the bucket has: never

    @property
    def never(self) -> bool:
        return self.least > self.eager[-1][0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossover:
    """One runner's measurement. ``column`` is the place of ``axis`` in its extents."""

    runner: str
    axis: str
    column: int
    buckets: tuple[BucketTimes, ...]

    def slower(self, padded: tuple[int, ...], live: tuple[int, ...]) -> str | None:
        """Why a step of these live rows had better run eagerly; None where its bucket is faster."""
        found = next((one for one in self.buckets if one.padded == tuple(padded)), None)
        if found is None or live[self.column] >= found.least:
            return None
        if found.never:
            return f"bucket {self.axis} {padded[self.column]} was never faster"
        return f"bucket {self.axis} {padded[self.column]} is faster from {found.least} on"

    def __str__(self) -> str:
        """One line a bucket: its replay, eager beside it, and from where it replays."""
        lines = [f"{self.runner}, calibrated by {self.axis}"]
        for one in self.buckets:
            eager = ", ".join(f"{seconds * 1e3:.3f} at {live}" for live, seconds in one.eager)
            keeps = f"replays from {one.least}" if one.least else "always replays"
            if one.never:
                keeps = "always eager"
                if one.replay < one.eager[-1][1]:  # see Note [a replay has to win]
                    keeps += f", a replay has to win by {100 * WINS_BY:g} %"
            lines.append(
                f"  {one.padded[self.column]}: replay {one.replay * 1e3:.3f} ms, eager {eager}: "
                f"{keeps}"
            )
        return "\n".join(lines)

    def data(self) -> dict[str, Any]:
        """What JSON can hold; ``from_data`` reads it back."""
        return {
            "runner": self.runner,
            "axis": self.axis,
            "column": self.column,
            "buckets": [
                {
                    "padded": list(one.padded),
                    "replay": one.replay,
                    "eager": [list(pair) for pair in one.eager],
                    "least": one.least,
                }
                for one in self.buckets
            ],
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Crossover:
        """A kept measurement. Raises BuildError for what ``data()`` did not make."""
        try:
            return cls(
                runner=data["runner"],
                axis=data["axis"],
                column=data["column"],
                buckets=tuple(
                    BucketTimes(
                        padded=tuple(one["padded"]),
                        replay=one["replay"],
                        eager=tuple((live, seconds) for live, seconds in one["eager"]),
                        least=one["least"],
                    )
                    for one in data["buckets"]
                ),
            )
        except (KeyError, TypeError, ValueError) as problem:
            raise BuildError(f"no kept calibration: {type(problem).__name__} {problem}") from None


def least_live(replay: float, eager: Sequence[tuple[int, float]]) -> int:
    """The fewest live rows from which a replay wins against the eager steps measured.

    ``eager`` ascends by live rows; between two sizes the time is taken to grow linearly. 0 when
    the replay wins at all of them, one more than the last size when it does not even there. See
    Note [a replay has to win].
    """
    replay /= 1 - WINS_BY
    last, seconds = eager[-1]
    if replay > seconds:
        return last + 1
    for (low, before), (high, after) in reversed(list(pairwise(eager))):
        if replay > before:
            share = (replay - before) / (after - before)
            return min(high, low + math.ceil(share * (high - low)))
    return 0
