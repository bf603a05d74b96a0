"""Moves of device rows: the table that travels with the host block, and its kernel."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
import torch
from torch import Tensor

from ppcgc.runtime.errors import AbsentSourceError, SourceError
from ppcgc.runtime.host_block import BucketHost, HostBlock, HostSlot, offsets_of
from ppcgc.runtime.host_rows import bytes_of
from ppcgc.runtime.row_moves import (
    FIELDS,
    KEPT,
    MOST_MOVES,
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


def new_table() -> Tensor:
    return torch.zeros(TABLE_BYTES // 8, dtype=torch.int64)


def words_of(table: Tensor) -> memoryview[int]:
    return bytes_of(table).cast("q")


def load(
    device: torch.device, mover: Any, live: int, rows: int, into: list[Tensor]
) -> list[Tensor]:
    """One load of every kind; the slots, and what they ought to hold."""
    host, table = new_table(), new_table().to(device)
    moves = BucketMoves(table, mover)
    wanted = []
    for at, (dtype, rest, tail) in enumerate(KINDS):
        slot = some((rows, *rest), dtype, 1, device)
        source = some((live, *rest), dtype, 2, device)
        wanted.append(expected(slot, source, tail))
        moves.add(slot, source, live, f"slot {at}", tail)
        into.append(slot)
    moves.write_table(words_of(host), in_graph=False)
    table.copy_(host)
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
    host = new_table()
    moves = BucketMoves(host, mover)
    slot = torch.full((4,), 7.0)
    moves.add(slot, torch.ones(2), 2, "x", 0)
    with pytest.raises(SourceError, match=r"slot y: .*shape \[3\], the live rows need \[2\]"):
        moves.add(slot, torch.ones(3), 2, "y", 0)
    with pytest.raises(AbsentSourceError, match="slot y: the source is None"):
        moves.add(slot, None, 2, "y", 0)
    moves.clear()
    moves.add(slot, torch.full((1,), 3.0), 1, "x", 0)
    moves.write_table(words_of(host), in_graph=False)
    moves.run()
    assert slot.tolist() == [3, 0, 0, 0]


def test_a_source_with_strides_is_moved_by_itself() -> None:
    host = new_table()
    moves = BucketMoves(host, by_the_table)
    slot = torch.zeros(4, 2)
    moves.add(slot, torch.arange(4.0).view(2, 2).T, 2, "x", 5)
    assert moves.write_table(words_of(host), in_graph=False) == FIELDS * 8, (
        "no move is left to the kernel"
    )
    assert slot.tolist() == [[0, 2], [1, 3], [5, 5], [5, 5]]


def test_more_moves_than_the_table_has_rows() -> None:
    host = new_table()
    moves = BucketMoves(host, by_the_table)
    slots = [torch.zeros(2) for _ in range(MOST_MOVES + 3)]
    for at, slot in enumerate(slots):
        moves.add(slot, torch.ones(1), 1, str(at), 2)
    moves.write_table(words_of(host), in_graph=False)
    moves.run()
    assert {tuple(slot.tolist()) for slot in slots} == {(1.0, 2.0)}


def test_a_move_may_leave_the_rows_past_live_alone() -> None:
    for mover in (None, by_the_table):
        host = new_table()
        moves = BucketMoves(host, mover)
        slot = torch.full((4, 2), 7.0)
        moves.add(slot, torch.ones(3, 2), 3, "x", KEPT)
        moves.write_table(words_of(host), in_graph=False)
        moves.run()
        assert slot.tolist() == [[1, 1]] * 3 + [[7, 7]]
