# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:3c5989f596772bebbe05153ede4982a22e3a42d6bc42f272be8dc574803c1086
"""The prefill runner of derived_axes."""

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
    halves: int


# spec.yaml:30: the padded rows of each graph, and the live rows of its capture
BUCKETS = rt.bucket_table(PrefillExtents, {(4, 2): (4, 2), (12, 6): (12, 6)})


class PrefillCounts(Protocol):
    """The live counts of a batch."""

    @property
    def num_tokens(self) -> int: ...  # live tokens


class PrefillSteps:
    """What all stages of the runner share: their graphs, and the one choice of each step."""

    family = "derived_axes"
    runner = "prefill"
    fingerprint = FINGERPRINT
    buckets = BUCKETS
    axes: ClassVar[tuple[str, ...]] = ("tokens", "halves")
    columns: ClassVar[tuple[str, ...]] = axes
    # where a batch has the number of a column
    counts: ClassVar[Mapping[str, str]] = {"tokens": "num_tokens"}
    dims: Dims

    def extents(self, batch: PrefillCounts) -> PrefillExtents:
        """The live rows of a batch. Raises SourceError for a count that is no host integer."""
        tokens = rt.live_count(batch.num_tokens, "num_tokens")
        halves = rt.ceil_div(tokens, 2)
        return PrefillExtents(tokens, halves)

    def choose(self, live: PrefillExtents) -> rt.Choice[PrefillExtents]:
        """The bucket of a step, or the reason why it runs eagerly."""
        tokens = rt.smallest((4, 12), live.tokens)
        if tokens is None:
            raise rt.over_capacity(
                "derived_axes.prefill",
                "tokens",
                live.tokens,
                12,
                "spec.yaml:29",
            )
        halves = max(rt.floor_div(tokens, 2), 1)
        if live.halves > halves:
            raise rt.over_capacity(
                "derived_axes.prefill",
                "halves",
                live.halves,
                halves,
                "spec.yaml:29",
            )
        return rt.Choice(PrefillExtents(tokens, halves), rt.Reason.FITS)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrefillOutputs:
    """What the last stage gives: live rows only."""

    hidden_states: Tensor  # [tokens, hidden] model, spec.yaml:38


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
