"""The plan of the pool: nothing alive at one step overlaps, everything else is shared."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ppcgc.runtime.backends.lifetimes import Block, Plan, plan


def test_blocks_of_disjoint_lives_share_bytes() -> None:
    blocks = [Block(nbytes=128, first=0, last=1), Block(nbytes=128, first=2, last=3)]
    assert plan(blocks) == Plan(bases=(0, 0), nbytes=128)


def test_a_step_that_reads_one_and_writes_the_other_keeps_them_apart() -> None:
    blocks = [Block(nbytes=100, first=0, last=1), Block(nbytes=64, first=1, last=2)]
    assert plan(blocks) == Plan(bases=(0, 128), nbytes=192)


def test_the_lowest_gap_that_fits_is_taken() -> None:
    blocks = [
        Block(nbytes=256, first=0, last=2),  # at 0 in steps 0 to 2
        Block(nbytes=192, first=2, last=4),  # above it
        Block(nbytes=128, first=3, last=5),  # below that one, where the first was
    ]
    assert plan(blocks) == Plan(bases=(0, 256, 0), nbytes=448)


def test_no_blocks_need_no_memory() -> None:
    assert plan([]) == Plan(bases=(), nbytes=0)


@st.composite
def _blocks(draw: st.DrawFn) -> list[Block]:
    made = []
    for _ in range(draw(st.integers(1, 12))):
        first = draw(st.integers(0, 10))
        length = draw(st.integers(0, 5))
        made.append(Block(nbytes=draw(st.integers(0, 300)), first=first, last=first + length))
    return made


@settings(max_examples=100, deadline=None)
@given(_blocks())
def test_no_byte_has_two_owners_at_one_step(blocks: list[Block]) -> None:
    made = plan(blocks)
    assert all(base % 64 == 0 for base in made.bases)
    for step in range(16):
        owned: set[int] = set()
        for base, block in zip(made.bases, blocks, strict=True):
            if block.first <= step <= block.last:
                mine = set(range(base, base + block.nbytes))
                assert not owned & mine
                assert base + block.nbytes <= made.nbytes
                owned |= mine
