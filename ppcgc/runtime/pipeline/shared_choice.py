"""One choice for ranks of different batches whose models meet in collectives.

Note [one path for a group]
    Each rank of dp chooses by the largest live count of all, which its own batch lists. What else
    decides is its own: a scalar, an absent source, a batch that breaks a limit. So the ranks that
    choose show each other what they would do, on the host, before any header: where one runs
    eagerly all do, and a batch that one refuses no rank runs. A rank without rows takes part with
    live 0, for the others' collectives need it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from ppcgc.runtime.choice import Choice
from ppcgc.runtime.errors import DisagreementError, PpcgcError, StepRefusedError
from ppcgc.runtime.pipeline.faults import Faults, reason_of
from ppcgc.runtime.pipeline.groups import Group
from ppcgc.runtime.pipeline.handoff import AnyRunner
from ppcgc.runtime.pipeline.header import Header, Path, decode, encode, header_of, header_size


class SharedChoice:
    """This rank among those that choose: ``ranks``, by their number in dp, joined by ``group``."""

    def __init__(
        self,
        group: Group,
        ranks: Sequence[int],
        runners: Sequence[AnyRunner],
        faults: Faults,
        *,
        columns: int,
    ) -> None:
        self._group, self._ranks = group, tuple(ranks)
        self._runners, self._faults, self._columns = runners, faults, columns

    def refuse(self, step: int, number: int, problem: PpcgcError) -> None:
        """Tell the others that this batch cannot be run. Raises PeerError kinds."""
        self._exchange(Header(step=step, runner=number, path=Path.REFUSED, note=str(problem)))

    def choose(self, step: int, number: int, live: Any, choice: Choice[Any]) -> Choice[Any]:
        """The choice of all: ``choice`` itself unless another rank runs eagerly.

        Raises StepRefusedError when another rank refuses its batch, DisagreementError for ranks
        at different steps or with different lists of live counts, PeerError kinds.
        """
        own = header_of(step, number, live, choice)
        others = {r: h for r, h in self._exchange(own).items() if r != self._faults.board.rank}
        for rank, header in others.items():
            self._check(own, rank, header)
            if header.path is Path.REFUSED:
                raise StepRefusedError(
                    f"rank {rank} refused its batch of step {step}, and ranks of dp take a step "
                    "together or not at all"
                )
        for rank, header in others.items():
            if header.path is Path.EAGER and choice.padded is not None:
                return Choice(None, header.reason, f"of rank {rank}")
        return choice

    def end(self, step: int) -> None:
        """Raises DisagreementError unless all of them end here, PeerError kinds."""
        own = Header(step=step, runner=0, path=Path.END)
        for rank, header in self._exchange(own).items():
            self._check_place(own, rank, header)

    def _check_place(self, own: Header, rank: int, other: Header) -> None:
        here, theirs = self._place(own), self._place(other)
        if here != theirs:
            raise DisagreementError(
                f"{here} on rank {self._faults.board.rank}, {theirs} on rank {rank}; call the "
                "ranks of dp with as many batches, in the same order"
            )

    def _place(self, header: Header) -> str:
        if header.path is Path.END:
            return f"the end before step {header.step}"
        return f"step {header.step} of {self._runners[header.runner].runner}"

    def _check(self, own: Header, rank: int, other: Header) -> None:
        self._check_place(own, rank, other)
        runner, here = self._runners[own.runner], self._faults.board.rank
        for column, group in runner.groups.items():
            at = runner.columns.index(column)
            if group.over == "dp" and other.live and other.live[at] != own.live[at]:
                raise DisagreementError(
                    f"step {own.step}: {column} is {own.live[at]} on rank {here}, {other.live[at]} "
                    f"on rank {rank}; give all ranks of dp the same list of live counts"
                )

    def _exchange(self, own: Header) -> Mapping[int, Header]:
        numbers, _ = encode(own, self._columns)
        everybody = [
            torch.empty(header_size(self._columns), dtype=torch.int64) for _ in self._ranks
        ]
        try:
            work = dist.all_gather(everybody, numbers, group=self._group, async_op=True)
            work.wait(timedelta(seconds=self._faults.timeout))
        except RuntimeError as problem:
            why = reason_of(problem)
            raise self._faults.absent(
                [rank for rank in self._ranks if rank != self._faults.board.rank],
                step=own.step,
                what="the choice of a step",
                late="timed out" in str(problem).lower(),
                why=why,
            ) from None
        return dict(zip(self._ranks, (decode(each, None) for each in everybody), strict=True))
