"""Kernels of hand-offs inside graphs, in Triton: wait for a count, push bytes, tell a count.

Counts only ever grow, so none is reset and none is missed. ``state`` is the rank's own, int64 on
the device: how many blocks it has sent, how many it has taken, whether it gave up, and how many
programs of a push are done.

Note [who gave up passes nothing on]
    A wait ends when its count comes, or when the host says that nothing will come any more. If the
    host has said so, it marks the rank's state, and from there on no kernel of this rank writes
    into another's memory or tells a count: what is queued behind the wait runs on bytes that never
    came, and nobody gets to see what it makes of them.
"""

# no postponed annotations here: Triton reads `tl.constexpr` off the functions
import triton
import triton.language as tl
from torch import Tensor

SENT, TAKEN, BAD, TICKET = 0, 1, 2, 3  # words of the state
STATE_WORDS = 4
WORD = 8  # bytes
BLOCK = 1024  # words that a program moves at once
PROGRAMS = 128
_WARPS = 8
_LOOKS = 64  # at the count, between two looks at the host's memory: that is a trip over the bus


# for programs of one warp: several could see the host's word change at different turns, and hang
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
    written,
    state,
    given_up,
    taken_on_host,
    more,
    taken: tl.constexpr,
    bad: tl.constexpr,
    looks: tl.constexpr,
):
    wanted = tl.load(state + taken) + more
    if _come(written, wanted, given_up, looks):
        tl.store(state + taken, wanted)
        tl.store(taken_on_host, wanted)
    else:
        tl.store(state + bad, 1)


@triton.jit(do_not_specialize=["more"])
def _count(taken, taken_on_host, more):  # type: ignore[no-untyped-def]  # compiled by triton
    number = tl.load(taken) + more
    tl.store(taken, number)
    tl.store(taken_on_host, number)


@triton.jit  # type: ignore[untyped-decorator]  # triton's
def _wait_until_read(  # type: ignore[no-untyped-def]  # compiled by triton
    read, state, given_up, sent: tl.constexpr, bad: tl.constexpr, looks: tl.constexpr
):
    if _come(read, tl.load(state + sent), given_up, looks) == 0:
        tl.store(state + bad, 1)


@triton.jit  # type: ignore[untyped-decorator]  # triton's
def _release(read_there, state, taken: tl.constexpr, bad: tl.constexpr):  # type: ignore[no-untyped-def]  # compiled by triton
    if tl.load(state + bad) == 0:
        tl.atomic_xchg(read_there, tl.load(state + taken), sem="release", scope="sys")


@triton.jit  # type: ignore[untyped-decorator]  # triton's
def _move(source, into, words, left, block: tl.constexpr, word: tl.constexpr):  # type: ignore[no-untyped-def]  # compiled by triton
    words_in, words_out = source.to(tl.pointer_type(tl.int64)), into.to(tl.pointer_type(tl.int64))
    whole = words // block * block
    for start in range(tl.program_id(0) * block, whole, tl.num_programs(0) * block):
        at = tl.arange(0, block) + start  # without a mask: two words a thread at once
        tl.store(words_out + at, tl.load(words_in + at))
    if tl.program_id(0) == tl.num_programs(0) - 1:  # what is less than a block, and than a word
        at = tl.arange(0, block) + whole
        tl.store(words_out + at, tl.load(words_in + at, mask=at < words), mask=at < words)
        some = tl.arange(0, word)
        at = some + words.to(tl.int64) * word
        tl.store(into + at, tl.load(source + at, mask=some < left), mask=some < left)


@triton.jit(do_not_specialize=["words", "left", "more"])  # type: ignore[untyped-decorator]  # triton's
def _push(  # type: ignore[no-untyped-def]  # compiled by triton
    source,
    into,
    words,
    left,
    there,
    state,
    more,
    sent: tl.constexpr,
    bad: tl.constexpr,
    ticket: tl.constexpr,
    block: tl.constexpr,
    word: tl.constexpr,
):
    if tl.load(state + bad) == 0:
        _move(source, into, words, left, block, word)
        tl.debug_barrier()  # all bytes of this program are on their way before it says so
        done = tl.atomic_add(state + ticket, 1, sem="acq_rel", scope="sys")
        if done == tl.num_programs(0) - 1:  # so are those of all others
            count = tl.load(state + sent) + more
            tl.store(state + ticket, 0)
            tl.store(state + sent, count)
            tl.atomic_xchg(there, count, sem="release", scope="sys")


def take(
    written: Tensor, state: Tensor, given_up: Tensor, taken_on_host: Tensor, more: int
) -> None:
    """Until ``more`` blocks than were taken are ``written``; as many are taken then.

    ``given_up`` and ``taken_on_host`` [1] are pinned, int64: the host says in one that nothing
    will come any more, and reads in the other how many were taken.
    """
    _take[(1,)](
        written,
        state,
        given_up,
        taken_on_host,
        more,
        taken=TAKEN,
        bad=BAD,
        looks=_LOOKS,
        num_warps=1,
    )


def count(taken: Tensor, taken_on_host: Tensor, more: int) -> None:
    """``more`` blocks than were ``taken`` are; ``taken_on_host`` [1] is pinned, int64 both."""
    _count[(1,)](taken, taken_on_host, more, num_warps=1)


def wait_until_read(read: Tensor, state: Tensor, given_up: Tensor) -> None:
    """Until all blocks that were sent are ``read``."""
    _wait_until_read[(1,)](read, state, given_up, sent=SENT, bad=BAD, looks=_LOOKS, num_warps=1)


def release(read_there: Tensor, state: Tensor) -> None:
    """Tell the other rank that all blocks that were taken have been read."""
    _release[(1,)](read_there, state, taken=TAKEN, bad=BAD, num_warps=1)


def push(source: Tensor, into: Tensor, there: Tensor, state: Tensor, more: int) -> None:
    """Copy into the other rank's memory, then tell it that ``more`` blocks were sent.

    ``source`` and ``into`` are bytes (uint8); ``into`` and ``there`` are the other rank's.
    """
    words, left = divmod(source.nbytes, WORD)
    _push[(PROGRAMS,)](
        source,
        into,
        words,
        left,
        there,
        state,
        more,
        sent=SENT,
        bad=BAD,
        ticket=TICKET,
        block=BLOCK,
        word=WORD,
        num_warps=_WARPS,
    )
