# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:740bc790888aacc66747fbb88bbd813989e7e5e4aa888ea10c37331d7d662819
"""The step runner of one_stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import torch
from ppcgc import runtime as rt
from torch import Tensor

from .family import FINGERPRINT, Dims


class StepExtents(NamedTuple):
    """Rows by axis: the live ones of a batch, or the padded ones of a bucket."""

    tokens: int


# spec.yaml:11: the padded rows of each graph, and the live rows of its capture
BUCKETS = rt.bucket_table(StepExtents, {(4,): (4,)})


class StepCounts(Protocol):
    """The live counts of a batch."""

    @property
    def num_tokens(self) -> int: ...  # live tokens


class StepSteps:
    """What all stages of the runner share: their graphs, and the one choice of each step."""

    family = "one_stage"
    runner = "step"
    fingerprint = FINGERPRINT
    buckets = BUCKETS
    axes: ClassVar[tuple[str, ...]] = ("tokens",)
    columns: ClassVar[tuple[str, ...]] = axes
    # where a batch has the number of a column
    counts: ClassVar[Mapping[str, str]] = {"tokens": "num_tokens"}
    dims: Dims

    def extents(self, batch: StepCounts) -> StepExtents:
        """The live rows of a batch. Raises SourceError for a count that is no host integer."""
        tokens = rt.live_count(batch.num_tokens, "num_tokens")
        return StepExtents(tokens)

    def choose(self, live: StepExtents) -> rt.Choice[StepExtents]:
        """The bucket of a step, or the reason why it runs eagerly."""
        tokens = 4
        if live.tokens > tokens:
            raise rt.over_capacity("one_stage.step", "tokens", live.tokens, tokens, "spec.yaml:10")
        return rt.Choice(StepExtents(tokens), rt.Reason.FITS)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepOutputs:
    """What the last stage gives: live rows only."""

    logits: Tensor  # [tokens] float32, spec.yaml:17


class StepResults(rt.Outputs[StepExtents, StepOutputs]):
    """The last stage's outputs at stable addresses, one buffer for all buckets."""

    def table(self, rows: StepExtents) -> tuple[rt.TensorInfo, ...]:
        return (rt.TensorInfo("logits", (rows.tokens,), torch.float32),)

    def held(self, of: Mapping[str, Tensor]) -> StepOutputs:
        return StepOutputs(logits=of["logits"])

    def pick(
        self,
        result: object,
        boundary: object,
        names: tuple[str, ...],
    ) -> Mapping[str, object]:
        return {"logits": result}

    def trim(self, buffers: StepOutputs, live: StepExtents) -> StepOutputs:
        return StepOutputs(logits=buffers.logits.narrow(0, 0, live.tokens))
