"""Calibration of a pipeline: each rank times its own stage, all use the times of all.

Note [a choice is made for all stages]
    A step is a replay on all ranks or on none, so a stage that is faster eagerly must not decide
    for those that are not. A bucket is compared with eager by the sum of all stages' seconds. With
    the hand-off inside the graphs a stage's replay waits for the stage before it, and what each
    rank measures is the pace of the whole pipeline; there it is the slowest stage's seconds, for
    eager as well, since that is the pace of eager steps.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import torch

from ppcgc.runtime.calibrating import Clock, Progress, StreamClock, counters_kept, measure
from ppcgc.runtime.crossover import Crossover
from ppcgc.runtime.pipeline.agreement import disagreement
from ppcgc.runtime.pipeline.board import Board
from ppcgc.runtime.pipeline.faults import Faults
from ppcgc.runtime.pipeline.handoff import AnyRunner


class RanksClock(StreamClock):
    """Times a step that all ranks run at once, equally often: a replay may wait for their part."""

    def __init__(self, device: torch.device, board: Board, faults: Faults) -> None:
        super().__init__(device)
        self._board, self._faults = board, faults

    def repeats(self, each: float) -> int:
        everybody = self._board.exchange("time of a step", repr(each))
        return super().repeats(max(map(float, everybody)))

    def wait(self) -> None:
        if self.device.type != "cuda":
            return
        event = torch.cuda.Event()  # type: ignore[no-untyped-call]  # torch left it untyped
        event.record(torch.cuda.current_stream(self.device))
        members = self._board.members
        at = members.index(self._board.rank)
        neighbour = members[at - 1 if at else min(1, len(members) - 1)]
        self._faults.poll(event.query, peer=neighbour, step=-1, what="a step that is measured")


def calibrate_together(
    runners: Sequence[AnyRunner],
    board: Board,
    clock: Clock,
    in_graph: Mapping[str, bool],
    say: Progress,
) -> tuple[Crossover, ...]:
    """Measure all runners, on all ranks alike, and use what the ranks found together.

    ``in_graph`` says of each runner whether its replays hand over by themselves. Runners with
    ``require_graph`` are left as they are. Raises PeerError kinds.
    """
    found = []
    for runner in runners:
        if runner.require_graph:
            say(f"{runner.family}.{runner.runner} always replays: `require_graph: true`")
            continue

        def of_all_ranks(
            own: Sequence[float], name: str = runner.runner, pace: bool = in_graph[runner.runner]
        ) -> list[float]:
            texts = board.exchange(f"times of {name}", json.dumps(list(own)))
            return reduced([json.loads(text) for text in texts], pace=pace)

        with counters_kept([runner]):
            crossover = measure([runner], clock, say, of_all_ranks)
        runner.use_calibration(crossover)
        found.append(crossover)
    return tuple(found)


def reduced(seconds: Sequence[Sequence[float]], *, pace: bool) -> list[float]:
    """The ranks' seconds as one list; see Note [a choice is made for all stages]."""
    return [max(one) if pace else sum(one) for one in zip(*seconds, strict=True)]


def agree_on_kept(board: Board, kept: Sequence[Crossover] | None) -> None:
    """Raises AgreementError, on every rank, unless all of them were given the same."""
    own = json.dumps(None if kept is None else [one.data() for one in kept], sort_keys=True)
    everybody = board.exchange("kept calibration", own)
    for rank, other in zip(board.members, everybody, strict=True):
        if other != everybody[0]:
            raise disagreement(
                "calibration", board.members[0], _in_words(everybody[0]), rank, _in_words(other)
            )


def _in_words(text: str) -> str:
    """From where each bucket replays: what two kept calibrations differ in."""
    kept = json.loads(text) or ()
    return "; ".join(
        f"{one['runner']} {[(*bucket['padded'], bucket['least']) for bucket in one['buckets']]}"
        for one in kept
    )
