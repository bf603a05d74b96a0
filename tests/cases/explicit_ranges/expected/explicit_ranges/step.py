# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:fb314e7ac1734b7f023d3edafa499a58d619deba71d9bc12e4aba1132bc41c89
"""The step runner of explicit_ranges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

from ppcgc import runtime as rt
from torch import Tensor

from .family import FINGERPRINT, Dims


class StepExtents(NamedTuple):
    """Rows by axis: the live ones of a batch, or the padded ones of a bucket."""

    tokens: int


# spec.yaml:14: the padded rows of each graph, and the live rows of its capture
BUCKETS = rt.bucket_table(StepExtents, {(2,): (2,), (8,): (8,)})


class StepCounts(Protocol):
    """The live counts of a batch."""

    @property
    def num_tokens(self) -> int: ...  # live tokens


class StepSteps:
    """What all stages of the runner share: their graphs, and the one choice of each step."""

    family = "explicit_ranges"
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
        tokens = rt.smallest((2, 8), live.tokens)
        if tokens is None:
            raise rt.over_capacity("explicit_ranges.step", "tokens", live.tokens, 8, "spec.yaml:13")
        return rt.Choice(StepExtents(tokens), rt.Reason.FITS)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepOutputs:
    """What the last stage gives: live rows only."""

    hidden_states: Tensor  # [tokens, hidden] model, spec.yaml:22


class StepResults(rt.Outputs[StepExtents, StepOutputs]):
    """The last stage's outputs at stable addresses, one buffer for all buckets."""

    def table(self, rows: StepExtents) -> tuple[rt.TensorInfo, ...]:
        return (rt.TensorInfo("hidden_states", (rows.tokens, self.dims.hidden), self.dtype),)

    def held(self, of: Mapping[str, Tensor]) -> StepOutputs:
        return StepOutputs(hidden_states=of["hidden_states"])

    def pick(
        self,
        result: object,
        boundary: object,
        names: tuple[str, ...],
    ) -> Mapping[str, object]:
        return {"hidden_states": result}

    def trim(self, buffers: StepOutputs, live: StepExtents) -> StepOutputs:
        return StepOutputs(hidden_states=buffers.hidden_states.narrow(0, 0, live.tokens))
