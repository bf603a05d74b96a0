# ppcgc: generated from specs/gpt_oss.yaml by ppcgc 0.1.0, ABI 1; do not edit
# spec: sha256:5b5b2a3e44e03bed2541a73c2b20c80b415d3e5dbe700b179e12c450aa4716b1
"""The decode runner of gpt_oss"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ppcgc import runtime as rt
from torch import Tensor

from .family import Dims


class DecodeExtents(NamedTuple):
    """Rows by axis: the live ones of a batch, or the padded ones of a bucket."""

    requests: int
    tokens: int


AXES = ("requests", "tokens")
COLUMNS = AXES
# where a batch has the live count of an axis
COUNTS: Mapping[str, str] = {"requests": "num_requests"}

# gemma3.yaml:34: one graph for each padded size; beside it, the live rows of its capture
BUCKETS: Mapping[DecodeExtents, DecodeExtents] = {
    DecodeExtents(1, 1): DecodeExtents(1, 1),
    DecodeExtents(2, 2): DecodeExtents(2, 2),
    DecodeExtents(4, 4): DecodeExtents(4, 4),
    DecodeExtents(8, 8): DecodeExtents(8, 8),
}


class DecodeCounts(Protocol):
    """The live counts of a batch."""

    @property
    def num_requests(self) -> int: ...  # live requests


def extents(batch: DecodeCounts, dims: Dims) -> DecodeExtents:
    """The live rows of a batch. Raises SourceError for a count that is no host integer."""
    requests = rt.live_count(batch.num_requests, "num_requests")
    tokens = requests
    return DecodeExtents(requests, tokens)


def choose(live: DecodeExtents, dims: Dims) -> rt.Choice[DecodeExtents]:
    """The bucket of a step, or the reason why it runs eagerly. The only choice a step makes."""
    requests = rt.smallest((1, 2, 4, 8), live.requests)
    if requests is None:
        return rt.Choice(None, rt.Reason.OVER_CAPACITY, "requests")
    tokens = requests
    return rt.Choice(DecodeExtents(requests, tokens), rt.Reason.FITS)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeOutputs:
    """What the last stage gives: live rows only."""

    logits: Tensor  # [requests, vocab] model, llama_hf.yaml:60


class DecodeResults(rt.Outputs[DecodeExtents, DecodeOutputs]):
    """The last stage's outputs at stable addresses, one buffer for all buckets."""

    def buffers(
        self,
        arena: rt.DeviceArena,
        rows: DecodeExtents,
        full: DecodeExtents,
    ) -> DecodeOutputs:
        return DecodeOutputs(
            logits=arena.rows(
                "output.logits",
                (rows.requests, self.dims.vocab),
                (full.requests, self.dims.vocab),
                self.dtype,
            ),
        )

    def store(self, result: object, buffers: DecodeOutputs, boundary: object) -> None:
        rt.store(buffers.logits, result, "logits")

    def trim(self, buffers: DecodeOutputs, live: DecodeExtents) -> DecodeOutputs:
        return DecodeOutputs(
            logits=buffers.logits.narrow(0, 0, live.requests),
        )

    def eager(self, result: object, boundary: object, live: DecodeExtents) -> DecodeOutputs:
        return DecodeOutputs(
            logits=rt.check_result(
                result,
                (live.requests, self.dims.vocab),
                self.dtype,
                self.device,
                "logits",
            ),
        )
