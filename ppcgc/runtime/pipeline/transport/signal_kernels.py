"""Kernels of the symmetric transport, in Triton: wait for a count, push bytes, tell a count.

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
BLOCK = 2048  # words that a program moves at once
MOST_PROGRAMS = 256
_LOOKS = 64  # at the count, between two looks at the host's memory: that is a trip over the bus


@triton.jit(do_not_specialize=["more"])  # type: ignore[untyped-decorator]  # triton's
def _wait(  # type: ignore[no-untyped-def]  # compiled by triton
    count, state, given_up, more, which: tl.constexpr, bad: tl.constexpr, looks: tl.constexpr
):
    wanted = tl.load(state + which) + more
    seen = tl.atomic_add(count, 0, sem="acquire", scope="sys")
    gone = tl.load(given_up, volatile=True)
    turn = 0
    while (seen < wanted) & (gone == 0):
        seen = tl.atomic_add(count, 0, sem="acquire", scope="sys")
        turn += 1
        if turn % looks == 0:
            gone = tl.load(given_up, volatile=True)
    if (seen < wanted) | (gone != 0):
        tl.store(state + bad, 1)
    else:
        tl.store(state + which, wanted)


@triton.jit  # type: ignore[untyped-decorator]  # triton's
def _tell(there, state, which: tl.constexpr, bad: tl.constexpr):  # type: ignore[no-untyped-def]  # compiled by triton
    if tl.load(state + bad) == 0:
        tl.atomic_xchg(there, tl.load(state + which), sem="release", scope="sys")


@triton.jit(do_not_specialize=["words", "more"])  # type: ignore[untyped-decorator]  # triton's
def _push(  # type: ignore[no-untyped-def]  # compiled by triton
    source,
    into,
    words,
    there,
    state,
    more,
    sent: tl.constexpr,
    bad: tl.constexpr,
    ticket: tl.constexpr,
    block: tl.constexpr,
):
    if tl.load(state + bad) == 0:
        for start in range(tl.program_id(0) * block, words, tl.num_programs(0) * block):
            at = tl.arange(0, block) + start
            tl.store(into + at, tl.load(source + at, mask=at < words), mask=at < words)
        tl.debug_barrier()  # all bytes of this program are on their way before it says so
        done = tl.atomic_add(state + ticket, 1, sem="acq_rel", scope="sys")
        if done == tl.num_programs(0) - 1:  # so are those of all others
            count = tl.load(state + sent) + more
            tl.store(state + ticket, 0)
            tl.store(state + sent, count)
            tl.atomic_xchg(there, count, sem="release", scope="sys")


def wait(count: Tensor, state: Tensor, given_up: Tensor, which: int, more: int) -> None:
    """Until ``count`` is ``more`` past the state's word ``which``, which then becomes that."""
    _wait[(1,)](count, state, given_up, more, which=which, bad=BAD, looks=_LOOKS, num_warps=1)


def tell(there: Tensor, state: Tensor, which: int) -> None:
    """The other rank's word becomes the state's word ``which``; all before it has happened."""
    _tell[(1,)](there, state, which=which, bad=BAD, num_warps=1)


def push(source: Tensor, into: Tensor, there: Tensor, state: Tensor, more: int) -> None:
    """Copy into the other rank's memory, then tell it that ``more`` blocks were sent.

    Both are flat, with equal dtype and size; ``into`` and ``there`` are the other rank's.
    """
    words = source.numel()
    programs = max(1, min(MOST_PROGRAMS, -(-words // BLOCK)))
    _push[(programs,)](
        source,
        into,
        words,
        there,
        state,
        more,
        sent=SENT,
        bad=BAD,
        ticket=TICKET,
        block=BLOCK,
    )
