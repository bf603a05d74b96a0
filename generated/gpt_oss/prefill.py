# ppcgc: generated from specs/gpt_oss.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:973e555edc50d488fa32795dcb8dc67177045d96387e5f1f308387990857c579
"""The prefill runner of gpt_oss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

from ppcgc import runtime as rt
from torch import Tensor

from .family import FINGERPRINT, Dims


class PrefillExtents(NamedTuple):
    """Rows by axis: the live ones of a batch, or the padded ones of a bucket."""

    tokens: int
    requests: int


# gemma3.yaml:28: the padded rows of each graph, and the live rows of its capture
BUCKETS = rt.bucket_table(
    PrefillExtents,
    {(8, 8): (8, 8), (16, 8): (16, 8), (32, 8): (32, 8), (64, 8): (64, 8)},
)


class PrefillCounts(Protocol):
    """The live counts of a batch."""

    @property
    def num_tokens(self) -> int: ...  # live tokens
    @property
    def num_requests(self) -> int: ...  # live requests


class PrefillSteps:
    """What all stages of the runner share: their graphs, and the one choice of each step."""

    family = "gpt_oss"
    runner = "prefill"
    fingerprint = FINGERPRINT
    buckets = BUCKETS
    axes: ClassVar[tuple[str, ...]] = ("tokens", "requests")
    columns: ClassVar[tuple[str, ...]] = axes
    # where a batch has the number of a column
    counts: ClassVar[Mapping[str, str]] = {"tokens": "num_tokens", "requests": "num_requests"}
    dims: Dims

    def extents(self, batch: PrefillCounts) -> PrefillExtents:
        """The live rows of a batch. Raises SourceError for a count that is no host integer."""
        tokens = rt.live_count(batch.num_tokens, "num_tokens")
        requests = rt.live_count(batch.num_requests, "num_requests")
        return PrefillExtents(tokens, requests)

    def check_limits(self, live: PrefillExtents) -> None:
        """Raises LimitError for a batch that no step may have, with a graph or without."""
        if live.tokens < live.requests:
            raise rt.broken_limit("gpt_oss.prefill", "tokens >= requests", "llama_hf.yaml:32", live)

    def choose(self, live: PrefillExtents) -> rt.Choice[PrefillExtents]:
        """The bucket of a step, or the reason why it runs eagerly."""
        self.check_limits(live)
        tokens = rt.smallest((8, 16, 32, 64), live.tokens)
        if tokens is None:
            return rt.Choice(None, rt.Reason.OVER_CAPACITY, "tokens")
        requests = 8
        if live.requests > requests:
            return rt.Choice(None, rt.Reason.OVER_CAPACITY, "requests")
        return rt.Choice(PrefillExtents(tokens, requests), rt.Reason.FITS)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrefillOutputs:
    """What the last stage gives: live rows only."""

    logits: Tensor  # [requests, vocab] model, llama_hf.yaml:44


class PrefillResults(rt.Outputs[PrefillExtents, PrefillOutputs]):
    """The last stage's outputs at stable addresses, one buffer for all buckets."""

    def table(self, rows: PrefillExtents) -> tuple[rt.TensorInfo, ...]:
        return (rt.TensorInfo("logits", (rows.requests, self.dims.vocab), self.dtype),)

    def held(self, of: Mapping[str, Tensor]) -> PrefillOutputs:
        return PrefillOutputs(logits=of["logits"])

    def pick(
        self,
        result: object,
        boundary: object,
        names: tuple[str, ...],
    ) -> Mapping[str, object]:
        return {"logits": result}

    def trim(self, buffers: PrefillOutputs, live: PrefillExtents) -> PrefillOutputs:
        return PrefillOutputs(logits=buffers.logits.narrow(0, 0, live.requests))
