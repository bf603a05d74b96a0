# ppcgc: generated from specs/llama_parallel.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:1cf0528eed60b8101cfce9227076c03f5629733e8a71887231aa7eea6de44354
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
    tokens_most: int
    requests_most: int


# llama.yaml:30: the padded rows of each graph, and the live rows of its capture
BUCKETS = rt.bucket_table(
    PrefillExtents,
    {
        (16, 16, 0, 0): (16, 16, 0, 0),
        (32, 16, 0, 0): (32, 16, 0, 0),
        (64, 16, 0, 0): (64, 16, 0, 0),
        (128, 16, 0, 0): (128, 16, 0, 0),
        (256, 16, 0, 0): (256, 16, 0, 0),
        (512, 16, 0, 0): (512, 16, 0, 0),
        (1024, 16, 0, 0): (1024, 16, 0, 0),
        (2048, 16, 0, 0): (2048, 16, 0, 0),
    },
)


class PrefillCounts(Protocol):
    """The live counts of a batch."""

    @property
    def num_tokens(self) -> int: ...  # live tokens
    @property
    def all_tokens(self) -> object: ...  # live tokens of each dp rank
    @property
    def num_requests(self) -> int: ...  # live requests
    @property
    def all_requests(self) -> object: ...  # live requests of each dp rank


class PrefillSteps:
    """What all stages of the runner share: their graphs, and the one choice of each step."""

    family = "llama_parallel"
    runner = "prefill"
    fingerprint = FINGERPRINT
    buckets = BUCKETS
    axes: ClassVar[tuple[str, ...]] = ("tokens", "requests")
    columns: ClassVar[tuple[str, ...]] = ("tokens", "requests", "tokens_most", "requests_most")
    # where a batch has the number of a column
    counts: ClassVar[Mapping[str, str]] = {"tokens": "num_tokens", "requests": "num_requests"}
    groups: ClassVar[Mapping[str, rt.GroupCounts]] = {
        "requests_most": rt.GroupCounts("dp", "requests", "all_requests"),
        "tokens_most": rt.GroupCounts("dp", "tokens", "all_tokens"),
    }
    dims: Dims

    def extents(self, batch: PrefillCounts) -> PrefillExtents:
        """The live rows of a batch. Raises SourceError for a count that is no host integer."""
        tokens = rt.live_count(batch.num_tokens, "num_tokens")
        requests = rt.live_count(batch.num_requests, "num_requests")
        tokens_most = rt.group_most(batch.all_tokens, "all_tokens", self.dims.dp, tokens)
        requests_most = rt.group_most(batch.all_requests, "all_requests", self.dims.dp, requests)
        return PrefillExtents(tokens, requests, tokens_most, requests_most)

    def check_limits(self, live: PrefillExtents) -> None:
        """Raises LimitError for a batch that no step may have, with a graph or without."""
        if live.tokens < live.requests:
            raise rt.broken_limit(
                "llama_parallel.prefill",
                "tokens >= requests",
                "llama.yaml:31",
                live,
            )

    def choose(self, live: PrefillExtents) -> rt.Choice[PrefillExtents]:
        """The bucket of a step, or the reason why it runs eagerly."""
        self.check_limits(live)
        tokens = rt.smallest((16, 32, 64, 128, 256, 512, 1024, 2048), live.tokens_most)
        if tokens is None:
            return rt.Choice(None, rt.Reason.OVER_CAPACITY, "tokens")
        requests = 16
        if live.requests_most > requests:
            return rt.Choice(None, rt.Reason.OVER_CAPACITY, "requests")
        if live.tokens_most >= 16 and tokens > 2.0 * live.tokens_most:
            return rt.Choice(None, rt.Reason.MAX_PADDING, "tokens")
        return rt.Choice(PrefillExtents(tokens, requests, 0, 0), rt.Reason.FITS)


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
