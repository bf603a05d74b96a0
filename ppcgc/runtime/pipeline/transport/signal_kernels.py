"""Kernels of the symmetric transport, in Triton: wait for a count, push bytes, tell a count.

Counts only ever grow, so none is reset and none is missed. ``state`` is the rank's own, int64 on
the device: how many blocks it has sent, how many it has taken, whether it gave up, how many
programs of a push are done, and where the block lies that is pushed next.

Note [who gave up passes nothing on]
    A wait ends when its count comes, or when the host says that nothing will come any more. If the
    host has said so, it marks the rank's state, and from there on no kernel of this rank writes
    into another's memory or tells a count: what is queued behind the wait runs on bytes that never
    came, and nobody gets to see what it makes of them.

Note [a push is always the same]
    Triton takes some 20 microseconds of a host to launch a kernel, a graph a tenth of that. So all
    of them are in graphs, and a push cannot be told what it is to send: the host writes the
    address and the size of block ``n`` into entry ``n`` of a ring of pinned memory, which the n-th
    push looks up. It is one program that does, for a look over the bus takes a microsecond.
"""

# no postponed annotations here: Triton reads `tl.constexpr` off the functions
import triton
import triton.language as tl
from torch import Tensor

SENT, TAKEN, BAD, TICKET, ADDRESS, NBYTES = 0, 1, 2, 3, 4, 5  # words of the state
STATE_WORDS = 6
ENTRIES = 64  # blocks that a host may queue ahead of the device
FIELDS = 2  # of an entry: address and bytes
ALIGNED = 16  # bytes, of a block's address: so much does a thread move at once
WORD = 8  # bytes
BLOCK = 1024  # words that a program moves at once
PROGRAMS = 128
_WARPS = 8
_LOOKS = 64  # at the count, between two looks at the host's memory: that is a trip over the bus


@triton.jit  # type: ignore[untyped-decorator]  # triton's
def _come(count, wanted, given_up, looks: tl.constexpr):  # type: ignore[no-untyped-def]  # compiled by triton
    seen = tl.atomic_add(count, 0, sem="acquire", scope="sys")
    gone = tl.load(given_up, volatile=True)
    turn = 0
    while (seen < wanted) & (gone == 0):
        seen = tl.atomic_add(count, 0, sem="acquire", scope="sys")
        turn += 1
        if turn % looks == 0:
            gone = tl.load(given_up, volatile=True)
    return (seen >= wanted) & (gone == 0)


@triton.jit(do_not_specialize=["more"])  # type: ignore[untyped-decorator]  # triton's
def _take(  # type: ignore[no-untyped-def]  # compiled by triton
    count, state, given_up, more, taken: tl.constexpr, bad: tl.constexpr, looks: tl.constexpr
):
    wanted = tl.load(state + taken) + more
    if _come(count, wanted, given_up, looks):
        tl.store(state + taken, wanted)
    else:
        tl.store(state + bad, 1)


@triton.jit  # type: ignore[untyped-decorator]  # triton's
def _tell(there, state, which: tl.constexpr, bad: tl.constexpr):  # type: ignore[no-untyped-def]  # compiled by triton
    if tl.load(state + bad) == 0:
        tl.atomic_xchg(there, tl.load(state + which), sem="release", scope="sys")


@triton.jit(do_not_specialize=["more"])  # type: ignore[untyped-decorator]  # triton's
def _look_up(  # type: ignore[no-untyped-def]  # compiled by triton
    read,
    state,
    given_up,
    ring,
    looked_up,
    more,
    sent: tl.constexpr,
    bad: tl.constexpr,
    address: tl.constexpr,
    nbytes: tl.constexpr,
    entries: tl.constexpr,
    fields: tl.constexpr,
    looks: tl.constexpr,
):
    number = tl.load(state + sent)
    entry = ring + (number % entries) * fields
    tl.store(state + address, tl.load(entry))
    tl.store(state + nbytes, tl.load(entry + 1))
    tl.store(looked_up, number + more)  # the host may write the entry anew
    if _come(read, number, given_up, looks) == 0:
        tl.store(state + bad, 1)


