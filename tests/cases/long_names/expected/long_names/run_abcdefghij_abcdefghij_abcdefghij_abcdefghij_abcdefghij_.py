# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 1; do not edit
# spec: sha256:5bd96e4653f8d40aa862a70fb2d9ee47566c099524416e4437b9b3c9e69a758d
"""The run_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ runner of long_names"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from ppcgc import runtime as rt
from torch import Tensor

from .family import Dims


class RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijExtents(NamedTuple):
    """Rows by axis: the live ones of a batch, or the padded ones of a bucket."""

    tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_: int
    req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_: int


AXES = (
    "tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
    "req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
)
COLUMNS = AXES
# where a batch has the live count of an axis
COUNTS: Mapping[str, str] = {
    "tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_": "abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcde.num_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
    "req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_": "abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcde.req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
}

# spec.yaml:17: one graph for each padded size; beside it, the live rows of its capture
BUCKETS: Mapping[
             RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijExtents,
             RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijExtents,
         ] = {
    RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijExtents(4, 2): RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijExtents(4, 2),
    RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijExtents(8, 2): RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijExtents(8, 2),
}


class RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijCountsAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcde(Protocol):
    """The live counts of a batch."""

    @property
    def num_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_(self) -> int: ...  # live tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_
    @property
    def req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_(self) -> int: ...  # live req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_


class RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijCounts(Protocol):
    """The live counts of a batch."""

    @property
    def abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcde(self) -> RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijCountsAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcde: ...


def extents(
    batch: RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijCounts,
    dims: Dims,
) -> RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijExtents:
    """The live rows of a batch. Raises SourceError for a count that is no host integer."""
    tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ = rt.live_count(batch.abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcde.num_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_, "abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcde.num_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_")
    req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ = rt.live_count(batch.abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcde.req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_, "abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcde.req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_")
    return RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijExtents(
        tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
        req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
    )


def choose(
    live: RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijExtents,
    dims: Dims,
) -> rt.Choice[RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijExtents]:
    """The bucket of a step, or the reason why it runs eagerly. The only choice a step makes."""
    if not (live.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ >= live.req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_):
        raise rt.broken_limit(
            "long_names.run_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
            "tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ >= req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
            "spec.yaml:18",
            live,
        )
    tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ = rt.smallest(
        (4, 8),
        live.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
    )
    if tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ is None:
        raise rt.over_capacity(
            "long_names.run_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
            "tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
            live.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            8,
            "spec.yaml:19",
        )
    req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ = 2
    if live.req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ > req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_:
        raise rt.over_capacity(
            "long_names.run_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
            "req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
            live.req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            "spec.yaml:19",
        )
    if live.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ >= 2 and tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ > 4.0 * live.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_:
        return rt.Choice(
            None,
            rt.Reason.MAX_PADDING,
            "tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
        )
    return rt.Choice(
        RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijExtents(
        tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
        req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
    ),
        rt.Reason.FITS,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijOutputs:
    """What the last stage gives: live rows only."""

    out_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_: Tensor  # [tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_, dim_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_] model, spec.yaml:30
    rng_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_: Tensor  # [req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_] float32, spec.yaml:31


class RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijResults(
    rt.Outputs[
        RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijExtents,
        RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijOutputs,
    ]
):
    """The last stage's outputs at stable addresses, one buffer for all buckets."""

    def buffers(
        self,
        arena: rt.DeviceArena,
        rows: RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijExtents,
        full: RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijExtents,
    ) -> RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijOutputs:
        self.rng_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij__ring = rt.OutputRing(
            arena,
            "rng_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
            (full.req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,),
            torch.float32,
            2,
        )
        return RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijOutputs(
            out_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_=arena.rows(
                "output.out_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
                (rows.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_, self.dims.dim_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_),
                (full.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_, self.dims.dim_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_),
                self.dtype,
            ),
            rng_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_=arena.rows(
                "output.rng_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
                (rows.req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,),
                (full.req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,),
                torch.float32,
            ),
        )

    def store(
        self,
        result: object,
        buffers: RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijOutputs,
        boundary: object,
    ) -> None:
        rt.store(
            buffers.out_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            rt.pick_key(result, "abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcde"),
            "out_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
        )
        rt.store(
            buffers.rng_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            rt.pick_key(result, "rng_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_"),
            "rng_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
        )

    def trim(
        self,
        buffers: RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijOutputs,
        live: RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijExtents,
    ) -> RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijOutputs:
        return RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijOutputs(
            out_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_=buffers.out_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_.narrow(0, 0, live.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_).clone(),
            rng_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_=self.rng_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij__ring.keep(buffers.rng_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_.narrow(0, 0, live.req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_)),
        )

    def eager(
        self,
        result: object,
        boundary: object,
        live: RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijExtents,
    ) -> RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijOutputs:
        return RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijOutputs(
            out_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_=rt.check_result(
                rt.pick_key(result, "abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcde"),
                (live.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_, self.dims.dim_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_),
                self.dtype,
                self.device,
                "out_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
            ),
            rng_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_=rt.check_result(
                rt.pick_key(result, "rng_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_"),
                (live.req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,),
                torch.float32,
                self.device,
                "rng_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
            ),
        )
