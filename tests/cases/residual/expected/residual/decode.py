# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 1; do not edit
# spec: sha256:2cd93665c94a074eb2e34e1247802518cef6b5599f7642a6c644e56ba51dbd2f
"""The decode runner of residual"""

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

# spec.yaml:37: one graph for each padded size; beside it, the live rows of its capture
BUCKETS: Mapping[DecodeExtents, DecodeExtents] = {
    DecodeExtents(1, 1): DecodeExtents(1, 1),
    DecodeExtents(2, 2): DecodeExtents(2, 2),
    DecodeExtents(4, 4): DecodeExtents(4, 4),
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
    requests = rt.smallest((1, 2, 4), live.requests)
    if requests is None:
        raise rt.over_capacity("residual.decode", "requests", live.requests, 4, "spec.yaml:38")
    tokens = requests
    return rt.Choice(DecodeExtents(requests, tokens), rt.Reason.FITS)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeOutputs:
    """What the last stage gives: live rows only."""

    hidden_states: Tensor  # [tokens, hidden] model, spec.yaml:48


class DecodeResults(rt.Outputs[DecodeExtents, DecodeOutputs]):
    """The last stage's outputs at stable addresses, one buffer for all buckets."""

    def buffers(
        self,
        arena: rt.DeviceArena,
        rows: DecodeExtents,
        full: DecodeExtents,
    ) -> DecodeOutputs:
        return DecodeOutputs(
            hidden_states=arena.rows(
                "output.hidden_states",
                (rows.tokens, self.dims.hidden),
                (full.tokens, self.dims.hidden),
                self.dtype,
            ),
        )

    def store(self, result: object, buffers: DecodeOutputs, boundary: object) -> None:
        rt.store(buffers.hidden_states, result, "hidden_states")

    def trim(self, buffers: DecodeOutputs, live: DecodeExtents) -> DecodeOutputs:
        return DecodeOutputs(
            hidden_states=buffers.hidden_states.narrow(0, 0, live.tokens).clone(),
        )

    def eager(self, result: object, boundary: object, live: DecodeExtents) -> DecodeOutputs:
        return DecodeOutputs(
            hidden_states=rt.check_result(
                result,
                (live.tokens, self.dims.hidden),
                self.dtype,
                self.device,
                "hidden_states",
            ),
        )
