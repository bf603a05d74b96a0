# ppcgc: generated from specs/llama_flashinfer.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:d6bfb3bebb39dea1a74622641c924c00b0979f03b1d1b4fb6ce75ebab6e1f7e7
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
    pages: int


# llama_flashinfer.yaml:23: the padded rows of each graph, and the live rows of its capture
BUCKETS = rt.bucket_table(
    PrefillExtents,
    {
        (16, 16, 64): (16, 16, 64),
        (32, 16, 64): (32, 16, 64),
        (64, 16, 64): (64, 16, 64),
        (128, 16, 64): (128, 16, 64),
    },
)


class PrefillCounts(Protocol):
    """The live counts of a batch."""

    @property
    def num_tokens(self) -> int: ...  # live tokens
    @property
    def num_requests(self) -> int: ...  # live requests
    @property
    def num_pages(self) -> int: ...  # live pages


class PrefillSteps:
    """What all stages of the runner share: their graphs, and the one choice of each step."""

    family = "llama_flashinfer"
    runner = "prefill"
    fingerprint = FINGERPRINT
    buckets = BUCKETS
    axes: ClassVar[tuple[str, ...]] = ("tokens", "requests", "pages")
    columns: ClassVar[tuple[str, ...]] = axes
    # where a batch has the number of a column
    counts: ClassVar[Mapping[str, str]] = {
        "tokens": "num_tokens",
        "requests": "num_requests",
        "pages": "num_pages",
    }
    dims: Dims

    def extents(self, batch: PrefillCounts) -> PrefillExtents:
        """The live rows of a batch. Raises SourceError for a count that is no host integer."""
        tokens = rt.live_count(batch.num_tokens, "num_tokens")
        requests = rt.live_count(batch.num_requests, "num_requests")
        pages = rt.live_count(batch.num_pages, "num_pages")
        return PrefillExtents(tokens, requests, pages)

    def check_limits(self, live: PrefillExtents) -> None:
        """Raises LimitError for a batch that no step may have, with a graph or without."""
        if live.tokens < live.requests:
            raise rt.broken_limit(
                "llama_flashinfer.prefill",
                "tokens >= requests",
                "llama_flashinfer.yaml:24",
                live,
            )
        if live.pages < live.requests:
            raise rt.broken_limit(
                "llama_flashinfer.prefill",
                "pages >= requests",
                "llama_flashinfer.yaml:24",
                live,
            )

    def choose(self, live: PrefillExtents) -> rt.Choice[PrefillExtents]:
        """The bucket of a step, or the reason why it runs eagerly."""
        self.check_limits(live)
        tokens = rt.smallest((16, 32, 64, 128), live.tokens)
        if tokens is None:
            return rt.Choice(None, rt.Reason.OVER_CAPACITY, "tokens")
        requests = 16
        if live.requests > requests:
            return rt.Choice(None, rt.Reason.OVER_CAPACITY, "requests")
        pages = 64
        if live.pages > pages:
            return rt.Choice(None, rt.Reason.OVER_CAPACITY, "pages")
        if live.tokens >= 16 and tokens > 4.0 * live.tokens:
            return rt.Choice(None, rt.Reason.MAX_PADDING, "tokens")
        return rt.Choice(PrefillExtents(tokens, requests, pages), rt.Reason.FITS)


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
