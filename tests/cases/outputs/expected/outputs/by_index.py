# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:70852ee30e9dd3150034fe106d7caef838dfd044e75bb01550f561b5abd47f24
"""The by_index runner of outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

from ppcgc import runtime as rt
from torch import Tensor

from .family import FINGERPRINT, Dims


class ByIndexExtents(NamedTuple):
    """Rows by axis: the live ones of a batch, or the padded ones of a bucket."""

    tokens: int


# spec.yaml:25: the padded rows of each graph, and the live rows of its capture
BUCKETS = rt.bucket_table(ByIndexExtents, {(2,): (2,), (4,): (4,)})


class ByIndexCounts(Protocol):
    """The live counts of a batch."""

    @property
    def num_tokens(self) -> int: ...  # live tokens


class ByIndexSteps:
    """What all stages of the runner share: their graphs, and the one choice of each step."""

    family = "outputs"
    runner = "by_index"
    fingerprint = FINGERPRINT
    buckets = BUCKETS
    axes: ClassVar[tuple[str, ...]] = ("tokens",)
    columns: ClassVar[tuple[str, ...]] = axes
    # where a batch has the number of a column
    counts: ClassVar[Mapping[str, str]] = {"tokens": "num_tokens"}
    dims: Dims

    def extents(self, batch: ByIndexCounts) -> ByIndexExtents:
        """The live rows of a batch. Raises SourceError for a count that is no host integer."""
        tokens = rt.live_count(batch.num_tokens, "num_tokens")
        return ByIndexExtents(tokens)

    def choose(self, live: ByIndexExtents) -> rt.Choice[ByIndexExtents]:
        """The bucket of a step, or the reason why it runs eagerly."""
        tokens = rt.smallest((2, 4), live.tokens)
        if tokens is None:
            raise rt.over_capacity("outputs.by_index", "tokens", live.tokens, 4, "spec.yaml:24")
        return rt.Choice(ByIndexExtents(tokens), rt.Reason.FITS)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ByIndexOutputs:
    """What the last stage gives: live rows only."""

    second: Tensor  # [tokens] model, spec.yaml:32
    first: Tensor  # [tokens] model, spec.yaml:33


class ByIndexResults(rt.Outputs[ByIndexExtents, ByIndexOutputs]):
    """The last stage's outputs at stable addresses, one buffer for all buckets."""

    def table(self, rows: ByIndexExtents) -> tuple[rt.TensorInfo, ...]:
        return (
            rt.TensorInfo("second", (rows.tokens,), self.dtype),
            rt.TensorInfo("first", (rows.tokens,), self.dtype),
        )

    def held(self, of: Mapping[str, Tensor]) -> ByIndexOutputs:
        return ByIndexOutputs(second=of["second"], first=of["first"])

    def pick(
        self,
        result: object,
        boundary: object,
        names: tuple[str, ...],
    ) -> Mapping[str, object]:
        return {"second": rt.pick_index(result, 1), "first": rt.pick_index(result, 0)}

    def trim(self, buffers: ByIndexOutputs, live: ByIndexExtents) -> ByIndexOutputs:
        return ByIndexOutputs(
            second=buffers.second.narrow(0, 0, live.tokens),
            first=buffers.first.narrow(0, 0, live.tokens),
        )
