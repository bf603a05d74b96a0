# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 1; do not edit
# spec: sha256:4c75f6229891d375adee6ab56edc23eebe277a952666f7dbfdc46dcb7ad90427
"""The by_index runner of outputs"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ppcgc import runtime as rt
from torch import Tensor

from .family import Dims


class ByIndexExtents(NamedTuple):
    """Rows by axis: the live ones of a batch, or the padded ones of a bucket."""

    tokens: int


AXES = ("tokens",)
COLUMNS = AXES
# where a batch has the live count of an axis
COUNTS: Mapping[str, str] = {"tokens": "num_tokens"}

# spec.yaml:25: one graph for each padded size; beside it, the live rows of its capture
BUCKETS: Mapping[ByIndexExtents, ByIndexExtents] = {
    ByIndexExtents(2): ByIndexExtents(2),
    ByIndexExtents(4): ByIndexExtents(4),
}


class ByIndexCounts(Protocol):
    """The live counts of a batch."""

    @property
    def num_tokens(self) -> int: ...  # live tokens


def extents(batch: ByIndexCounts, dims: Dims) -> ByIndexExtents:
    """The live rows of a batch. Raises SourceError for a count that is no host integer."""
    tokens = rt.live_count(batch.num_tokens, "num_tokens")
    return ByIndexExtents(tokens)


def choose(live: ByIndexExtents, dims: Dims) -> rt.Choice[ByIndexExtents]:
    """The bucket of a step, or the reason why it runs eagerly. The only choice a step makes."""
    tokens = rt.smallest((2, 4), live.tokens)
    if tokens is None:
        raise rt.over_capacity("outputs.by_index", "tokens", live.tokens, 4, "spec.yaml:24")
    return rt.Choice(ByIndexExtents(tokens), rt.Reason.FITS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ByIndexOutputs:
    """What the last stage gives: live rows only."""

    second: Tensor  # [tokens] model, spec.yaml:32
    first: Tensor  # [tokens] model, spec.yaml:33


class ByIndexResults(rt.Outputs[ByIndexExtents, ByIndexOutputs]):
    """The last stage's outputs at stable addresses, one buffer for all buckets."""

    def buffers(
        self,
        arena: rt.DeviceArena,
        rows: ByIndexExtents,
        full: ByIndexExtents,
    ) -> ByIndexOutputs:
        return ByIndexOutputs(
            second=arena.rows("output.second", (rows.tokens,), (full.tokens,), self.dtype),
            first=arena.rows("output.first", (rows.tokens,), (full.tokens,), self.dtype),
        )

    def store(self, result: object, buffers: ByIndexOutputs, boundary: object) -> None:
        rt.store(buffers.second, rt.pick_index(result, 1), "second")
        rt.store(buffers.first, rt.pick_index(result, 0), "first")

    def trim(self, buffers: ByIndexOutputs, live: ByIndexExtents) -> ByIndexOutputs:
        return ByIndexOutputs(
            second=buffers.second.narrow(0, 0, live.tokens),
            first=buffers.first.narrow(0, 0, live.tokens),
        )

    def eager(self, result: object, boundary: object, live: ByIndexExtents) -> ByIndexOutputs:
        return ByIndexOutputs(
            second=rt.check_result(
                rt.pick_index(result, 1),
                (live.tokens,),
                self.dtype,
                self.device,
                "second",
            ),
            first=rt.check_result(
                rt.pick_index(result, 0),
                (live.tokens,),
                self.dtype,
                self.device,
                "first",
            ),
        )
