# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 1; do not edit
# spec: sha256:629f4a4f06922c70560a978a219f6381aae2003707843c81773037413dcb7db5
"""The step runner of nested_batch"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ppcgc import runtime as rt
from torch import Tensor

from .family import Dims


class StepExtents(NamedTuple):
    """Rows by axis: the live ones of a batch, or the padded ones of a bucket."""

    tokens: int
    images: int


AXES = ("tokens", "images")
COLUMNS = AXES
# where a batch has the live count of an axis
COUNTS: Mapping[str, str] = {"tokens": "counts.tokens", "images": "mm.counts.images"}

# spec.yaml:14: one graph for each padded size; beside it, the live rows of its capture
BUCKETS: Mapping[StepExtents, StepExtents] = {
    StepExtents(2, 4): StepExtents(2, 4),
    StepExtents(4, 4): StepExtents(4, 4),
}


class StepCountsCounts(Protocol):
    """The live counts of a batch."""

    @property
    def tokens(self) -> int: ...  # live tokens


class StepCountsMmCounts(Protocol):
    """The live counts of a batch."""

    @property
    def images(self) -> int: ...  # live images


class StepCountsMm(Protocol):
    """The live counts of a batch."""

    @property
    def counts(self) -> StepCountsMmCounts: ...


class StepCounts(Protocol):
    """The live counts of a batch."""

    @property
    def counts(self) -> StepCountsCounts: ...
    @property
    def mm(self) -> StepCountsMm: ...


def extents(batch: StepCounts, dims: Dims) -> StepExtents:
    """The live rows of a batch. Raises SourceError for a count that is no host integer."""
    tokens = rt.live_count(batch.counts.tokens, "counts.tokens")
    images = rt.live_count(batch.mm.counts.images, "mm.counts.images")
    return StepExtents(tokens, images)


def choose(live: StepExtents, dims: Dims) -> rt.Choice[StepExtents]:
    """The bucket of a step, or the reason why it runs eagerly. The only choice a step makes."""
    tokens = rt.smallest((2, 4), live.tokens)
    if tokens is None:
        raise rt.over_capacity("nested_batch.step", "tokens", live.tokens, 4, "spec.yaml:13")
    images = 4
    if live.images > images:
        raise rt.over_capacity("nested_batch.step", "images", live.images, images, "spec.yaml:13")
    return rt.Choice(StepExtents(tokens, images), rt.Reason.FITS)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutputs:
    """What the last stage gives: live rows only."""

    hidden_states: Tensor  # [tokens, hidden] model, spec.yaml:26


class StepResults(rt.Outputs[StepExtents, StepOutputs]):
    """The last stage's outputs at stable addresses, one buffer for all buckets."""

    def buffers(self, arena: rt.DeviceArena, rows: StepExtents, full: StepExtents) -> StepOutputs:
        return StepOutputs(
            hidden_states=arena.rows(
                "output.hidden_states",
                (rows.tokens, self.dims.hidden),
                (full.tokens, self.dims.hidden),
                self.dtype,
            ),
        )

    def store(self, result: object, buffers: StepOutputs, boundary: object) -> None:
        rt.store(buffers.hidden_states, result, "hidden_states")

    def trim(self, buffers: StepOutputs, live: StepExtents) -> StepOutputs:
        return StepOutputs(
            hidden_states=buffers.hidden_states.narrow(0, 0, live.tokens),
        )

    def eager(self, result: object, boundary: object, live: StepExtents) -> StepOutputs:
        return StepOutputs(
            hidden_states=rt.check_result(
                result,
                (live.tokens, self.dims.hidden),
                self.dtype,
                self.device,
                "hidden_states",
            ),
        )