@triton.jit  # type: ignore[untyped-decorator]  # triton's
def _move(source, into, nbytes, aligned: tl.constexpr, block: tl.constexpr, word: tl.constexpr):  # type: ignore[no-untyped-def]  # compiled by triton
    words_in = tl.multiple_of(source.to(tl.pointer_type(tl.int64)), aligned)
    words_out = tl.multiple_of(into.to(tl.pointer_type(tl.int64)), aligned)
    words = (nbytes // word).to(tl.int32)
    whole = words // block * block
    for start in range(tl.program_id(0) * block, whole, tl.num_programs(0) * block):
        at = tl.arange(0, block) + start  # without a mask: several words a thread at once
        tl.store(words_out + at, tl.load(words_in + at))
    if tl.program_id(0) == tl.num_programs(0) - 1:  # what is less than a block, and than a word
        at = tl.arange(0, block) + whole
        tl.store(words_out + at, tl.load(words_in + at, mask=at < words), mask=at < words)
        at = tl.arange(0, word) + words.to(tl.int64) * word
        bytes_in, bytes_out = source.to(tl.pointer_type(tl.int8)), into.to(tl.pointer_type(tl.int8))
        tl.store(bytes_out + at, tl.load(bytes_in + at, mask=at < nbytes), mask=at < nbytes)


@triton.jit(do_not_specialize=["more"])  # type: ignore[untyped-decorator]  # triton's
def _push(  # type: ignore[no-untyped-def]  # compiled by triton
    into,
    there,
    state,
    more,
    sent: tl.constexpr,
    bad: tl.constexpr,
    ticket: tl.constexpr,
    address: tl.constexpr,
    nbytes: tl.constexpr,
    aligned: tl.constexpr,
    block: tl.constexpr,
    word: tl.constexpr,
):
    if tl.load(state + bad) == 0:
        _move(tl.load(state + address), into, tl.load(state + nbytes), aligned, block, word)
        tl.debug_barrier()  # all bytes of this program are on their way before it says so
        done = tl.atomic_add(state + ticket, 1, sem="acq_rel", scope="sys")
        if done == tl.num_programs(0) - 1:  # so are those of all others
            count = tl.load(state + sent) + more
            tl.store(state + ticket, 0)
            tl.store(state + sent, count)
            tl.atomic_xchg(there, count, sem="release", scope="sys")


def take(count: Tensor, state: Tensor, given_up: Tensor, more: int) -> None:
    """Until ``count`` is ``more`` past the blocks that were taken, which then are as many."""
    _take[(1,)](count, state, given_up, more, taken=TAKEN, bad=BAD, looks=_LOOKS, num_warps=1)


def tell(there: Tensor, state: Tensor, which: int) -> None:
    """The other rank's word becomes the state's word ``which``; all before it has happened."""
    _tell[(1,)](there, state, which=which, bad=BAD, num_warps=1)


def push(
    into: Tensor,
    there: Tensor,
    read: Tensor,
    state: Tensor,
    given_up: Tensor,
    ring: Tensor,
    looked_up: Tensor,
    more: int,
) -> None:
    """Copy the next block of the ring into the other rank's memory, then tell it of ``more``.

    Not before all that was sent has been ``read``. ``into`` is the other rank's memory (uint8),
    ``there`` its count; ``ring`` [entries, fields] and ``looked_up`` [1] are pinned, int64.
    """
    _look_up[(1,)](
        read,
        state,
        given_up,
        ring,
        looked_up,
        more,
        sent=SENT,
        bad=BAD,
        address=ADDRESS,
        nbytes=NBYTES,
        entries=ENTRIES,
        fields=FIELDS,
        looks=_LOOKS,
        num_warps=1,
    )
    _push[(PROGRAMS,)](
        into,
        there,
        state,
        more,
        sent=SENT,
        bad=BAD,
        ticket=TICKET,
        address=ADDRESS,
        nbytes=NBYTES,
        aligned=ALIGNED,
        block=BLOCK,
        word=WORD,
        num_warps=_WARPS,
    )
