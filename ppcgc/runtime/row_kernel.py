"""The kernels that move all rows of a load and reset all rows past live, in Triton; CUDA only.

Each program takes some blocks of one slot; see ``row_moves`` and ``past_live`` for the tables.
"""

# no postponed annotations here: Triton reads `tl.constexpr` off the functions
import torch
import triton
import triton.language as tl
from torch import Tensor

from ppcgc.runtime import past_live
from ppcgc.runtime.row_moves import FIELDS, WORDS


@triton.jit  # type: ignore[untyped-decorator]  # triton's
def _words(entry, block: tl.constexpr, word: tl.constexpr):  # type: ignore[no-untyped-def]  # compiled by triton
    destination = tl.load(entry).to(tl.pointer_type(word))
    source = tl.load(entry + 1).to(tl.pointer_type(word))
    live, total, row = tl.load(entry + 2), tl.load(entry + 3), tl.load(entry + 4)
    pattern, repeats = tl.load(entry + 5), tl.load(entry + 6)
    read_to = tl.where(repeats != 0, tl.where(live > 0, total, 0), live)
    first, step = tl.program_id(1) * block, tl.num_programs(1) * block
    for start in range(first, total.to(tl.int32), step):
        at = tl.arange(0, block).to(tl.int64) + start
        # a word past live is the word of the last live row at the same place in its row
        last = live - row + (at - live) % tl.maximum(row, 1)
        reads = at < read_to
        values = tl.load(source + tl.where(at < live, at, last), mask=reads, other=0)
        filled = tl.where(reads, values, pattern.to(word))
        tl.store(destination + at, filled, mask=at < total)


@triton.jit  # type: ignore[untyped-decorator]  # triton's
def _move_rows(table, column: tl.constexpr, fields: tl.constexpr, block: tl.constexpr):  # type: ignore[no-untyped-def]  # compiled by triton
    if tl.program_id(0) < tl.load(table + column):
        entry = table + (1 + tl.program_id(0)) * fields
        width = tl.load(entry + 7)
        if width == 8:
            _words(entry, block, tl.int64)
        elif width == 4:
            _words(entry, block, tl.int32)
        elif width == 2:
            _words(entry, block, tl.int16)
        else:
            _words(entry, block, tl.int8)


def move_rows(table: Tensor, column: int, moves: int, programs: int) -> None:
    """Do the moves of the table that the count in ``column`` of its head says, ``moves`` at most.

    ``table`` is int64 on the device. Each move is shared by ``programs``.
    """
    with torch.cuda.device_of(table):  # type: ignore[no-untyped-call]  # torch's
        _move_rows[(moves, programs)](table, column=column, fields=FIELDS, block=WORDS)


@triton.jit  # type: ignore[untyped-decorator]  # triton's
def _past(entry, block: tl.constexpr, word: tl.constexpr):  # type: ignore[no-untyped-def]  # compiled by triton
    rows = tl.load(entry).to(tl.pointer_type(word))
    total, row = tl.load(entry + 2), tl.load(entry + 3)
    pattern, repeats = tl.load(entry + 4), tl.load(entry + 5)
    count = tl.load(tl.load(entry + 1).to(tl.pointer_type(tl.int32))).to(tl.int64)
    live = tl.minimum(tl.maximum(count, 0) * row, total)
    repeat_to = tl.where(repeats != 0, tl.where(live > 0, total, 0), 0)
    first, step = tl.program_id(1) * block, tl.num_programs(1) * block
    for start in range(live.to(tl.int32) + first, total.to(tl.int32), step):
        at = tl.arange(0, block).to(tl.int64) + start
        # a word past live is the word of the last live row at the same place in its row
        last = live - row + (at - live) % tl.maximum(row, 1)
        repeated = at < repeat_to
        values = tl.load(rows + last, mask=repeated, other=0)
        tl.store(rows + at, tl.where(repeated, values, pattern.to(word)), mask=at < total)


@triton.jit  # type: ignore[untyped-decorator]  # triton's
def _reset_rows(table, fields: tl.constexpr, block: tl.constexpr):  # type: ignore[no-untyped-def]  # compiled by triton
    entry = table + tl.program_id(0) * fields
    width = tl.load(entry + 7)
    if width == 8:
        _past(entry, block, tl.int64)
    elif width == 4:
        _past(entry, block, tl.int32)
    elif width == 2:
        _past(entry, block, tl.int16)
    else:
        _past(entry, block, tl.int8)


def reset_rows(table: Tensor, keys: int, programs: int) -> None:
    """Reset the rows past live of the first ``keys`` rows of the table, each by ``programs``.

    ``table`` is int64 on the device; the live counts are read when the kernel runs.
    """
    with torch.cuda.device_of(table):  # type: ignore[no-untyped-call]  # torch's
        _reset_rows[(keys, programs)](table, fields=past_live.FIELDS, block=WORDS)
