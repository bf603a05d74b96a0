"""Memory of slots: addresses, layouts of buckets in one block, the host ring, padding images."""

from __future__ import annotations

import pytest
import torch

from ppcgc.runtime.arena import ALIGNMENT, DeviceArena, aligned
from ppcgc.runtime.errors import DimError
from ppcgc.runtime.host_block import NOTHING, BucketHost, HostBlock, HostSlot, offsets_of

CPU = torch.device("cpu")


def layout(tokens: int) -> list[HostSlot]:
    """Three slots of a bucket, with three kinds of padding."""
    return [
        HostSlot(name="ids", shape=(tokens,), dtype=torch.int64),
        HostSlot(name="mask", shape=(2, tokens), dtype=torch.float32, dim=1, image=-1.5),
        HostSlot(name="seen", shape=(tokens,), dtype=torch.bool, image=True),
    ]


def block_for(*sizes: int) -> HostBlock:
    return HostBlock(CPU, max(offsets_of(layout(size))[1] for size in sizes))


# ---------------------------------------------------------------- layout


def test_slots_of_a_bucket_do_not_overlap_and_start_aligned() -> None:
    slots = layout(5)
    offsets, end = offsets_of(slots)
    assert offsets == (0, 64, 128)
    assert end == 192
    assert all(offset % ALIGNMENT == 0 for offset in offsets)
    assert [slot.nbytes for slot in slots] == [40, 40, 5]


@pytest.mark.parametrize(("size", "rounded"), [(0, 0), (1, 64), (64, 64), (65, 128)])
def test_sizes_are_rounded_up(size: int, rounded: int) -> None:
    assert aligned(size) == rounded


def test_a_slot_without_rows_takes_no_bytes() -> None:
    slots = [HostSlot(name="none", shape=(0, 3), dtype=torch.int32), *layout(2)]
    assert offsets_of(slots)[0][:2] == (0, 0)
    host = BucketHost(HostBlock(CPU, offsets_of(slots)[1]), slots)
    assert host.device_views[0].shape == (0, 3)


def test_each_bucket_packs_the_block_for_itself() -> None:
    block = block_for(8, 100)
    small, large = BucketHost(block, layout(8)), BucketHost(block, layout(100))
    base = block.device_bytes.data_ptr()
    assert [view.data_ptr() - base for view in small.device_views] == [0, 64, 128]
    assert [view.data_ptr() - base for view in large.device_views] == [0, 832, 1664]
    assert [tuple(view.shape) for view in large.device_views] == [(100,), (2, 100), (100,)]


# ---------------------------------------------------------------- begin and push


def test_begin_gives_padding_everywhere_even_after_a_fuller_load() -> None:
    host = BucketHost(block_for(3), layout(3))
    for _ in range(4):  # over the whole ring, twice
        ids, mask, seen = host.begin()
        assert ids.tensor.tolist() == [0, 0, 0]
        assert mask.tensor.tolist() == [[-1.5] * 3] * 2
        assert seen.tensor.tolist() == [True] * 3
        ids.set_all(9)
        mask.set_all(9)
        seen.set_all(False)
        host.push()
        assert [view.tolist() for view in host.device_views] == [
            [9, 9, 9],
            [[9.0] * 3] * 2,
            [False] * 3,
        ]


def test_a_load_that_never_pushes_leaves_the_device_as_it_was() -> None:
    host = BucketHost(block_for(3), layout(3))
    host.begin()[0].set_all(1)
    host.push()
    host.begin()[0].set_all(2)  # then its source turned out to be wrong
    assert host.device_views[0].tolist() == [1, 1, 1]


def test_the_ring_keeps_the_entries_pushed_last() -> None:
    slots = layout(3)
    block = HostBlock(CPU, offsets_of(slots)[1], entries=8)
    host = BucketHost(block, slots)
    for value in range(1, 12):
        host.begin()[0].set_all(value)
        host.push()
        host.begin()[0].set_all(99)  # is written, and not pushed
        pushed = sorted(int(entry.view(torch.int64)[0]) for entry in block.host_bytes)
        assert pushed == [0] * (8 - value) + list(range(max(1, value - 7), value + 1))


