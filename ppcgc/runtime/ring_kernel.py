"""The kernel at the head of a graph that takes its load off the host, in Triton; CUDA only.

One program reads everything: it alone knows when all of an entry is read. See ``graph_ring``.

Note [the host's memory is read as any other]
    What a host writes before it launches a kernel, the kernel sees: no load here is volatile. A
    volatile one is a trip over the bus for each thread by itself, which took 36 microseconds.
"""

# no postponed annotations here: Triton reads `tl.constexpr` off the functions
import triton
import triton.language as tl
from torch import Tensor

from ppcgc.runtime.graph_ring import HEAD, NUMBER, WORDS

AT_ONCE = 4096  # words, 32 KiB: a read over the bus takes a microsecond, however much it reads
WARPS = 8


@triton.jit  # type: ignore[untyped-decorator]  # triton's
def _take_entry(  # type: ignore[no-untyped-def]  # compiled by triton
    ring,
    into,
    count,
    taken,
    stride,
    entries: tl.constexpr,
    head: tl.constexpr,
    number: tl.constexpr,
    words: tl.constexpr,
    block: tl.constexpr,
):
    done = tl.load(count)
    entry = ring + (done % entries) * stride
    its_number, size = tl.load(entry + number), tl.load(entry + words)
    if its_number == done + 1:
        for start in range(0, size.to(tl.int32), block):
            at = tl.arange(0, block) + start
            values = tl.load(entry + head + at, mask=at < size)
            tl.store(into + at, values, mask=at < size)
        tl.debug_barrier()  # every thread has its bytes: the host may write over them
        tl.store(count, done + 1)
        tl.store(taken, done + 1)


def take_entry(ring: Tensor, into: Tensor, count: Tensor, taken: Tensor) -> None:
    """The entry whose turn it is, if its number says so, becomes the bytes of ``into``.

    ``ring`` [entries, words] and ``taken`` [1] are pinned, ``into`` [words] and ``count`` [1] are
    on the device; int64 all of them.
    """
    entries, stride = ring.shape
    _take_entry[(1,)](
        ring,
        into,
        count,
        taken,
        stride,
        entries=entries,
        head=HEAD,
        number=NUMBER,
        words=WORDS,
        block=AT_ONCE,
        num_warps=WARPS,
    )
