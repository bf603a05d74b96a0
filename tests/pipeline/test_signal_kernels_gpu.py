"""Kernels of the symmetric transport on one GPU, which plays the other rank as well."""

from __future__ import annotations

from typing import Any

import pytest
import torch

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
kernels = pytest.importorskip("ppcgc.runtime.pipeline.transport.signal_kernels")

BEHIND = 64  # bytes of the other's memory that no push may touch


class OneEdge:
    """Counts, and memory of the other rank, all on this GPU."""

    def __init__(self, nbytes: int) -> None:
        self.state = torch.zeros(kernels.STATE_WORDS, dtype=torch.int64, device="cuda")
        self.there, self.read = (torch.zeros(1, dtype=torch.int64, device="cuda") for _ in "ab")
        self.into = torch.full((nbytes + BEHIND,), 255, dtype=torch.uint8, device="cuda")
        self.given_up, self.taken = (
            torch.zeros(1, dtype=torch.int64, pin_memory=True) for _ in "ab"
        )
        self.read += 0  # a kernel that is loaded while another waits for it would wait as well

    def push(self, block: torch.Tensor) -> None:
        kernels.wait_until_read(self.read, self.state, self.given_up)
        kernels.push(block, self.into, self.there, self.state, 1)

    def take(self) -> None:
        kernels.take(self.there, self.state, self.given_up, self.taken, 1)

    def release(self) -> None:
        kernels.release(self.read, self.state)


def block_of(nbytes: int) -> torch.Tensor:
    made = torch.randint(0, 255, (max(1, nbytes),), dtype=torch.uint8, device="cuda")
    return made[:nbytes]


SIZES = [0, 1, 7, 8, 9, 8 * 1024 - 1, 8 * 1024, 8 * 1024 + 8, 3 * 8 * 1024 + 13, 5_000_003]


@pytest.mark.parametrize("nbytes", SIZES)
def test_a_push_moves_every_byte_and_none_behind_them(nbytes: int) -> None:
    edge, block = OneEdge(nbytes), block_of(nbytes)
    edge.push(block)
    torch.cuda.synchronize()
    assert torch.equal(edge.into[:nbytes], block)
    assert torch.all(edge.into[nbytes:] == 255)
    assert edge.there.item() == 1


def test_blocks_of_all_sizes_go_one_after_the_other() -> None:
    edge = OneEdge(4096)
    for number in range(1, 100):
        block = block_of(number * 29)
        edge.push(block)
        edge.take()
        edge.release()
        torch.cuda.synchronize()
        assert torch.equal(edge.into[: block.nbytes], block)
        assert edge.there.item() == edge.read.item() == edge.taken.item() == number


def test_a_push_waits_until_the_block_before_was_read() -> None:
    edge, first, second = OneEdge(64), block_of(64), block_of(64)
    edge.push(first)
    torch.cuda.synchronize()
    behind: Any = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # torch's
    done: Any = torch.cuda.Event()  # type: ignore[no-untyped-call]  # torch's
    with torch.cuda.stream(behind):
        edge.push(second)
        done.record(behind)
    assert torch.equal(edge.into[:64], first)
    assert not done.query()
    edge.read += 1
    torch.cuda.synchronize()
    assert torch.equal(edge.into[:64], second)
    assert edge.there.item() == 2


def test_who_gave_up_pushes_nothing_any_more() -> None:
    edge, first, second = OneEdge(64), block_of(64), block_of(64)
    edge.push(first)
    torch.cuda.synchronize()
    edge.given_up[0] = 1
    edge.push(second)  # the first was never read: this ends all the same
    torch.cuda.synchronize()
    edge.read += 1
    edge.given_up[0] = 0
    edge.push(second)
    torch.cuda.synchronize()
    assert torch.equal(edge.into[:64], first)
    assert edge.there.item() == 1
    assert edge.state[kernels.BAD].item() == 1


def test_who_gave_up_tells_of_nothing_that_it_took() -> None:
    edge = OneEdge(64)
    edge.push(block_of(64))
    edge.take()
    edge.release()
    torch.cuda.synchronize()
    edge.given_up[0] = 1
    edge.take()  # a second one never comes
    edge.release()
    torch.cuda.synchronize()
    assert edge.read.item() == edge.taken.item() == 1
    assert edge.state[kernels.BAD].item() == 1


def test_what_was_taken_is_counted_on_the_host() -> None:
    edge, taken = OneEdge(0), torch.zeros(1, dtype=torch.int64, device="cuda")
    for more in (0, 1, 1):
        kernels.count(taken, edge.taken, more)
    torch.cuda.synchronize()
    assert taken.item() == edge.taken.item() == 2
