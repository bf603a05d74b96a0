"""Rows in parts, by hand: who holds which, what is live, what travels, which lanes are a team."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from parallel_toy import build, sequences

from ppcgc import runtime as rt
from ppcgc.runtime.carried import TensorInfo
from ppcgc.runtime.errors import AgreementError, BuildError, TransportError
from ppcgc.runtime.pipeline.groups import Lane
from ppcgc.runtime.pipeline.handoff import HandOff
from ppcgc.runtime.pipeline.layout import Wire, block_bytes, layout_of, wire_of
from ppcgc.runtime.pipeline.team import Spot, Team, teams_of
from ppcgc.runtime.pipeline.transport import check_scattered


@pytest.mark.parametrize(
    ("live", "rows", "held"),
    [
        (16, 4, [4, 4, 4, 4]),
        (9, 4, [4, 4, 1, 0]),
        (4, 4, [4, 0, 0, 0]),
        (0, 4, [0, 0, 0, 0]),
        (1, 1, [1, 0, 0, 0]),
    ],
)
def test_live_rows_of_each_part(live: int, rows: int, held: list[int]) -> None:
    places = [rt.Ranks(size=4, rank=rank) for rank in range(4)]
    assert [rt.live_part(live, rows, place) for place in places] == held


def test_parts_of_an_eager_step_are_those_of_the_next_multiple() -> None:
    """10 rows over 4 ranks: 3, 3, 3 and 1, as 12 would be cut; 5 rows: 2, 2, 1 and none."""
    stages = [build(1, 2, tp=rt.Ranks(size=4, rank=rank), names=("prefill",)) for rank in range(4)]
    for live, held in ((10, [3, 3, 3, 1]), (5, [2, 2, 1, 0])):
        parts = []
        for stage in stages:
            runner = stage.runners["prefill"]
            rows = runner.extents(sequences([live], seed=0))
            parts.append(runner.incoming.in_step(rows)[0].shape)
        assert parts == [(count, 8) for count in held]


def test_padded_rows_of_a_part_are_reset_and_live_ones_are_not() -> None:
    """19 live rows of 32 over two ranks: 16 of the first part, 3 of the second."""
    for rank, kept in ((0, 16), (1, 3)):
        runner = build(1, 2, tp=rt.Ranks(size=2, rank=rank), names=("prefill",)).runners["prefill"]
        runner.allocate()
        bucket = next(b for padded, b in runner.table.items() if padded.tokens == 32)
        assert bucket.boundary.hidden_states.shape == (16, 8)
        bucket.boundary.hidden_states.fill_(float("nan"))
        bucket.live_counts[runner.columns.index("tokens")] = 19
        runner.reset_boundary(bucket)
        finite = bucket.boundary.hidden_states.isfinite().all(1)
        assert (~finite[:kept]).all() and (bucket.boundary.hidden_states[kept:] == 0).all()
        live = runner.extents(sequences([19], seed=0))
        handed = build(0, 2, tp=rt.Ranks(size=2, rank=rank), names=("prefill",)).runners["prefill"]
        handed.allocate()
        sent = next(b for padded, b in handed.table.items() if padded.tokens == 32)
        assert handed.outputs.trim(sent.outputs, live).hidden_states.shape == (kept, 8)


def test_a_bucket_that_the_ranks_do_not_divide_is_refused_at_build() -> None:
    """Buckets of 16 over 5 ranks; the columns of the toy would not divide either, so by hand."""
    kind = build(1, 2, names=("prefill",)).runners["prefill"].incoming
    kind.dims = type(kind.dims)(
        **{f: getattr(kind.dims, f) for f in kind.dims.__slots__ if f != "tp"},
        tp=rt.Ranks(size=5, rank=3),
    )
    buckets = build(1, 2, names=("prefill",)).runners["prefill"].buckets
    with pytest.raises(BuildError, match=r"has 16 rows, which tp.size 5 does not divide"):
        kind.check_parts("llama_parallel.prefill", buckets)
    with pytest.raises(BuildError, match=r"llama_parallel.prefill, bucket .*tokens=16.*tp.size 3"):
        build(1, 2, tp=rt.Ranks(size=3, rank=1), names=("prefill",))
    build(1, 2, tp=rt.Ranks(size=3, rank=1), names=("decode",))  # its rows are not split


def test_each_rank_sends_an_equal_part_and_they_make_the_whole() -> None:
    """Three keys, the first in parts: it lies last, and 5 live rows of 12 bytes are 60 bytes."""
    scattered = frozenset({"a"})

    def keys(rows: int) -> tuple[TensorInfo, ...]:
        return (
            TensorInfo("a", (rows, 3), torch.float32),
            TensorInfo("b", (rows,), torch.int64),
            TensorInfo("c", (rows,), torch.bool),
        )

    padded, live = layout_of(keys(8), scattered), layout_of(keys(5), scattered)
    assert [entry.key for entry in padded] == ["b", "c", "a"]
    assert [entry.offset for entry in padded] == [0, 64, 128]
    # one byte more than 60 would not matter: parts are whole lines of 64 bytes
    wires = [wire_of(padded, live, scattered, rank, 3) for rank in range(3)]
    assert [wire.pieces for wire in wires] == [
        (slice(0, 64 + 5), slice(128 + 64 * rank, 192 + 64 * rank)) for rank in range(3)
    ]
    assert all(wire.joined == slice(128, 128 + 192) for wire in wires)
    # 96 bytes of rows need 128 as a block, but three parts of 64
    assert block_bytes(padded, scattered, 3) == 128 + 192
    assert block_bytes(padded, scattered, 1) == 128 + 128
    assert wire_of(padded, live, scattered, 0, 1) == Wire((slice(0, 128 + 60),))
    nothing = layout_of(keys(0), scattered)
    assert wire_of(padded, nothing, scattered, 0, 3) == Wire(())
    alone = layout_of(keys(8)[:1], scattered), layout_of(keys(6)[:1], scattered)
    assert wire_of(*alone, scattered, 1, 2) == Wire((slice(64, 128),), slice(0, 128))


def test_parts_cannot_be_joined_inside_a_graph() -> None:
    tp = rt.Ranks(size=2, rank=0)
    handoffs = [HandOff(runner) for runner in build(1, 2, tp=tp).runners.values()]
    assert check_scattered(handoffs, ["eager", "eager"])
    assert not check_scattered(handoffs[:1], ["captured"])  # of prefill, split and not scattered
    with pytest.raises(TransportError, match="captured cannot join the parts of hidden_states"):
        check_scattered(handoffs, ["eager", "captured"])
    alone = [HandOff(runner) for runner in build(1, 2).runners.values()]
    assert not check_scattered(alone, ["captured", "captured"])  # one rank has nothing to join


# ---------------------------------------------------------------- teams

LANES = ((0, 1), (2, 3), (4, 5), (6, 7))  # (dp, tp): (0, 0), (0, 1), (1, 0), (1, 1)


def spots(joins: bool, **changed: Any) -> dict[int, Spot]:
    made = {}
    for number, lane in enumerate(LANES):
        for rank in lane:
            words = {"tp": number % 2, "tp_size": 2, "dp": number // 2, "dp_size": 2}
            words |= changed.get(f"rank{rank}", {})
            made[rank] = Spot(**words, joins_dp=joins)
    return made


def test_lanes_that_meet_in_collectives_are_one_team() -> None:
    own = Lane(ranks=LANES[3], number=3, stage=1)
    (team,) = teams_of(spots(joins=True), LANES, own)
    assert team.ranks == tuple(range(8)) and team.own == 3
    assert team.mates == (5, 7) and team.first == 4 and team.firsts == (0, 4)
    assert team.meets == (1, 3, 5)
    assert team.of_tp() == [(0, 2), (1, 3), (4, 6), (5, 7)]
    apart = teams_of(spots(joins=False), LANES, own)
    assert [team.ranks for team in apart] == [(0, 1, 2, 3), (4, 5, 6, 7)]
    assert [team.own for team in apart] == [None, 1]
    assert apart[1].first == 4 and apart[1].meets == (5,) and apart[1].firsts == (4,)


def test_headers_go_from_the_rank_that_chooses_to_all_of_its_batch() -> None:
    (team,) = teams_of(spots(joins=True), LANES, Lane(ranks=LANES[2], number=2, stage=0))
    assert team.headers(4) == (None, (6, 5))
    (team,) = teams_of(spots(joins=True), LANES, Lane(ranks=LANES[3], number=3, stage=0))
    assert team.headers(6) == (4, (7,))
    (team,) = teams_of(spots(joins=True), LANES, Lane(ranks=LANES[3], number=3, stage=1))
    assert team.headers(7) == (6, ())


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"rank5": {"tp_size": 4}}, r"tp size: rank 0 has 2, rank 5 has 4"),
        ({"rank1": {"dp_size": 3}}, r"dp size: rank 0 has 2, rank 1 has 3"),
        (
            {"rank3": {"tp": 0}},
            r"place in tp and dp: rank 2 has rank 1 of 2 of tp, 0 of 2 of dp, "
            r"rank 3 has rank 0 of 2 of tp",
        ),
        (
            {"rank2": {"tp": 0}, "rank3": {"tp": 0}},
            r"lanes: rank 0 has rank 0 of 2 of tp, 0 of 2 of dp, rank 2 has rank 0 of 2 of tp",
        ),
    ],
)
def test_ranks_in_each_others_place_are_named(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(AgreementError, match=said):
        teams_of(spots(joins=True, **changed), LANES, Lane(ranks=LANES[0], number=0, stage=0))


def test_lanes_that_the_sizes_do_not_make_are_refused() -> None:
    with pytest.raises(
        AgreementError, match=r"2 lanes of 2, 2 ranks; tp.size 2 and dp.size 2 make"
    ):
        some = {rank: spot for rank, spot in spots(joins=True).items() if rank < 4}
        teams_of(some, LANES[:2], Lane(ranks=LANES[0], number=0, stage=0))


def test_a_team_knows_that_it_is_not_this_ranks() -> None:
    with pytest.raises(RuntimeError, match="none of the lanes"):
        _ = Team(lanes=LANES, own=None, stage=0).lane
