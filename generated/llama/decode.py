# ppcgc: generated from specs/llama.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:2c4847b3a218e5a2b0391c899a8f056c233c69768480a7ee2c6373c54f3f924f
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


# llama.yaml:49: the padded rows of each graph, and the live rows of its capture
BUCKETS = rt.bucket_table(
    DecodeExtents,
    {(1, 1): (1, 1), (2, 2): (2, 2), (4, 4): (4, 4), (8, 8): (8, 8), (16, 16): (16, 16)},
)


class DecodeCounts(Protocol):
    """The live counts of a batch."""

    @property
    def num_requests(self) -> int: ...  # live requests


class DecodeSteps:
    """What all stages of the runner share: their graphs, and the one choice of each step."""

    family = "llama"
    runner = "decode"
    fingerprint = FINGERPRINT
    buckets = BUCKETS
    axes: ClassVar[tuple[str, ...]] = ("requests", "tokens")
    columns: ClassVar[tuple[str, ...]] = axes
    # where a batch has the number of a column
    counts: ClassVar[Mapping[str, str]] = {"requests": "num_requests"}
    dims: Dims

    def extents(self, batch: DecodeCounts) -> DecodeExtents:
        """The live rows of a batch. Raises SourceError for a count that is no host integer."""
        requests = rt.live_count(batch.num_requests, "num_requests")
        tokens = requests
        return DecodeExtents(requests, tokens)

    def choose(self, live: DecodeExtents) -> rt.Choice[DecodeExtents]:
        """The bucket of a step, or the reason why it runs eagerly."""
        requests = rt.smallest((1, 2, 4, 8, 16), live.requests)
        if requests is None:
            return rt.Choice(None, rt.Reason.OVER_CAPACITY, "requests")
        tokens = requests
        return rt.Choice(DecodeExtents(requests, tokens), rt.Reason.FITS)


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
