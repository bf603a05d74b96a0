# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 1; do not edit
# spec: sha256:91eeedae7e9f4f9e5b7c073b8eee3dec82945491b02a8e8df004e3334dbb1440
"""The step runner of one_stage"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
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

# spec.yaml:11: one graph for each padded size; beside it, the live rows of its capture
BUCKETS: Mapping[StepExtents, StepExtents] = {
    StepExtents(4): StepExtents(4),
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
    tokens = 4
    if live.tokens > tokens:
        raise rt.over_capacity("one_stage.step", "tokens", live.tokens, tokens, "spec.yaml:10")
    return rt.Choice(StepExtents(tokens), rt.Reason.FITS)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutputs:
    """What the last stage gives: live rows only."""

    logits: Tensor  # [tokens] float32, spec.yaml:17


class StepResults(rt.Outputs[StepExtents, StepOutputs]):
    """The last stage's outputs at stable addresses, one buffer for all buckets."""

    def buffers(self, arena: rt.DeviceArena, rows: StepExtents, full: StepExtents) -> StepOutputs:
        return StepOutputs(
            logits=arena.rows("output.logits", (rows.tokens,), (full.tokens,), torch.float32),
        )

    def store(self, result: object, buffers: StepOutputs, boundary: object) -> None:
        rt.store(buffers.logits, result, "logits")

    def trim(self, buffers: StepOutputs, live: StepExtents) -> StepOutputs:
        return StepOutputs(
            logits=buffers.logits.narrow(0, 0, live.tokens),
        )

    def eager(self, result: object, boundary: object, live: StepExtents) -> StepOutputs:
        return StepOutputs(
            logits=rt.check_result(result, (live.tokens,), torch.float32, self.device, "logits"),
        )
