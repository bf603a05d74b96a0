"""A runner as the module of a ``torch.distributed.pipelining`` stage, for people with schedules.

Note [a schedule keeps every output]
    A schedule waits for its sends, and merges the last stage's outputs, only after the last
    microbatch. A graph writes one address, so a bare captured stage would send and merge the last
    microbatch many times, without an error. Here each microbatch has an output slot of its own.

Note [shapes are given, never inferred]
    Without shapes on every stage, a schedule calls the module once more on uninitialised memory
    to learn them, which would write garbage into a KV cache; and rows that do not divide evenly
    come back stale, without an error. So all microbatches have the same rows, given beforehand.

Note [parts have one shape too]
    Of a boundary that is split over ranks of tp each rank hands on its own part. Parts differ from
    rank to rank, but with the same rows in all microbatches not from one to the next. They are cut
    as the bucket cuts them, so the step of every rank must replay that bucket; an eager step cuts
    the rows elsewhere, and is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import torch
from torch import Tensor, nn

from ppcgc.runtime.errors import MicrobatchError
from ppcgc.runtime.parallel import ALONE
from ppcgc.runtime.pipeline.handoff import AnyRunner
from ppcgc.runtime.pipeline.layout import layout_of
from ppcgc.runtime.stage_kinds import LaterStage


class Microbatched(nn.Module):
    """``n`` microbatches of ``rows`` live rows each go through ``runner`` in a schedule.

    ``rows`` are those of each microbatch, by axis, as the batches will have them. Before each
    ``schedule.eval`` give the batches to ``load``; tensors of the schedule are the boundary
    alone. The received boundary is copied into the runner's slots, and the outputs into the
    microbatch's slot. For inference only.
    """

    def __init__(self, runner: AnyRunner, n: int, *, rows: Mapping[str, int]) -> None:
        super().__init__()
        kind: Any = type(next(iter(runner.buckets)))
        self.runner = runner
        try:
            self.rows = kind(**rows)
        except TypeError as problem:
            raise MicrobatchError(
                f"{runner}: rows by axis {dict(rows)}; give {', '.join(kind._fields)}"
            ) from problem
        self._batches: list[Any] = []
        self._next = 0
        self._padded = runner.choose(self.rows).padded
        split, self._takes = bool(runner.outputs.split), layout_of(())
        if isinstance(runner, LaterStage):
            split = split or bool(runner.incoming.split)
            self._takes = layout_of(runner.incoming.in_step(self.rows, self._padded))
        self._split = split and getattr(runner.dims, "tp", ALONE).size > 1
        self._slots = [self._slot() for _ in range(n)]

    def _slot(self) -> Any:
        """Memory of its own for what one microbatch gives."""
        outputs, device = self.runner.outputs, self.runner.device
        with torch.inference_mode(False):  # schedules run in and out of it
            return outputs.held(
                {
                    info.name: torch.zeros(info.shape, dtype=info.dtype, device=device)
                    for info in outputs.in_step(self.rows, self._padded)
                }
            )

    def load(self, batches: Sequence[Any]) -> None:
        """The batches of the next run of the schedule, one a microbatch, in order.

        Raises MicrobatchError for another number of them, or one with other rows.
        """
        if len(batches) != len(self._slots):
            raise MicrobatchError(
                f"{self.runner}: {len(batches)} batches for {len(self._slots)} microbatches"
            )
        for number, batch in enumerate(batches):
            live = self.runner.extents(batch)
            if live != self.rows:
                raise MicrobatchError(
                    f"{self.runner}: microbatch {number} has {live}, all must have {self.rows}: a "
                    "schedule cannot carry uneven microbatches; split the batch evenly"
                )
        self._batches, self._next = list(batches), 0

    def pipeline_stage(self, index: int, of: int, *, group: Any = None) -> Any:
        """A ``PipelineStage`` of this module, number ``index`` of ``of``, with all shapes."""
        from torch.distributed.pipelining import PipelineStage

        return PipelineStage(
            self,
            index,
            of,
            self.runner.device,
            input_args=self._inputs(),
            output_args=tuple(torch.empty_like(t) for t in _tensors(self._slots[0])),
            group=group,
        )

    def _inputs(self) -> tuple[Tensor, ...]:
        return tuple(
            torch.empty(entry.shape, dtype=entry.dtype, device=self.runner.device)
            for entry in self._takes
        )

    def forward(self, *received: Tensor) -> Any:
        """One microbatch: its outputs, in their own slot until the next run of the schedule."""
        number = self._next
        if number >= len(self._batches):
            raise MicrobatchError(
                f"{self.runner}: microbatch {number} has no batch, {len(self._batches)} were given;"
                " call load with the batches before each run of the schedule"
            )
        self._next += 1
        outputs = self._run(self._batches[number], received)
        self._check_path(number)
        slot = self._slots[number]
        for kept, made in zip(_tensors(slot), _tensors(outputs), strict=True):
            kept.copy_(made)
        kept_all = tuple(_tensors(slot))
        return kept_all[0] if len(kept_all) == 1 else kept_all

    def _check_path(self, number: int) -> None:
        """See Note [parts have one shape too]."""
        taken = self.runner.last_step
        if self._split and taken is not None and taken.choice.padded != self._padded:
            raise MicrobatchError(
                f"{self.runner}: microbatch {number} ran as {taken}; its boundary is split over "
                f"ranks of tp and was shaped for bucket {self._padded}, which every microbatch "
                "must replay: capture that bucket on all ranks, or hand over with a `Pipeline`"
            )

    def _run(self, batch: Any, received: tuple[Tensor, ...]) -> Any:
        runner: Any = self.runner
        if not self._takes:
            return runner.run(batch)
        shapes = [tuple(tensor.shape) for tensor in received]
        if shapes != [entry.shape for entry in self._takes]:
            raise MicrobatchError(
                f"{self.runner}: received {shapes}, all microbatches must have "
                f"{', '.join(map(str, self._takes))}"
            )
        keys = [entry.key for entry in self._takes]
        slots = next(iter(runner.table.values())).boundary
        return runner.run(batch, replace(slots, **dict(zip(keys, received, strict=True))))


def _tensors(outputs: Any) -> list[Tensor]:
    return [getattr(outputs, field.name) for field in fields(outputs)]
