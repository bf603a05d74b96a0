# ppcgc: generated from specs/llama_parallel.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:1cf0528eed60b8101cfce9227076c03f5629733e8a71887231aa7eea6de44354
"""One new token for each running sequence."""

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
    tokens_most: int


# llama.yaml:49: the padded rows of each graph, and the live rows of its capture
BUCKETS = rt.bucket_table(
    DecodeExtents,
    {
        (1, 1, 0, 0): (1, 1, 0, 0),
        (2, 2, 0, 0): (2, 2, 0, 0),
        (4, 4, 0, 0): (4, 4, 0, 0),
        (8, 8, 0, 0): (8, 8, 0, 0),
        (16, 16, 0, 0): (16, 16, 0, 0),
    },
)


class DecodeCounts(Protocol):
    """The live counts of a batch."""

    @property
    def num_requests(self) -> int: ...  # live requests
    @property
    def all_requests(self) -> object: ...  # live requests of each dp rank
    @property
    def all_tokens(self) -> object: ...  # live tokens of each dp rank


class DecodeSteps:
    """What all stages of the runner share: their graphs, and the one choice of each step."""

    family = "llama_parallel"
    runner = "decode"
    fingerprint = FINGERPRINT
    buckets = BUCKETS
    axes: ClassVar[tuple[str, ...]] = ("requests", "tokens")
    columns: ClassVar[tuple[str, ...]] = ("requests", "tokens", "requests_most", "tokens_most")
    # where a batch has the number of a column
    counts: ClassVar[Mapping[str, str]] = {"requests": "num_requests"}
    groups: ClassVar[Mapping[str, rt.GroupCounts]] = {
        "requests_most": rt.GroupCounts("dp", "requests", "all_requests"),
        "tokens_most": rt.GroupCounts("dp", "tokens", "all_tokens"),
    }
    dims: Dims

    def extents(self, batch: DecodeCounts) -> DecodeExtents:
        """The live rows of a batch. Raises SourceError for a count that is no host integer."""
        requests = rt.live_count(batch.num_requests, "num_requests")
        tokens = requests
        requests_most = rt.group_most(batch.all_requests, "all_requests", self.dims.dp, requests)
        tokens_most = rt.group_most(batch.all_tokens, "all_tokens", self.dims.dp, tokens)
        return DecodeExtents(requests, tokens, requests_most, tokens_most)

    def choose(self, live: DecodeExtents) -> rt.Choice[DecodeExtents]:
        """The bucket of a step, or the reason why it runs eagerly."""
        requests = rt.smallest((1, 2, 4, 8, 16), live.requests_most)
        if requests is None:
            return rt.Choice(None, rt.Reason.OVER_CAPACITY, "requests")
        tokens = requests
        return rt.Choice(DecodeExtents(requests, tokens, 0, 0), rt.Reason.FITS)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DecodeOutputs:
    """What the last stage gives: live rows only."""

    hidden_states: Tensor  # [tokens, hidden] model, llama.yaml:63


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
