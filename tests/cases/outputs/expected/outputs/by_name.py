# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:70852ee30e9dd3150034fe106d7caef838dfd044e75bb01550f561b5abd47f24
"""The by_name runner of outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import torch
from ppcgc import runtime as rt
from torch import Tensor

from .family import FINGERPRINT, Dims


class ByNameExtents(NamedTuple):
    """Rows by axis: the live ones of a batch, or the padded ones of a bucket."""

    tokens: int
    requests: int


# spec.yaml:13: the padded rows of each graph, and the live rows of its capture
BUCKETS = rt.bucket_table(ByNameExtents, {(2, 2): (2, 2), (4, 2): (4, 2)})


class ByNameCounts(Protocol):
    """The live counts of a batch."""

    @property
    def num_tokens(self) -> int: ...  # live tokens
    @property
    def num_requests(self) -> int: ...  # live requests


class ByNameSteps:
    """What all stages of the runner share: their graphs, and the one choice of each step."""

    family = "outputs"
    runner = "by_name"
    fingerprint = FINGERPRINT
    buckets = BUCKETS
    axes: ClassVar[tuple[str, ...]] = ("tokens", "requests")
    columns: ClassVar[tuple[str, ...]] = axes
    # where a batch has the number of a column
    counts: ClassVar[Mapping[str, str]] = {"tokens": "num_tokens", "requests": "num_requests"}
    dims: Dims

    def extents(self, batch: ByNameCounts) -> ByNameExtents:
        """The live rows of a batch. Raises SourceError for a count that is no host integer."""
        tokens = rt.live_count(batch.num_tokens, "num_tokens")
        requests = rt.live_count(batch.num_requests, "num_requests")
        return ByNameExtents(tokens, requests)

    def choose(self, live: ByNameExtents) -> rt.Choice[ByNameExtents]:
        """The bucket of a step, or the reason why it runs eagerly."""
        tokens = rt.smallest((2, 4), live.tokens)
        if tokens is None:
            raise rt.over_capacity("outputs.by_name", "tokens", live.tokens, 4, "spec.yaml:12")
        requests = 2
        if live.requests > requests:
            raise rt.over_capacity(
                "outputs.by_name",
                "requests",
                live.requests,
                requests,
                "spec.yaml:12",
            )
        return rt.Choice(ByNameExtents(tokens, requests), rt.Reason.FITS)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ByNameOutputs:
    """What the last stage gives: live rows only."""

    logits: Tensor  # [requests, vocab] float32, spec.yaml:20
    hidden_states: Tensor  # [tokens, hidden] model, spec.yaml:21
    loads: Tensor  # [4] int64, spec.yaml:22
    lanes: Tensor  # [3, tokens] int32, spec.yaml:23


class ByNameResults(rt.Outputs[ByNameExtents, ByNameOutputs]):
    """The last stage's outputs at stable addresses, one buffer for all buckets."""

    views_only = False
    ring_entries: ClassVar[Mapping[str, int]] = {"logits": 3, "loads": 2}

    def table(self, rows: ByNameExtents) -> tuple[rt.TensorInfo, ...]:
        return (
            rt.TensorInfo("logits", (rows.requests, self.dims.vocab), torch.float32),
            rt.TensorInfo("hidden_states", (rows.tokens, self.dims.hidden), self.dtype),
            rt.TensorInfo("loads", (4,), torch.int64),
            rt.TensorInfo("lanes", (3, rows.tokens), torch.int32),
        )

    def held(self, of: Mapping[str, Tensor]) -> ByNameOutputs:
        return ByNameOutputs(
            logits=of["logits"],
            hidden_states=of["hidden_states"],
            loads=of["loads"],
            lanes=of["lanes"],
        )

    def pick(
        self,
        result: object,
        boundary: object,
        names: tuple[str, ...],
    ) -> Mapping[str, object]:
        return {
            "logits": rt.pick_key(result, "logits"),
            "hidden_states": rt.pick_key(result, "last_hidden_state"),
            "loads": rt.pick_key(result, "loads"),
            "lanes": rt.pick_key(result, "lanes"),
        }

    def trim(self, buffers: ByNameOutputs, live: ByNameExtents) -> ByNameOutputs:
        return ByNameOutputs(
            logits=self.kept("logits", buffers.logits.narrow(0, 0, live.requests)),
            hidden_states=buffers.hidden_states.narrow(0, 0, live.tokens).clone(),
            loads=self.kept("loads", buffers.loads),
            lanes=buffers.lanes.narrow(1, 0, live.tokens),
        )
