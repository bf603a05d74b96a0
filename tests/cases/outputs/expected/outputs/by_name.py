# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 1; do not edit
# spec: sha256:4c75f6229891d375adee6ab56edc23eebe277a952666f7dbfdc46dcb7ad90427
"""The by_name runner of outputs"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from ppcgc import runtime as rt
from torch import Tensor

from .family import Dims


class ByNameExtents(NamedTuple):
    """Rows by axis: the live ones of a batch, or the padded ones of a bucket."""

    tokens: int
    requests: int


AXES = ("tokens", "requests")
COLUMNS = AXES
# where a batch has the live count of an axis
COUNTS: Mapping[str, str] = {"tokens": "num_tokens", "requests": "num_requests"}

# spec.yaml:13: one graph for each padded size; beside it, the live rows of its capture
BUCKETS: Mapping[ByNameExtents, ByNameExtents] = {
    ByNameExtents(2, 2): ByNameExtents(2, 2),
    ByNameExtents(4, 2): ByNameExtents(4, 2),
}


class ByNameCounts(Protocol):
    """The live counts of a batch."""

    @property
    def num_tokens(self) -> int: ...  # live tokens
    @property
    def num_requests(self) -> int: ...  # live requests


def extents(batch: ByNameCounts, dims: Dims) -> ByNameExtents:
    """The live rows of a batch. Raises SourceError for a count that is no host integer."""
    tokens = rt.live_count(batch.num_tokens, "num_tokens")
    requests = rt.live_count(batch.num_requests, "num_requests")
    return ByNameExtents(tokens, requests)


def choose(live: ByNameExtents, dims: Dims) -> rt.Choice[ByNameExtents]:
    """The bucket of a step, or the reason why it runs eagerly. The only choice a step makes."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ByNameOutputs:
    """What the last stage gives: live rows only."""

    logits: Tensor  # [requests, vocab] float32, spec.yaml:20
    hidden_states: Tensor  # [tokens, hidden] model, spec.yaml:21
    loads: Tensor  # [4] int64, spec.yaml:22
    lanes: Tensor  # [3, tokens] int32, spec.yaml:23


class ByNameResults(rt.Outputs[ByNameExtents, ByNameOutputs]):
    """The last stage's outputs at stable addresses, one buffer for all buckets."""

    def buffers(
        self,
        arena: rt.DeviceArena,
        rows: ByNameExtents,
        full: ByNameExtents,
    ) -> ByNameOutputs:
        self.logits_ring = rt.OutputRing(
            arena,
            "logits",
            (full.requests, self.dims.vocab),
            torch.float32,
            3,
        )
        self.loads_ring = rt.OutputRing(arena, "loads", (4,), torch.int64, 2)
        return ByNameOutputs(
            logits=arena.rows(
                "output.logits",
                (rows.requests, self.dims.vocab),
                (full.requests, self.dims.vocab),
                torch.float32,
            ),
            hidden_states=arena.rows(
                "output.hidden_states",
                (rows.tokens, self.dims.hidden),
                (full.tokens, self.dims.hidden),
                self.dtype,
            ),
            loads=arena.rows("output.loads", (4,), (4,), torch.int64),
            lanes=arena.rows("output.lanes", (3, rows.tokens), (3, full.tokens), torch.int32),
        )

    def store(self, result: object, buffers: ByNameOutputs, boundary: object) -> None:
        rt.store(buffers.logits, rt.pick_key(result, "logits"), "logits")
        rt.store(buffers.hidden_states, rt.pick_key(result, "last_hidden_state"), "hidden_states")
        rt.store(buffers.loads, rt.pick_key(result, "loads"), "loads")
        rt.store(buffers.lanes, rt.pick_key(result, "lanes"), "lanes")

    def trim(self, buffers: ByNameOutputs, live: ByNameExtents) -> ByNameOutputs:
        return ByNameOutputs(
            logits=self.logits_ring.keep(buffers.logits.narrow(0, 0, live.requests)),
            hidden_states=buffers.hidden_states.narrow(0, 0, live.tokens).clone(),
            loads=self.loads_ring.keep(buffers.loads),
            lanes=buffers.lanes.narrow(1, 0, live.tokens),
        )

    def eager(self, result: object, boundary: object, live: ByNameExtents) -> ByNameOutputs:
        return ByNameOutputs(
            logits=rt.check_result(
                rt.pick_key(result, "logits"),
                (live.requests, self.dims.vocab),
                torch.float32,
                self.device,
                "logits",
            ),
            hidden_states=rt.check_result(
                rt.pick_key(result, "last_hidden_state"),
                (live.tokens, self.dims.hidden),
                self.dtype,
                self.device,
                "hidden_states",
            ),
            loads=rt.check_result(
                rt.pick_key(result, "loads"),
                (4,),
                torch.int64,
                self.device,
                "loads",
            ),
            lanes=rt.check_result(
                rt.pick_key(result, "lanes"),
                (3, live.tokens),
                torch.int32,
                self.device,
                "lanes",
            ),
        )