class Halves:
    """Events of a ring's halves that say what happens to them."""

    def __init__(self, log: list[str], name: str) -> None:
        self.log, self.name = log, name

    def record(self, stream: str) -> None:
        self.log.append(f"record {self.name} on {stream}")

    def synchronize(self) -> None:
        self.log.append(f"wait {self.name}")


def test_a_half_of_the_ring_is_entered_after_its_copies_are_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: f"a stream of {device}")
    block = HostBlock(CPU, 64, entries=8)
    log: list[str] = []
    block._events = (Halves(log, "first"), Halves(log, "second"))  # type: ignore[assignment]  # stand-ins
    for _ in range(3):
        for turn in range(8):
            assert block.into_entry(NOTHING) == turn
            log.append(f"write {turn}")
    a_round = [
        "record second on a stream of cpu",
        "wait first",
        "write 0",
        "write 1",
        "write 2",
        "write 3",
    ]
    a_round += [
        "record first on a stream of cpu",
        "wait second",
        "write 4",
        "write 5",
        "write 6",
        "write 7",
    ]
    assert log == a_round * 3


def test_buckets_of_one_block_take_turns_in_one_ring() -> None:
    slots = layout(3), layout(8)
    block = HostBlock(CPU, max(offsets_of(one)[1] for one in slots), entries=8)
    small, large = (BucketHost(block, one) for one in slots)
    for value, host in enumerate((small, large, small), start=1):
        host.begin()[0].set_all(value)
        host.push()
    assert [int(entry.view(torch.int64)[0]) for entry in block.host_bytes[:4]] == [1, 2, 3, 0]


def test_bytes_of_another_bucket_are_replaced_by_the_next_load() -> None:
    block = block_for(3, 8)
    small, large = BucketHost(block, layout(3)), BucketHost(block, layout(8))
    for rows in large.begin():
        rows.set_all(1)
    large.push()
    small.begin()
    small.push()
    assert small.device_views[0].tolist() == [0, 0, 0]
    assert small.device_views[1].tolist() == [[-1.5] * 3] * 2


# ---------------------------------------------------------------- the arena


def test_buckets_see_the_first_rows_of_one_buffer() -> None:
    arena = DeviceArena(CPU)
    large = arena.rows("slot.x", (2, 8), (2, 16), torch.float32, initial=3)
    small = arena.rows("slot.x", (2, 4), (2, 16), torch.float32, initial=3)
    assert large.data_ptr() == small.data_ptr()
    assert small.tolist() == [[3.0] * 4] * 2
    assert arena.nbytes == 2 * 16 * 4


def test_adopted_memory_is_used_and_not_counted() -> None:
    arena, owner = DeviceArena(CPU), DeviceArena(CPU)
    theirs = owner.rows("received.x", (4,), (4,), torch.float32)
    for name, buffer in owner.named("received."):
        arena.adopt(f"handed.{name}", buffer)
    mine = arena.rows("handed.x", (2,), (4,), torch.float32)
    mine.fill_(1)
    assert theirs.tolist() == [1, 1, 0, 0]
    assert (arena.nbytes, owner.nbytes) == (0, 16)


def test_names_are_found_by_prefix() -> None:
    arena = DeviceArena(CPU)
    for name in ("received.a", "slot.received.b", "received.c"):
        arena.rows(name, (1,), (1,), torch.int32)
    assert [name for name, _ in arena.named("received.")] == ["a", "c"]


def test_a_negative_extent_is_a_dim_error() -> None:
    with pytest.raises(DimError, match=r"slot.x: shape \[-1, 2\]"):
        DeviceArena(CPU).rows("slot.x", (-1, 2), (-1, 2), torch.int32)
