# ppcgc: generated from specs/bench_llama.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:1a9996329bccfba3693523ddf7406001fb97911900169b5cb732c52ddb53c35b
"""The prefill_dense runner of bench_llama."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

from ppcgc import runtime as rt
from torch import Tensor

from .family import FINGERPRINT, Dims


class PrefillDenseExtents(NamedTuple):
    """Rows by axis: the live ones of a batch, or the padded ones of a bucket."""

    tokens: int
    requests: int


# bench_llama.yaml:50: the padded rows of each graph, and the live rows of its capture
BUCKETS = rt.bucket_table(
    PrefillDenseExtents,
    {
        (16, 16): (16, 16),
        (32, 16): (32, 16),
        (48, 16): (48, 16),
        (64, 16): (64, 16),
        (80, 16): (80, 16),
        (96, 16): (96, 16),
        (112, 16): (112, 16),
        (128, 16): (128, 16),
        (160, 16): (160, 16),
        (192, 16): (192, 16),
        (224, 16): (224, 16),
        (256, 16): (256, 16),
        (320, 16): (320, 16),
        (384, 16): (384, 16),
        (448, 16): (448, 16),
        (512, 16): (512, 16),
        (576, 16): (576, 16),
        (640, 16): (640, 16),
        (704, 16): (704, 16),
        (768, 16): (768, 16),
        (832, 16): (832, 16),
        (896, 16): (896, 16),
        (960, 16): (960, 16),
        (1024, 16): (1024, 16),
        (1152, 16): (1152, 16),
        (1280, 16): (1280, 16),
        (1408, 16): (1408, 16),
        (1536, 16): (1536, 16),
        (1664, 16): (1664, 16),
        (1792, 16): (1792, 16),
        (1920, 16): (1920, 16),
        (2048, 16): (2048, 16),
    },
)


class PrefillDenseCounts(Protocol):
    """The live counts of a batch."""

    @property
    def num_tokens(self) -> int: ...  # live tokens
    @property
    def num_requests(self) -> int: ...  # live requests


class PrefillDenseSteps:
    """What all stages of the runner share: their graphs, and the one choice of each step."""

    family = "bench_llama"
    runner = "prefill_dense"
    fingerprint = FINGERPRINT
    buckets = BUCKETS
    axes: ClassVar[tuple[str, ...]] = ("tokens", "requests")
    columns: ClassVar[tuple[str, ...]] = axes
    # where a batch has the number of a column
    counts: ClassVar[Mapping[str, str]] = {"tokens": "num_tokens", "requests": "num_requests"}
    dims: Dims

    def extents(self, batch: PrefillDenseCounts) -> PrefillDenseExtents:
        """The live rows of a batch. Raises SourceError for a count that is no host integer."""
        tokens = rt.live_count(batch.num_tokens, "num_tokens")
        requests = rt.live_count(batch.num_requests, "num_requests")
        return PrefillDenseExtents(tokens, requests)

    def check_limits(self, live: PrefillDenseExtents) -> None:
        """Raises LimitError for a batch that no step may have, with a graph or without."""
        if live.tokens < live.requests:
            raise rt.broken_limit(
                "bench_llama.prefill_dense",
                "tokens >= requests",
                "bench_llama.yaml:51",
                live,
            )

    def choose(self, live: PrefillDenseExtents) -> rt.Choice[PrefillDenseExtents]:
        """The bucket of a step, or the reason why it runs eagerly."""
        self.check_limits(live)
        tokens = rt.smallest(
            (
                16,
                32,
                48,
                64,
                80,
                96,
                112,
                128,
                160,
                192,
                224,
                256,
                320,
                384,
                448,
                512,
                576,
                640,
                704,
                768,
                832,
                896,
                960,
                1024,
                1152,
                1280,
                1408,
                1536,
                1664,
                1792,
                1920,
                2048,
            ),
            live.tokens,
        )
        if tokens is None:
            return rt.Choice(None, rt.Reason.OVER_CAPACITY, "tokens")
        requests = 16
        if live.requests > requests:
            return rt.Choice(None, rt.Reason.OVER_CAPACITY, "requests")
        return rt.Choice(PrefillDenseExtents(tokens, requests), rt.Reason.FITS)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrefillDenseOutputs:
    """What the last stage gives: live rows only."""

    hidden_states: Tensor  # [tokens, hidden] model, bench_llama.yaml:66


class PrefillDenseResults(rt.Outputs[PrefillDenseExtents, PrefillDenseOutputs]):
    """The last stage's outputs at stable addresses, one buffer for all buckets."""

    def table(self, rows: PrefillDenseExtents) -> tuple[rt.TensorInfo, ...]:
        return (rt.TensorInfo("hidden_states", (rows.tokens, self.dims.hidden), self.dtype),)

    def held(self, of: Mapping[str, Tensor]) -> PrefillDenseOutputs:
        return PrefillDenseOutputs(hidden_states=of["hidden_states"])

    def pick(
        self,
        result: object,
        boundary: object,
        names: tuple[str, ...],
    ) -> Mapping[str, object]:
        return {"hidden_states": result}

    def trim(self, buffers: PrefillDenseOutputs, live: PrefillDenseExtents) -> PrefillDenseOutputs:
        return PrefillDenseOutputs(hidden_states=buffers.hidden_states.narrow(0, 0, live.tokens))
