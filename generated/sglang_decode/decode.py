# ppcgc: generated from specs/sglang_decode.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:c4a62b50f35e2c9ca438a2bfdd47451d633610f72adfbedfcccc3d09e8502cf3
"""The decode runner of sglang_decode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

from ppcgc import runtime as rt
from torch import Tensor

from .family import FINGERPRINT, Dims


class DecodeExtents(NamedTuple):
    """Rows by axis: the live ones of a batch, or the padded ones of a bucket."""

    requests: int
    tokens: int
    requests_most: int


# sglang_decode.yaml:52: the padded rows of each graph, and the live rows of its capture
BUCKETS = rt.bucket_table(
    DecodeExtents,
    {(1, 1, 0): (1, 1, 0), (2, 2, 0): (2, 2, 0), (4, 4, 0): (4, 4, 0), (8, 8, 0): (8, 8, 0)},
)


class DecodeCounts(Protocol):
    """The live counts of a batch."""

    @property
    def batch_size(self) -> int: ...  # live requests
    @property
    def global_num_tokens_cpu(self) -> object: ...  # live requests of each dp rank


class DecodeSteps:
    """What all stages of the runner share: their graphs, and the one choice of each step."""

    family = "sglang_decode"
    runner = "decode"
    fingerprint = FINGERPRINT
    buckets = BUCKETS
    axes: ClassVar[tuple[str, ...]] = ("requests", "tokens")
    columns: ClassVar[tuple[str, ...]] = ("requests", "tokens", "requests_most")
    # where a batch has the number of a column
    counts: ClassVar[Mapping[str, str]] = {"requests": "batch_size"}
    groups: ClassVar[Mapping[str, rt.GroupCounts]] = {
        "requests_most": rt.GroupCounts("dp", "requests", "global_num_tokens_cpu"),
    }
    dims: Dims

    def extents(self, batch: DecodeCounts) -> DecodeExtents:
        """The live rows of a batch. Raises SourceError for a count that is no host integer."""
        requests = rt.live_count(batch.batch_size, "batch_size")
        tokens = requests
        requests_most = rt.group_most(
            batch.global_num_tokens_cpu,
            "global_num_tokens_cpu",
            self.dims.dp,
            requests,
        )
        return DecodeExtents(requests, tokens, requests_most)

    def choose(self, live: DecodeExtents) -> rt.Choice[DecodeExtents]:
        """The bucket of a step, or the reason why it runs eagerly."""
        requests = rt.smallest((1, 2, 4, 8), live.requests_most)
        if requests is None:
            return rt.Choice(None, rt.Reason.OVER_CAPACITY, "requests")
        tokens = requests
        return rt.Choice(DecodeExtents(requests, tokens, 0), rt.Reason.FITS)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DecodeOutputs:
    """What the last stage gives: live rows only."""

    hidden_states: Tensor  # [tokens, hidden] model, sglang_decode.yaml:87


class DecodeResults(rt.Outputs[DecodeExtents, DecodeOutputs]):
    """The last stage's outputs at stable addresses, one buffer for all buckets."""

    def table(self, rows: DecodeExtents) -> tuple[rt.TensorInfo, ...]:
        return (rt.TensorInfo("hidden_states", (rows.tokens, self.dims.hidden), self.dtype),)

    def held(self, of: Mapping[str, Tensor]) -> DecodeOutputs:
        return DecodeOutputs(hidden_states=of["hidden_states"])

    def pick(
        self,
        result: object,
        boundary: object,
        names: tuple[str, ...],
    ) -> Mapping[str, object]:
        return {"hidden_states": result}

    def trim(self, buffers: DecodeOutputs, live: DecodeExtents) -> DecodeOutputs:
        return DecodeOutputs(hidden_states=buffers.hidden_states.narrow(0, 0, live.tokens))
