"""Waiting for other ranks, never without an end, and whom to blame when it was in vain."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from datetime import timedelta

import torch.distributed as dist

from ppcgc.runtime.errors import PeerError
from ppcgc.runtime.pipeline.board import Board, Failure
from ppcgc.runtime.pipeline.store import StoreGoneError
from ppcgc.runtime.pipeline.watch import MARGIN, Watch, Watched

# Note [a failure cascades]
# A rank that gives up says why on the board, then drops its process groups. That closes its
# connections, so a neighbour that waits for it wakes at once, reads the board and gives up in
# turn. Over gloo nobody needs a thread that watches, and a step costs nothing for it; for GPUs see
# Note [a host inside CUDA cannot look up] in ``watch``.


class Faults:
    """Turns what a wait raises into an error that names the rank and the step.

    A wait ends within ``timeout`` seconds, and GRACE more to find out who is at fault; or within
    twice as long, where the store has stopped with the process that hosts it.
    """

    def __init__(self, board: Board, timeout: float) -> None:
        self.board = board
        self.timeout = timeout
        self.tripped: PeerError | None = None  # what the watch found
        self._watch: Watch | None = None

    def watch(self, break_off: Callable[[], None]) -> None:
        """From here on look after transfers on the GPU; ``break_off`` ends those that wait."""

        def tripped(problem: PeerError) -> None:
            self.tripped = problem
            break_off()

        self._watch = Watch(
            limit=self.timeout + MARGIN,
            late=lambda transfer, why: self.verdict(
                peer=transfer.peer, step=transfer.step, what="the boundary", late=not why, why=why
            ),
            failed=self._failure_elsewhere,
            tripped=tripped,
        )

    def _failure_elsewhere(self) -> PeerError | None:
        failure = self.board.failure()
        return None if failure is None or failure.rank == self.board.rank else failure.error()

    def look_after(self, name: str, transfer: Watched) -> None:
        if self._watch is not None:
            self._watch.add(name, transfer)

    def end_watch(self) -> None:
        """Idempotent."""
        if self._watch is not None:
            self._watch.stop()
            self._watch = None

    def check(self) -> None:
        """Raises what the watch found: nothing that came after it may be believed."""
        if self.tripped is not None:
            raise self.tripped

    def wait_on_host(self, work: dist.Work, *, peer: int, step: int, what: str) -> None:
        """Block this thread until ``work`` is done. Raises PeerError kinds."""
        start = time.monotonic()
        try:
            work.wait(timedelta(seconds=self.timeout))
        except RuntimeError as problem:
            late = time.monotonic() - start >= 0.9 * self.timeout
            why = reason_of(problem)
            raise self.verdict(peer=peer, step=step, what=what, late=late, why=why) from None
        finally:
            del work  # the traceback must not keep the connection open: Note [a failure cascades]

    def poll(self, done: Callable[[], bool], *, peer: int, step: int, what: str) -> None:
        """Block this thread until the device says it is done. Raises PeerError kinds."""
        deadline = time.monotonic() + self.timeout
        ask = time.monotonic() + 0.1
        while not self._asked(done, peer=peer, step=step, what=what):
            now = time.monotonic()
            if now > deadline:
                raise self.verdict(peer=peer, step=step, what=what, late=True, why="")
            if now > ask:
                self.board.raise_failure()
                ask = now + 0.1
            time.sleep(0)
        self.check()  # what was broken off is done as well

    def _asked(self, done: Callable[[], bool], *, peer: int, step: int, what: str) -> bool:
        try:
            return done()
        except RuntimeError as problem:  # of the device, or of NCCL
            why = reason_of(problem)
            raise self.verdict(peer=peer, step=step, what=what, late=False, why=why) from problem

    def verdict(self, *, peer: int, step: int, what: str, late: bool, why: str) -> PeerError:
        """The failure that stands on the board, or a new one of the rank that is at fault."""
        waited = f"waited for {what} of rank {peer}"
        return self._judged(
            lambda: self._of(peer, step, what, late=late, why=why), peer, step, waited
        )

    def absent(
        self, peers: Sequence[int], *, step: int, what: str, late: bool, why: str
    ) -> PeerError:
        """As ``verdict``, where any of ``peers`` may be the one that was waited for."""

        def silent() -> Failure:
            rank = self.board.silent(peers)
            detail = f"rank {self.board.rank} waited for it in {what} ({why})"
            return Failure(rank=rank, step=step, what=detail, late=late)

        return self._judged(silent, peers[0], step, f"waited in {what} ({why})")

    def _judged(self, found: Callable[[], Failure], peer: int, step: int, waited: str) -> PeerError:
        """What stands on the board, else what is ``found``, which stands there from here on."""
        try:
            known = self.board.failure() or self.board.publish(found())
        except StoreGoneError as gone:
            return self.board.lost(gone, step, waited, peer)
        return known.error()

    def _of(self, peer: int, step: int, what: str, *, late: bool, why: str) -> Failure:
        if not late:
            gone = f"its connection to rank {self.board.rank} is gone ({why})"
            return Failure(rank=peer, step=step, what=f"{gone}, which waited for {what}")
        blamed, circle = self.board.culprit(peer, what)
        detail = f"rank {self.board.rank} waited {self.timeout:g} s for {what} of rank {peer}"
        return Failure(rank=blamed, step=step, what=f"{detail}{circle}", late=True)


def reason_of(problem: Exception) -> str:
    """The first sentence of what a process group raised, without the place in its source."""
    line = str(problem).splitlines()[0]
    return re.sub(r"^\[[^]]*\]\s*", "", line).partition(". ")[0]
