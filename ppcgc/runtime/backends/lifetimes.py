"""Where each intermediate lies in the shared pool, planned from when it is used.

Two blocks may share bytes when no step uses both. Big blocks are placed first, each in the
lowest gap that is free during its life: a greedy plan, close to the largest set alive at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

#: Bytes. What torch's own CPU allocator aligns to, so that kernels take the same paths.
ALIGNMENT = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Bytes that are needed from step ``first`` to step ``last``, both included."""

    nbytes: int
    first: int
    last: int

    def meets(self, other: Block) -> bool:
        """Whether some step needs both blocks."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """``bases[i]`` is where block ``i`` begins; ``nbytes`` is what all of them need."""

    bases: tuple[int, ...]
    nbytes: int


def plan(blocks: Sequence[Block]) -> Plan:
    """Place ``blocks`` so that those alive at one step never overlap. Bases are 64-byte aligned."""
    bases = [0] * len(blocks)
    placed: list[int] = []
    top = 0
    for index in sorted(range(len(blocks)), key=lambda i: (-blocks[i].nbytes, blocks[i].first, i)):
        block = blocks[index]
        neighbours = [(bases[p], blocks[p].nbytes) for p in placed if blocks[p].meets(block)]
        bases[index] = _first_gap(_aligned(block.nbytes), sorted(neighbours))
        top = max(top, bases[index] + _aligned(block.nbytes))
        placed.append(index)
    return Plan(bases=tuple(bases), nbytes=top)


def _first_gap(nbytes: int, taken: Sequence[tuple[int, int]]) -> int:
    """The lowest place for ``nbytes`` beside ``taken``, (base, bytes) in order of base."""
    at = 0
    for base, length in taken:
        if at + nbytes <= base:
            break
        at = max(at, base + _aligned(length))
    return at


def _aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT
