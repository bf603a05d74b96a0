# ppcgc: generated from specs/sglang_prefill.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:f8d530ac0644a20edd50ef335b38862d75a55fac961252e19282bd1619178667
"""The prefill runner of sglang_prefill."""

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


# sglang_prefill.yaml:46: the padded rows of each graph, and the live rows of its capture
BUCKETS = rt.bucket_table(
    PrefillExtents,
    {
        (8, 16, 0): (8, 8, 0),
        (16, 16, 0): (16, 16, 0),
        (32, 16, 0): (32, 16, 0),
        (64, 16, 0): (64, 16, 0),
    },
)


class PrefillCounts(Protocol):
    """The live counts of a batch."""

    @property
    def extend_num_tokens(self) -> int: ...  # live tokens
    @property
    def global_num_tokens_cpu(self) -> object: ...  # live tokens of each dp rank
    @property
    def batch_size(self) -> int: ...  # live requests


class PrefillSteps:
    """What all stages of the runner share: their graphs, and the one choice of each step."""

    family = "sglang_prefill"
    runner = "prefill"
    fingerprint = FINGERPRINT
    buckets = BUCKETS
    axes: ClassVar[tuple[str, ...]] = ("tokens", "requests")
    columns: ClassVar[tuple[str, ...]] = ("tokens", "requests", "tokens_most")
    # where a batch has the number of a column
    counts: ClassVar[Mapping[str, str]] = {"tokens": "extend_num_tokens", "requests": "batch_size"}
    groups: ClassVar[Mapping[str, rt.GroupCounts]] = {
        "tokens_most": rt.GroupCounts("dp", "tokens", "global_num_tokens_cpu"),
    }
    dims: Dims

    def extents(self, batch: PrefillCounts) -> PrefillExtents:
        """The live rows of a batch. Raises SourceError for a count that is no host integer."""
        tokens = rt.live_count(batch.extend_num_tokens, "extend_num_tokens")
        requests = rt.live_count(batch.batch_size, "batch_size")
        tokens_most = rt.group_most(
            batch.global_num_tokens_cpu,
            "global_num_tokens_cpu",
            self.dims.dp,
            tokens,
        )
        return PrefillExtents(tokens, requests, tokens_most)

    def check_limits(self, live: PrefillExtents) -> None:
        """Raises LimitError for a batch that no step may have, with a graph or without."""
        if live.tokens < live.requests:
            raise rt.broken_limit(
                "sglang_prefill.prefill",
                "tokens >= requests",
                "sglang_prefill.yaml:47",
                live,
            )

    def choose(self, live: PrefillExtents) -> rt.Choice[PrefillExtents]:
        """The bucket of a step, or the reason why it runs eagerly."""
        self.check_limits(live)
        tokens = rt.smallest((8, 16, 32, 64), live.tokens_most)
        if tokens is None:
            return rt.Choice(None, rt.Reason.OVER_CAPACITY, "tokens")
        requests = 16
        if live.requests > requests:
            return rt.Choice(None, rt.Reason.OVER_CAPACITY, "requests")
        return rt.Choice(PrefillExtents(tokens, requests, 0), rt.Reason.FITS)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrefillOutputs:
    """What the last stage gives: live rows only."""

    hidden_states: Tensor  # [tokens, hidden] model, sglang_prefill.yaml:75


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
