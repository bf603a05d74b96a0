"""The kernel that does all moves of a load, in Triton. Imported on CUDA only.

Each program moves one block of one slot; see ``row_moves`` for the table that it reads.
"""

# no postponed annotations here: Triton reads `tl.constexpr` off the functions
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 1024  # words of a program


@triton.jit  # type: ignore[untyped-decorator]  # triton's
def _words(entry, at, word: tl.constexpr):  # type: ignore[no-untyped-def]  # compiled by triton
    destination = tl.load(entry).to(tl.pointer_type(word))
    source = tl.load(entry + 1).to(tl.pointer_type(word))
    live, total, row = tl.load(entry + 2), tl.load(entry + 3), tl.load(entry + 4)
    pattern, repeats = tl.load(entry + 5), tl.load(entry + 6)
    # a word past live is the word of the last live row at the same place in its row
    last = live - row + (at - live) % tl.maximum(row, 1)
    read_to = tl.where(repeats != 0, tl.where(live > 0, total, 0), live)
    reads = at < read_to
    values = tl.load(source + tl.where(at < live, at, last), mask=reads, other=0)
    filled = tl.where(reads, values, pattern.to(word))
    tl.store(destination + at, filled, mask=at < total)


@triton.jit  # type: ignore[untyped-decorator]  # triton's
def _move_rows(table, fields: tl.constexpr, block: tl.constexpr):  # type: ignore[no-untyped-def]  # compiled by triton
    entry = table + tl.program_id(0) * fields
    at = tl.program_id(1).to(tl.int64) * block + tl.arange(0, block)
    width = tl.load(entry + 7)
    if width == 8:
        _words(entry, at, tl.int64)
    elif width == 4:
        _words(entry, at, tl.int32)
    elif width == 2:
        _words(entry, at, tl.int16)
    else:
        _words(entry, at, tl.int8)


def move_rows(table: Tensor, moves: int, most_words: int, fields: int) -> None:
    """Do the first ``moves`` rows of the table, int64 [rows, fields] on the device."""
    _move_rows[(moves, triton.cdiv(most_words, BLOCK))](table, fields=fields, block=BLOCK)
