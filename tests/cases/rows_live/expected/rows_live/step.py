# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:773d23123ee19b4d0c25b8148f026260d49d8f4589778d9b1fbb360cba4c318c
"""The step runner of rows_live."""

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
    images: int


# spec.yaml:14: the padded rows of each graph, and the live rows of its capture
BUCKETS = rt.bucket_table(StepExtents, {(4, 4): (4, 4), (8, 4): (8, 4)})


class StepCountsMm(Protocol):
    """The live counts of a batch."""

    @property
    def grid(self) -> object: ...  # live images


class StepCounts(Protocol):
    """The live counts of a batch."""

    @property
    def input_ids(self) -> object: ...  # live tokens
    @property
    def mm(self) -> StepCountsMm: ...


class StepSteps:
    """What all stages of the runner share: their graphs, and the one choice of each step."""

    family = "rows_live"
    runner = "step"
    fingerprint = FINGERPRINT
    buckets = BUCKETS
    axes: ClassVar[tuple[str, ...]] = ("tokens", "images")
    columns: ClassVar[tuple[str, ...]] = axes
    # where a batch has the number of a column
    counts: ClassVar[Mapping[str, str]] = {}
    dims: Dims

    def extents(self, batch: StepCounts) -> StepExtents:
        """The live rows of a batch. Raises SourceError for a count that is no host integer."""
        tokens = rt.source_rows(batch.input_ids, 0, "input_ids")
        images = rt.source_rows(None if batch.mm is None else batch.mm.grid, 1, "mm.grid")
        return StepExtents(tokens, images)

    def choose(self, live: StepExtents) -> rt.Choice[StepExtents]:
        """The bucket of a step, or the reason why it runs eagerly."""
        tokens = rt.smallest((4, 8), live.tokens)
        if tokens is None:
            raise rt.over_capacity("rows_live.step", "tokens", live.tokens, 8, "spec.yaml:13")
        images = 4
        if live.images > images:
            raise rt.over_capacity("rows_live.step", "images", live.images, images, "spec.yaml:13")
        return rt.Choice(StepExtents(tokens, images), rt.Reason.FITS)


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
