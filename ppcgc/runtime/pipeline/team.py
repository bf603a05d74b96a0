"""Which lanes meet in collectives, and what each of their ranks is there.

A lane is one pipeline: one rank a stage. Ranks of tensor parallelism are one lane each, of the
same batches; ranks of data parallelism have batches of their own. Lanes that meet in collectives
are one team: it agrees, captures, and takes the same path in every step.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ppcgc.runtime.errors import AgreementError, BuildError
from ppcgc.runtime.parallel import ALONE, Ranks
from ppcgc.runtime.pipeline.agreement import disagreement
from ppcgc.runtime.pipeline.board import Board
from ppcgc.runtime.pipeline.groups import Lane
from ppcgc.runtime.pipeline.handoff import AnyRunner


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A rank's number in tp and in dp, and their sizes; ``joins_dp``: dp chooses together."""

    tp: int = 0
    tp_size: int = 1
    dp: int = 0
    dp_size: int = 1
    joins_dp: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """The lanes that meet in collectives, by (dp, tp), and this rank's lane among them.

    ``own`` is None in a team that this rank is not in.
    """

    lanes: tuple[tuple[int, ...], ...]
    own: int | None
    stage: int
    spot: Spot = Spot()

    @property
    def ranks(self) -> tuple[int, ...]:
        """All of them, by their numbers in the world."""
        return tuple(sorted(rank for lane in self.lanes for rank in lane))

    def tp_ranks(self, stage: int, dp: int) -> tuple[int, ...]:
        """The ranks of tp that share a stage, by their number in tp."""
        first = dp * self.spot.tp_size
        return tuple(lane[stage] for lane in self.lanes[first : first + self.spot.tp_size])

    def of_tp(self) -> list[tuple[int, ...]]:
        """The ranks of tp of every stage and every number in dp."""
        each = range(len(self.lanes) // self.spot.tp_size)
        return [self.tp_ranks(stage, dp) for dp in each for stage in range(len(self.lanes[0]))]

    @property
    def mates(self) -> tuple[int, ...]:
        """The ranks of tp of this very stage, this one among them."""
        return self.tp_ranks(self.stage, self._dp)

    @property
    def lane(self) -> tuple[int, ...]:
        """This rank's own. RuntimeError in another team: our own mistake."""
        if self.own is None:
            raise RuntimeError(f"this rank is in none of the lanes {self.lanes}")
        return self.lanes[self.own]

    @property
    def _dp(self) -> int:
        return self.lanes.index(self.lane) // self.spot.tp_size

    @property
    def first(self) -> int:
        """The rank that chooses for this one: of the first stage, the first of tp."""
        return self.tp_ranks(0, self._dp)[0]

    def headers(self, rank: int) -> tuple[int | None, tuple[int, ...]]:
        """From which rank the headers of a rank come, None where it chooses; whom it sends them."""
        onward = self.lane[self.stage + 1 : self.stage + 2]
        if rank == self.first:
            return None, (*self.mates[1:], *onward)
        return (self.lane[self.stage - 1] if self.stage else self.first), onward

    @property
    def firsts(self) -> tuple[int, ...]:
        """The ranks that choose, by their number in dp."""
        return tuple(lane[0] for lane in self.lanes[:: self.spot.tp_size])

    @property
    def meets(self) -> tuple[int, ...]:
        """The other ranks of this stage: those whose part a collective of the model needs."""
        here = (lane[self.stage] for lane in self.lanes)
        return tuple(rank for rank in here if rank != self.lane[self.stage])


def spot_of(runners: Sequence[AnyRunner]) -> Spot | None:
    """The place that the runners were built for; None where their spec knows no such ranks."""
    dims = runners[0].dims
    tp, dp = (_ranks(dims, name) for name in ("tp", "dp"))
    if tp is None and dp is None:
        return None
    tp, dp = tp or ALONE, dp or ALONE
    joins = any(g.over == "dp" for runner in runners for g in runner.groups.values())
    return Spot(tp=tp.rank, tp_size=tp.size, dp=dp.rank, dp_size=dp.size, joins_dp=joins)


def _ranks(dims: Any, name: str) -> Ranks | None:
    found = getattr(dims, name, None)
    return found if isinstance(found, Ranks) else None


def _same_lanes(board: Board, lanes: Sequence[Sequence[int]]) -> None:
    first, *others = board.exchange(
        "terms of the pipeline", ", ".join(str(list(lane)) for lane in lanes)
    )
    for rank, text in zip(board.members[1:], others, strict=True):
        if text != first:
            raise disagreement("list of lanes", board.members[0], first, rank, text)


def find_teams(
    board: Board, lanes: Sequence[Sequence[int]], own: Lane, spot: Spot | None
) -> list[Team]:
    """The teams of the world, in one order on all ranks.

    ``board`` is the world's. Raises AgreementError, the same on every rank, naming two ranks that
    have other lanes or are in each other's place, BuildError for a spec with ranks that the lanes
    do not have.
    """
    _same_lanes(board, lanes)
    if spot is None:
        return [
            Team(lanes=(tuple(lane),), own=0 if number == own.number else None, stage=own.stage)
            for number, lane in enumerate(lanes)
        ]
    if len(lanes) == 1:
        if (spot.tp_size, spot.dp_size) != (1, 1):
            raise BuildError(
                f"the stage was built for rank {spot.tp} of {spot.tp_size} of tp and {spot.dp} of "
                f"{spot.dp_size} of dp, and there is one lane of ranks {own.ranks}; give `lanes`: "
                "the ranks of each pipeline, one list for each rank of tp and dp"
            )
        return [Team(lanes=(own.ranks,), own=0, stage=own.stage, spot=spot)]
    texts = board.exchange("place in tp and dp", json.dumps(asdict(spot)))
    return teams_of({r: Spot(**json.loads(text)) for r, text in enumerate(texts)}, lanes, own)


def teams_of(spots: dict[int, Spot], lanes: Sequence[Sequence[int]], own: Lane) -> list[Team]:
    """As ``find_teams``, once every rank has said its place."""
    every = spots[0]
    for rank, spot in spots.items():
        for name, theirs, mine in (
            ("tp size", spot.tp_size, every.tp_size),
            ("dp size", spot.dp_size, every.dp_size),
        ):
            if theirs != mine:
                raise disagreement(name, 0, str(mine), rank, str(theirs))
    places: dict[tuple[int, int], int] = {}
    for number, lane in enumerate(lanes):
        first, place = lane[0], _place(spots[lane[0]])
        for rank in lane[1:]:
            if _place(spots[rank]) != place:
                raise disagreement(
                    "place in tp and dp", first, _said(spots[first]), rank, _said(spots[rank])
                )
        other = places.setdefault(place, number)
        if other != number:
            rank = lanes[other][0]
            raise disagreement("lanes", rank, _said(spots[rank]), first, _said(spots[first]))
    if len(places) != every.tp_size * every.dp_size or len({len(lane) for lane in lanes}) != 1:
        raise AgreementError(
            f"{len(lanes)} lanes of {', '.join(str(len(lane)) for lane in lanes)} ranks; tp.size "
            f"{every.tp_size} and dp.size {every.dp_size} make {every.tp_size * every.dp_size} "
            "lanes of one length: give the ranks of each pipeline"
        )
    ordered = [places[place] for place in sorted(places)]
    joined = len(ordered) if every.joins_dp else every.tp_size
    teams = []
    for start in range(0, len(ordered), joined):
        members = ordered[start : start + joined]
        teams.append(
            Team(
                lanes=tuple(tuple(lanes[number]) for number in members),
                own=members.index(own.number) if own.number in members else None,
                stage=own.stage,
                spot=spots[lanes[members[0]][0]],
            )
        )
    return teams


def _place(spot: Spot) -> tuple[int, int]:
    return spot.dp, spot.tp


def _said(spot: Spot) -> str:
    return f"rank {spot.tp} of {spot.tp_size} of tp, {spot.dp} of {spot.dp_size} of dp"
