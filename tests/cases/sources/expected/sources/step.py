# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 1; do not edit
# spec: sha256:2559ef1722e9f243c98916ede7c4fba0fb01e61dba9ea9302dcc8724510b266c
"""The step runner of sources"""

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


AXES = ("tokens",)
COLUMNS = AXES
# where a batch has the live count of an axis
COUNTS: Mapping[str, str] = {"tokens": "num_tokens"}

# spec.yaml:13: one graph for each padded size; beside it, the live rows of its capture
BUCKETS: Mapping[StepExtents, StepExtents] = {
    StepExtents(4): StepExtents(4),
    StepExtents(8): StepExtents(8),
}


class StepCounts(Protocol):
    """The live counts of a batch."""

    @property
    def num_tokens(self) -> int: ...  # live tokens


def extents(batch: StepCounts, dims: Dims) -> StepExtents:
    """The live rows of a batch. Raises SourceError for a count that is no host integer."""
    tokens = rt.live_count(batch.num_tokens, "num_tokens")
    return StepExtents(tokens)


def choose(live: StepExtents, dims: Dims) -> rt.Choice[StepExtents]:
    """The bucket of a step, or the reason why it runs eagerly. The only choice a step makes."""
    tokens = rt.smallest((4, 8), live.tokens)
    if tokens is None:
        raise rt.over_capacity("sources.step", "tokens", live.tokens, 8, "spec.yaml:12")
    return rt.Choice(StepExtents(tokens), rt.Reason.FITS)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutputs:
    """What the last stage gives: live rows only."""

    hidden_states: Tensor  # [tokens, hidden] model, spec.yaml:29


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
