"""Moves of device rows: the table that travels with the host block, and its kernel."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
import torch
from torch import Tensor

from ppcgc.runtime.errors import AbsentSourceError, SourceError
from ppcgc.runtime.host_block import BucketHost, HostBlock, HostSlot, offsets_of
from ppcgc.runtime.row_moves import (
    FIELDS,
    IN_GRAPH,
    KEPT,
    MOST_MOVES,
    NOW,
    TABLE_BYTES,
    BucketMoves,
    Destination,
    open_mover,
    pattern_of,
)

CPU = torch.device("cpu")
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

# dtype, extents after the rows, tail, bytes that the kernel may move at once at odd row counts
KINDS: list[tuple[torch.dtype, tuple[int, ...], float | None]] = [
    (torch.int64, (), 0),
    (torch.int32, (), None),
    (torch.bfloat16, (3,), 0),
    (torch.float32, (5,), 1.5),
    (torch.int8, (), -2),
    (torch.bool, (), 1),
    (torch.int16, (3,), None),
    (torch.float16, (2, 2), None),
]


def by_the_table(table: Tensor, column: int, moves: int, programs: int) -> None:
    """What the kernel does, byte by byte, read off the table alone."""
    head, *rows = table[: TABLE_BYTES // 8].view(-1, FIELDS).tolist()
    assert head[column] <= moves
    assert programs > 0
    for row in rows[: head[column]]:
        into, source, live, total, words, pattern, repeats, width = row
        raw = pattern.to_bytes(8, "little", signed=True)[:width]
        for word in range(total):
            if word < live:
                data = ctypes.string_at(source + word * width, width)
            elif repeats and live:
                at = live - words + (word - live) % words
                data = ctypes.string_at(source + at * width, width)
            else:
                data = raw
            ctypes.memmove(into + word * width, data, width)


def expected(slot: Tensor, source: Tensor, tail: float | None) -> Tensor:
    """The slot after the move, put together from pieces."""
    live, rows = source.shape[0], slot.shape[0]
    if tail is None:
        last = source[-1:] if live else torch.zeros_like(slot[:1])
        rest = last.expand(rows - live, *slot.shape[1:])
    else:
        rest = torch.full_like(slot[live:], tail)
    return torch.cat([source, rest])


def some(shape: tuple[int, ...], dtype: torch.dtype, seed: int, device: torch.device) -> Tensor:
    make = torch.Generator().manual_seed(seed)
    return torch.randint(0, 100, shape, generator=make).to(dtype).to(device)


def load(
    device: torch.device, mover: Any, live: int, rows: int, into: list[Tensor]
) -> list[Tensor]:
    """One load of every kind; the slots, and what they ought to hold."""
    host = [torch.zeros(TABLE_BYTES, dtype=torch.uint8)]
    table = torch.zeros(TABLE_BYTES, dtype=torch.uint8, device=device)
    moves = BucketMoves(host, table, 0, mover)
    wanted = []
    for at, (dtype, rest, tail) in enumerate(KINDS):
        slot = some((rows, *rest), dtype, 1, device)
        source = some((live, *rest), dtype, 2, device)
        wanted.append(expected(slot, source, tail))
        moves.add(slot, source, live, f"slot {at}", tail)
        into.append(slot)
    moves.write_table(0, in_graph=False)
    table.copy_(host[0])
    moves.run()
    return wanted


SIZES = [(0, 1), (1, 1), (0, 5), (3, 7), (47, 64), (64, 64)]


@pytest.mark.parametrize("mover", [None, by_the_table], ids=["one by one", "by the table"])
@pytest.mark.parametrize(("live", "rows"), SIZES)
def test_live_rows_are_copied_and_all_others_reset(mover: Any, live: int, rows: int) -> None:
    slots: list[Tensor] = []
    wanted = load(CPU, mover, live, rows, slots)
    for slot, want in zip(slots, wanted, strict=True):
        assert torch.equal(slot, want)


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize(("live", "rows"), [*SIZES, (1500, 2048)])
def test_the_kernel_leaves_the_same_bytes(live: int, rows: int) -> None:
    device = torch.device("cuda", torch.cuda.current_device())
    mover = open_mover(device)
    assert mover is not None, "this torch has no Triton"
    slots: list[Tensor] = []
    wanted = load(device, mover, live, rows, slots)
    for slot, want in zip(slots, wanted, strict=True):
        assert torch.equal(slot.cpu(), want.cpu())


@pytest.mark.gpu
@needs_gpu
def test_a_bucket_moves_its_rows_with_its_block() -> None:
    device = torch.device("cuda", torch.cuda.current_device())
    slots = (HostSlot(name="n", shape=(3,), dtype=torch.int32),)
    host = BucketHost(HostBlock(device, offsets_of(slots)[1]), slots)
    slot = torch.full((8, 2), 7.0, device=device)
    for live in (5, 2):
        host.open()
        (rows,) = host.begin()
        rows.set_rows((live, 1, 1))
        host.move_rows(slot, torch.ones(live, 2, device=device), live, "x", 0)
        host.push()
        assert host.device_views[0].tolist() == [live, 1, 1]
        assert slot.tolist() == [[1.0, 1.0]] * live + [[0.0, 0.0]] * (8 - live)


def test_the_width_is_what_every_address_and_size_allows() -> None:
    block = torch.zeros(256, dtype=torch.uint8)
    start = -block.data_ptr() % 16
    slot = block[start : start + 64].view(torch.int16).view(8, 4)
    aligned = torch.zeros(3, 4, dtype=torch.int16)
    assert Destination(slot, 0).entry(aligned, 3)[-1] == 8
    odd = torch.zeros(13, dtype=torch.int16)[1:].view(3, 4)
    assert Destination(slot, 0).entry(odd, 3)[-1] == 2


@pytest.mark.parametrize(
    ("value", "dtype", "raw"),
    [
        (0, torch.float32, "00" * 8),
        (1, torch.int32, "01000000" * 2),
        (-1, torch.int64, "ff" * 8),
        (1.5, torch.float32, "0000c03f" * 2),
        (1, torch.bool, "01" * 8),
    ],
)
def test_a_tail_is_eight_bytes(value: float, dtype: torch.dtype, raw: str) -> None:
    assert pattern_of(value, dtype).to_bytes(8, "little", signed=True).hex() == raw


@pytest.mark.parametrize("mover", [None, by_the_table], ids=["one by one", "by the table"])
def test_a_wrong_source_is_refused_and_the_next_load_is_clean(mover: Any) -> None:
    host = [torch.zeros(TABLE_BYTES, dtype=torch.uint8)]
    moves = BucketMoves(host, host[0], 0, mover)
    slot = torch.full((4,), 7.0)
    moves.add(slot, torch.ones(2), 2, "x", 0)
    with pytest.raises(SourceError, match=r"slot y: .*shape \[3\], the live rows need \[2\]"):
        moves.add(slot, torch.ones(3), 2, "y", 0)
    with pytest.raises(AbsentSourceError, match="slot y: the source is None"):
        moves.add(slot, None, 2, "y", 0)
    moves.clear()
    moves.add(slot, torch.full((1,), 3.0), 1, "x", 0)
    moves.write_table(0, in_graph=False)
    moves.run()
    assert slot.tolist() == [3, 0, 0, 0]


def test_a_source_with_strides_is_moved_by_itself() -> None:
    host = [torch.zeros(TABLE_BYTES, dtype=torch.uint8)]
    moves = BucketMoves(host, host[0], 0, by_the_table)
    slot = torch.zeros(4, 2)
    moves.add(slot, torch.arange(4.0).view(2, 2).T, 2, "x", 5)
    assert moves.write_table(0, in_graph=False) == FIELDS * 8, "no move is left to the kernel"
    assert slot.tolist() == [[0, 2], [1, 3], [5, 5], [5, 5]]


def test_more_moves_than_the_table_has_rows() -> None:
    host = [torch.zeros(TABLE_BYTES, dtype=torch.uint8)]
    moves = BucketMoves(host, host[0], 0, by_the_table)
    slots = [torch.zeros(2) for _ in range(MOST_MOVES + 3)]
    for at, slot in enumerate(slots):
        moves.add(slot, torch.ones(1), 1, str(at), 2)
    moves.write_table(0, in_graph=False)
    moves.run()
    assert {tuple(slot.tolist()) for slot in slots} == {(1.0, 2.0)}


def test_a_move_may_leave_the_rows_past_live_alone() -> None:
    for mover in (None, by_the_table):
        host = [torch.zeros(TABLE_BYTES, dtype=torch.uint8)]
        moves = BucketMoves(host, host[0], 0, mover)
        slot = torch.full((4, 2), 7.0)
        moves.add(slot, torch.ones(3, 2), 3, "x", KEPT)
        moves.write_table(0, in_graph=False)
        moves.run()
        assert slot.tolist() == [[1, 1]] * 3 + [[7, 7]]


class Launches:
    """A mover that does what the kernel does, and remembers how it was launched."""

    def __init__(self) -> None:
        self.columns: list[int] = []
        self.programs: list[int] = []
        self.again: list[Any] = []

    def __call__(self, table: Tensor, column: int, moves: int, programs: int) -> None:
        self.columns.append(column)
        self.programs.append(programs)
        self.again.append(lambda: by_the_table(table, column, moves, programs))
        self.again[-1]()


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> Launches:
    made = Launches()
    monkeypatch.setattr("ppcgc.runtime.host_block.open_mover", lambda device: made)
    return made


def moved_by_a_graph(launches: Launches) -> tuple[BucketHost, Tensor, Tensor]:
    """A bucket whose graph begins with the moves; a slot, and where the boundary is received."""
    slots = (HostSlot(name="n", shape=(3,), dtype=torch.int32),)
    host = BucketHost(HostBlock(CPU, offsets_of(slots)[1]), slots)
    slot, boundary = torch.full((8, 2), 7.0), torch.full((8, 2), 7.0)
    host.open()
    host.begin()
    host.move_rows(slot, torch.full((8, 2), 5.0), 8, "x", 0)
    host.push()
    host.move_in_graph([boundary])
    assert launches.columns == [NOW, IN_GRAPH]
    assert slot.tolist() == [[5.0, 5.0]] * 8
    return host, slot, boundary


def test_a_whole_step_leaves_its_moves_to_the_replay(launches: Launches) -> None:
    host, slot, boundary = moved_by_a_graph(launches)
    replay = launches.again[-1]
    host.open(in_graph=True)
    host.receive_rows(boundary, torch.full((3, 2), 2.0), (3, 2), "boundary.h")
    host.begin()
    host.move_rows(slot, torch.ones(3, 2), 3, "x", 0)
    host.push()
    assert slot.tolist() == [[5.0, 5.0]] * 8, "nothing moves before the replay"
    assert launches.columns == [NOW, IN_GRAPH]
    replay()
    host.launched()
    assert slot.tolist() == [[1.0, 1.0]] * 3 + [[0.0, 0.0]] * 5
    assert boundary.tolist() == [[2.0, 2.0]] * 3 + [[7.0, 7.0]] * 5, "the graph resets the rest"


def test_a_begun_step_moves_at_once_and_its_replay_not_again(launches: Launches) -> None:
    host, slot, _ = moved_by_a_graph(launches)
    replay = launches.again[-1]
    host.open()
    host.begin()
    host.move_rows(slot, torch.ones(3, 2), 3, "x", 0)
    host.push()
    assert slot.tolist() == [[1.0, 1.0]] * 3 + [[0.0, 0.0]] * 5
    slot.fill_(9)  # what the caller writes in between stays
    replay()
    assert slot.tolist() == [[9.0, 9.0]] * 8


def test_a_step_without_moves_has_none_of_an_earlier_one(launches: Launches) -> None:
    host, slot, _ = moved_by_a_graph(launches)
    replay = launches.again[-1]
    host.open(in_graph=True)
    host.begin()
    host.push()
    slot.fill_(9)
    replay()
    assert slot.tolist() == [[9.0, 9.0]] * 8


def test_moves_that_the_graph_has_no_programs_for_are_done_at_once(launches: Launches) -> None:
    host, slot, _ = moved_by_a_graph(launches)
    others = [torch.zeros(2) for _ in range(2)]
    host.open(in_graph=True)
    host.begin()
    host.move_rows(slot, torch.ones(1, 2), 1, "x", 0)
    for at, other in enumerate(others):
        host.move_rows(other, torch.ones(1), 1, f"other {at}", 0)
    host.push()
    assert launches.columns[-1] == NOW
    assert [other.tolist() for other in others] == [[1.0, 0.0]] * 2


def test_a_step_that_failed_leaves_no_move_to_the_next(launches: Launches) -> None:
    host, slot, boundary = moved_by_a_graph(launches)
    host.open(in_graph=True)
    host.receive_rows(boundary, torch.full((3, 2), 2.0), (3, 2), "boundary.h")
    host.begin()
    with pytest.raises(SourceError, match="slot x"):
        host.move_rows(slot, torch.ones(2, 2), 3, "x", 0)
    host.open()
    host.begin()
    host.push()
    assert boundary.tolist() == [[7.0, 7.0]] * 8
    assert slot.tolist() == [[5.0, 5.0]] * 8


@pytest.mark.parametrize(("rows", "programs"), [(1, 1), (2048, 2), (100_000, 97), (2**21, 256)])
def test_a_large_boundary_is_shared_by_many_programs(
    launches: Launches, rows: int, programs: int
) -> None:
    slots = (HostSlot(name="n", shape=(3,), dtype=torch.int32),)
    host = BucketHost(HostBlock(CPU, offsets_of(slots)[1]), slots)
    host.open()
    host.begin()
    host.move_rows(torch.zeros(8), torch.ones(8), 8, "x", 0)
    host.push()
    host.move_in_graph([torch.empty(rows, 4, dtype=torch.bfloat16)])
    assert launches.programs == [1, programs], "by blocks of 1,024 words of 8 bytes"
