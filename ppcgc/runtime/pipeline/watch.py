"""On GPUs: what a rank does while its host waits inside CUDA for a rank that never comes.

Note [a host inside CUDA cannot look up]
    A message over NCCL waits on the GPU, and whatever waits for the GPU then waits with it: a
    ``.item()`` of the model, a hook, the caller's ``synchronize``. No timeout reaches a host in
    there. So a thread asks, twenty times a second, whether the oldest transfer has happened. When
    one is late, or another rank has failed, it says so on the board and breaks off what NCCL has
    on the GPU; the host comes back, and the step raises before anything of it is returned.

Note [NCCL's own watchdog ends the process]
    It would kill this process at a timeout, or where the connection to a rank that died breaks,
    before anybody could say which rank and step it was. The groups of a pipeline are made without
    that, and with a limit far behind the pipeline's own; other groups of the process keep theirs.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from ppcgc.runtime.errors import PeerError

PAUSE = 0.05  # seconds between two looks
MARGIN = 1.0  # seconds that a host which is not stuck has to find out by itself


class Watched(Protocol):
    """A transfer on the GPU: with which rank, in which step."""

    @property
    def peer(self) -> int: ...
    @property
    def step(self) -> int: ...

    def done(self) -> bool:
        """Whether it has happened; asks the device and never waits."""
        ...


class Watch:
    """A thread that looks after transfers; each list of them happens in its order.

    ``limit`` seconds may pass after a transfer was queued, or after the one before it happened.
    ``late`` makes the error for a transfer, ``failed`` tells of another rank's failure, and
    ``tripped`` is called once, with the first of either.
    """

    def __init__(
        self,
        *,
        limit: float,
        late: Callable[[Watched, str], PeerError],
        failed: Callable[[], PeerError | None],
        tripped: Callable[[PeerError], None],
    ) -> None:
        self._limit = limit
        self._late, self._failed, self._tripped = late, failed, tripped
        self._lists: dict[str, deque[tuple[Watched, float]]] = {}
        self._moved: dict[str, float] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ppcgc watch", daemon=True)
        self._thread.start()

    def add(self, name: str, transfer: Watched) -> None:
        """Look after a transfer; those of one ``name`` happen one after the other."""
        waiting = self._lists.get(name)
        if waiting is None:
            waiting = self._lists.setdefault(name, deque())
        waiting.append((transfer, time.monotonic()))

    def stop(self) -> None:
        """End the thread and forget everything. Idempotent; does nothing from the thread itself."""
        self._stopped.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(self._limit)
        self._lists.clear()

    def _run(self) -> None:
        ask = 0.0
        while not self._stopped.wait(PAUSE):
            try:
                problem = self._overdue()
                now = time.monotonic()
                if problem is None and now > ask and any(self._lists.values()):
                    ask = now + 4 * PAUSE
                    problem = self._failed()
            except PeerError as error:  # the store is gone, and who hosts it
                problem = error
            if problem is not None and not self._stopped.is_set():
                self._tripped(problem)
                return

    def _overdue(self) -> PeerError | None:
        for name, waiting in list(self._lists.items()):
            try:
                self._forget_done(name, waiting)
            except RuntimeError as problem:  # of the device, or of NCCL
                return self._late(waiting[0][0], str(problem))
            if not waiting:
                continue
            transfer, queued = waiting[0]
            if time.monotonic() - max(queued, self._moved.get(name, 0.0)) > self._limit:
                return self._late(transfer, "")
        return None

    def _forget_done(self, name: str, waiting: deque[tuple[Watched, float]]) -> None:
        count = len(waiting)
        if count and waiting[count - 1][0].done():  # then all before it are
            for _ in range(count):
                waiting.popleft()
            self._moved[name] = time.monotonic()
        while waiting and waiting[0][0].done():
            waiting.popleft()
            self._moved[name] = time.monotonic()


class BreakOff:
    """Ends what waits on the GPU for another rank, once.

    Note [graphs and communicators let go together]
        An NCCL communicator that is aborted first frees its kernels, then waits until every graph
        that holds a message of it is closed; and a graph whose kernel still waits may not close
        before that. So each communicator is aborted from a thread of its own while the graphs are
        closed here.
    """

    def __init__(self) -> None:
        self._actions: list[Callable[[], None]] = []
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._started = False

    def add(self, actions: Sequence[Callable[[], None]]) -> None:
        """Actions that begin before those that were added earlier."""
        self._actions[:0] = actions

    def start(self) -> None:
        """Begin all of it; returns at once. Idempotent."""
        with self._lock:
            if self._started:
                return
            self._started = True
            for action in self._actions:
                thread = threading.Thread(target=action, name="ppcgc break off", daemon=True)
                self._threads.append(thread)
                thread.start()

    def finished(self, timeout: float) -> bool:
        """Wait for the end of what was begun; whether it came within ``timeout`` seconds."""
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)
