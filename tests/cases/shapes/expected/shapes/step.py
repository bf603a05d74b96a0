# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:d537729046a0e090de41a413e09a7ba112f6e5b0d839b71aaeedf67e3ee80f30
"""The step runner of shapes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import torch
from ppcgc import runtime as rt
from torch import Tensor

from .family import FINGERPRINT, Dims


class StepExtents(NamedTuple):
    """Rows by axis: the live ones of a batch, or the padded ones of a bucket."""

    tokens: int
    requests: int


# spec.yaml:15: the padded rows of each graph, and the live rows of its capture
BUCKETS = rt.bucket_table(StepExtents, {(4, 2): (4, 2), (8, 2): (8, 2)})


class StepCounts(Protocol):
    """The live counts of a batch."""

    @property
    def num_tokens(self) -> int: ...  # live tokens
    @property
    def num_requests(self) -> int: ...  # live requests


class StepSteps:
    """What all stages of the runner share: their graphs, and the one choice of each step."""

    family = "shapes"
    runner = "step"
    fingerprint = FINGERPRINT
    buckets = BUCKETS
    axes: ClassVar[tuple[str, ...]] = ("tokens", "requests")
    columns: ClassVar[tuple[str, ...]] = axes
    # where a batch has the number of a column
    counts: ClassVar[Mapping[str, str]] = {"tokens": "num_tokens", "requests": "num_requests"}
    dims: Dims

    def extents(self, batch: StepCounts) -> StepExtents:
        """The live rows of a batch. Raises SourceError for a count that is no host integer."""
        tokens = rt.live_count(batch.num_tokens, "num_tokens")
        requests = rt.live_count(batch.num_requests, "num_requests")
        return StepExtents(tokens, requests)

    def choose(self, live: StepExtents) -> rt.Choice[StepExtents]:
        """The bucket of a step, or the reason why it runs eagerly."""
        tokens = rt.smallest((4, 8), live.tokens)
        if tokens is None:
            raise rt.over_capacity("shapes.step", "tokens", live.tokens, 8, "spec.yaml:14")
        requests = 2
        if live.requests > requests:
            raise rt.over_capacity(
                "shapes.step",
                "requests",
                live.requests,
                requests,
                "spec.yaml:14",
            )
        return rt.Choice(StepExtents(tokens, requests), rt.Reason.FITS)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepOutputs:
    """What the last stage gives: live rows only."""

    hidden_states: Tensor  # [heads, tokens, head_dim] model, spec.yaml:29
    totals: Tensor  # [heads] float32, spec.yaml:30


class StepResults(rt.Outputs[StepExtents, StepOutputs]):
    """The last stage's outputs at stable addresses, one buffer for all buckets."""

    def table(self, rows: StepExtents) -> tuple[rt.TensorInfo, ...]:
        return (
            rt.TensorInfo(
                "hidden_states",
                (self.dims.heads, rows.tokens, self.dims.head_dim),
                self.dtype,
            ),
            rt.TensorInfo("totals", (self.dims.heads,), torch.float32),
        )

    def held(self, of: Mapping[str, Tensor]) -> StepOutputs:
        return StepOutputs(hidden_states=of["hidden_states"], totals=of["totals"])

    def pick(
        self,
        result: object,
        boundary: object,
        names: tuple[str, ...],
    ) -> Mapping[str, object]:
        return {
            "hidden_states": rt.pick_key(result, "hidden_states"),
            "totals": rt.pick_key(result, "totals"),
        }

    def trim(self, buffers: StepOutputs, live: StepExtents) -> StepOutputs:
        return StepOutputs(
            hidden_states=buffers.hidden_states.narrow(1, 0, live.tokens),
            totals=buffers.totals,
        )
