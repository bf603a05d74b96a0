# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:3c5989f596772bebbe05153ede4982a22e3a42d6bc42f272be8dc574803c1086
"""The verify runner of derived_axes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

from ppcgc import runtime as rt
from torch import Tensor

from .family import FINGERPRINT, Dims


class VerifyExtents(NamedTuple):
    """Rows by axis: the live ones of a batch, or the padded ones of a bucket."""

    halves: int
    tokens: int
    requests: int
    pages: int


# spec.yaml:16: the padded rows of each graph, and the live rows of its capture
BUCKETS = rt.bucket_table(
    VerifyExtents,
    {(6, 3, 1, 2): (2, 3, 1, 2), (6, 6, 2, 4): (3, 6, 2, 4), (6, 12, 4, 8): (6, 12, 4, 8)},
)


class VerifyCounts(Protocol):
    """The live counts of a batch."""

    @property
    def num_requests(self) -> int: ...  # live requests
    @property
    def num_pages(self) -> int: ...  # live pages


class VerifySteps:
    """What all stages of the runner share: their graphs, and the one choice of each step."""

    family = "derived_axes"
    runner = "verify"
    fingerprint = FINGERPRINT
    buckets = BUCKETS
    axes: ClassVar[tuple[str, ...]] = ("halves", "tokens", "requests", "pages")
    columns: ClassVar[tuple[str, ...]] = axes
    # where a batch has the number of a column
    counts: ClassVar[Mapping[str, str]] = {"requests": "num_requests", "pages": "num_pages"}
    dims: Dims

    def extents(self, batch: VerifyCounts) -> VerifyExtents:
        """The live rows of a batch. Raises SourceError for a count that is no host integer."""
        requests = rt.live_count(batch.num_requests, "num_requests")
        tokens = requests * 3
        halves = rt.ceil_div(tokens, 2)
        pages = rt.live_count(batch.num_pages, "num_pages")
        return VerifyExtents(halves, tokens, requests, pages)

    def check_limits(self, live: VerifyExtents) -> None:
        """Raises LimitError for a batch that no step may have, with a graph or without."""
        if not (live.pages >= live.requests or live.requests == 0):
            raise rt.broken_limit(
                "derived_axes.verify",
                "pages >= requests or requests == 0",
                "spec.yaml:17",
                live,
            )
        if live.requests == 3:
            raise rt.broken_limit(
                "derived_axes.verify",
                "not (requests == 3)",
                "spec.yaml:17",
                live,
            )

    def choose(self, live: VerifyExtents) -> rt.Choice[VerifyExtents]:
        """The bucket of a step, or the reason why it runs eagerly."""
        self.check_limits(live)
        halves = 6
        if live.halves > halves:
            return rt.Choice(None, rt.Reason.OVER_CAPACITY, "halves")
        requests = rt.smallest((1, 2, 4), live.requests)
        if requests is None:
            return rt.Choice(None, rt.Reason.OVER_CAPACITY, "requests")
        tokens = requests * 3
        pages = requests * 2
        if live.pages > pages:
            return rt.Choice(None, rt.Reason.OVER_CAPACITY, "pages")
        return rt.Choice(VerifyExtents(halves, tokens, requests, pages), rt.Reason.FITS)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VerifyOutputs:
    """What the last stage gives: live rows only."""

    hidden_states: Tensor  # [tokens, hidden] model, spec.yaml:28


class VerifyResults(rt.Outputs[VerifyExtents, VerifyOutputs]):
    """The last stage's outputs at stable addresses, one buffer for all buckets."""

    def table(self, rows: VerifyExtents) -> tuple[rt.TensorInfo, ...]:
        return (rt.TensorInfo("hidden_states", (rows.tokens, self.dims.hidden), self.dtype),)

    def held(self, of: Mapping[str, Tensor]) -> VerifyOutputs:
        return VerifyOutputs(hidden_states=of["hidden_states"])

    def pick(
        self,
        result: object,
        boundary: object,
        names: tuple[str, ...],
    ) -> Mapping[str, object]:
        return {"hidden_states": result}

    def trim(self, buffers: VerifyOutputs, live: VerifyExtents) -> VerifyOutputs:
        return VerifyOutputs(hidden_states=buffers.hidden_states.narrow(0, 0, live.tokens))
