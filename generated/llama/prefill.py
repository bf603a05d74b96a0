# ppcgc: generated from specs/llama.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:2c4847b3a218e5a2b0391c899a8f056c233c69768480a7ee2c6373c54f3f924f
"""Whole prompts, packed one behind the other."""

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


# llama.yaml:30: the padded rows of each graph, and the live rows of its capture
BUCKETS = rt.bucket_table(
    PrefillExtents,
    {
        (16, 16): (16, 16),
        (32, 16): (32, 16),
        (64, 16): (64, 16),
        (128, 16): (128, 16),
        (256, 16): (256, 16),
        (512, 16): (512, 16),
        (1024, 16): (1024, 16),
        (2048, 16): (2048, 16),
    },
)


class PrefillCounts(Protocol):
    """The live counts of a batch."""

    @property
    def num_tokens(self) -> int: ...  # live tokens
    @property
    def num_requests(self) -> int: ...  # live requests


class PrefillSteps:
    """What all stages of the runner share: their graphs, and the one choice of each step."""

    family = "llama"
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
            raise rt.broken_limit("llama.prefill", "tokens >= requests", "llama.yaml:31", live)

    def choose(self, live: PrefillExtents) -> rt.Choice[PrefillExtents]:
        """The bucket of a step, or the reason why it runs eagerly."""
        self.check_limits(live)
        tokens = rt.smallest((16, 32, 64, 128, 256, 512, 1024, 2048), live.tokens)
        if tokens is None:
            return rt.Choice(None, rt.Reason.OVER_CAPACITY, "tokens")
        requests = 16
        if live.requests > requests:
            return rt.Choice(None, rt.Reason.OVER_CAPACITY, "requests")
        if live.tokens >= 16 and tokens > 2.0 * live.tokens:
            return rt.Choice(None, rt.Reason.MAX_PADDING, "tokens")
        return rt.Choice(PrefillExtents(tokens, requests), rt.Reason.FITS)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrefillOutputs:
    """What the last stage gives: live rows only."""

    hidden_states: Tensor  # [tokens, hidden] model, llama.yaml:45


class PrefillResults(rt.Outputs[PrefillExtents, PrefillOutputs]):
    """The last stage's outputs at stable addresses, one buffer for all buckets."""

    def table(self, rows: PrefillExtents) -> tuple[rt.TensorInfo, ...]:
        return (rt.TensorInfo("hidden_states", (rows.tokens, self.dims.hidden), self.dtype),)

    def held(self, of: Mapping[str, Tensor]) -> PrefillOutputs:
        return PrefillOutputs(hidden_states=of["hidden_states"])

    def pick(
        self,
        result: object,
        boundary: object,
        names: tuple[str, ...],
    ) -> Mapping[str, object]:
        return {"hidden_states": result}

    def trim(self, buffers: PrefillOutputs, live: PrefillExtents) -> PrefillOutputs:
        return PrefillOutputs(hidden_states=buffers.hidden_states.narrow(0, 0, live.tokens))
