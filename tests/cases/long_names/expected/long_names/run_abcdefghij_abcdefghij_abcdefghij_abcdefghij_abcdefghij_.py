# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:1e4305ee185251b0d581b9816b805fe79e4b5279f68fcee4c8dec058a34ec0b5
"""The run_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ runner of long_names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import torch
from ppcgc import runtime as rt
from torch import Tensor

from .family import FINGERPRINT, Dims


class RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijExtents(NamedTuple):
    """Rows by axis: the live ones of a batch, or the padded ones of a bucket."""

    tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_: int
    req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_: int


# spec.yaml:17: the padded rows of each graph, and the live rows of its capture
BUCKETS = rt.bucket_table(
    RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijExtents,
    {(4, 2): (4, 2), (8, 2): (8, 2)},
)


class RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijCountsAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcde(
    Protocol,
):
    """The live counts of a batch."""

    # live tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_
    @property
    def num_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_(self) -> int: ...
    # live req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_
    @property
    def req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_(self) -> int: ...


class RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijCounts(Protocol):
    """The live counts of a batch."""

    @property
    def abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcde(
        self,
    ) -> (
        RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijCountsAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcde
        | None
    ): ...


class RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijSteps:
    """What all stages of the runner share: their graphs, and the one choice of each step."""

    family = "long_names"
    runner = "run_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_"
    fingerprint = FINGERPRINT
    buckets = BUCKETS
    axes: ClassVar[tuple[str, ...]] = (
        "tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
        "req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
    )
    columns: ClassVar[tuple[str, ...]] = axes
    # where a batch has the number of a column
    counts: ClassVar[Mapping[str, str]] = {
        "tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_": "abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcde.num_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
        "req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_": "abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcde.req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
    }
    dims: Dims

    def extents(
        self,
        batch: RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijCounts,
    ) -> RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijExtents:
        """The live rows of a batch. Raises SourceError for a count that is no host integer."""
        tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ = rt.live_count(
            None
            if batch.abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcde is None
            else batch.abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcde.num_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            "abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcde.num_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
        )
        req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ = rt.live_count(
            None
            if batch.abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcde is None
            else batch.abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcde.req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            "abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcde.req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
        )
        return RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijExtents(
            tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
        )

    def check_limits(
        self,
        live: RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijExtents,
    ) -> None:
        """Raises LimitError for a batch that no step may have, with a graph or without."""
        if (
            live.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_
            < live.req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_
        ):
            raise rt.broken_limit(
                "long_names.run_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
                "tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ >= req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
                "spec.yaml:18",
                live,
            )

    def choose(
        self,
        live: RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijExtents,
    ) -> rt.Choice[RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijExtents]:
        """The bucket of a step, or the reason why it runs eagerly."""
        self.check_limits(live)
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
        if (
            live.req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_
            > req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_
        ):
            raise rt.over_capacity(
                "long_names.run_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
                "req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
                live.req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
                req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
                "spec.yaml:19",
            )
        if (
            live.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ >= 2
            and tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_
            > 4.0 * live.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_
        ):
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijOutputs:
    """What the last stage gives: live rows only."""

    # [tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_, dim_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_] model, spec.yaml:30
    out_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_: Tensor
    # [req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_] float32, spec.yaml:31
    rng_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_: Tensor


class RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijResults(
    rt.Outputs[
        RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijExtents,
        RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijOutputs,
    ],
):
    """The last stage's outputs at stable addresses, one buffer for all buckets."""

    views_only = False
    ring_entries: ClassVar[Mapping[str, int]] = {
        "rng_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_": 2,
    }

    def table(
        self,
        rows: RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijExtents,
    ) -> tuple[rt.TensorInfo, ...]:
        return (
            rt.TensorInfo(
                "out_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
                (
                    rows.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
                    self.dims.dim_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
                ),
                self.dtype,
            ),
            rt.TensorInfo(
                "rng_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
                (rows.req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,),
                torch.float32,
            ),
        )

    def held(
        self,
        of: Mapping[str, Tensor],
    ) -> RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijOutputs:
        return RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijOutputs(
            out_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_=of[
                "out_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_"
            ],
            rng_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_=of[
                "rng_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_"
            ],
        )

    def pick(
        self,
        result: object,
        boundary: object,
        names: tuple[str, ...],
    ) -> Mapping[str, object]:
        return {
            "out_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_": rt.pick_key(
                result,
                "abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcde",
            ),
            "rng_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_": rt.pick_key(
                result,
                "rng_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
            ),
        }

    def trim(
        self,
        buffers: RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijOutputs,
        live: RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijExtents,
    ) -> RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijOutputs:
        return RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijOutputs(
            out_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_=buffers.out_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_.narrow(
                0,
                0,
                live.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            ).clone(),
            rng_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_=self.kept(
                "rng_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
                buffers.rng_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_.narrow(
                    0,
                    0,
                    live.req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
                ),
            ),
        )
