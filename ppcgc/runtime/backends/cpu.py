"""CPU graphs: a tape of the body's ATen operations, replayed on the very same memory.

For correctness, not for speed: what a CUDA graph would get wrong goes wrong here too (stale
padding, branches frozen at capture, outputs overwritten by the next run), and what it would
refuse is refused.

Two differences from a GPU remain. The capture really runs the body once, so it writes state as
a warm-up does. And only work that torch's dispatcher sees is recorded: kernels that reach memory
in another way (ctypes, numba, numpy views made earlier) belong in a ``torch.library.custom_op``.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable

import torch

from ppcgc.runtime.backends.binding import Call, bind
from ppcgc.runtime.backends.capturing_flag import capturing_reported_as
from ppcgc.runtime.backends.listing import listing_of
from ppcgc.runtime.backends.pool import SharedPool
from ppcgc.runtime.backends.tape import Tape, record, recording
from ppcgc.runtime.backends.uses import EscapedTensor, ExternalUse
from ppcgc.runtime.errors import CaptureError, NotCapturedError


class CpuGraph:
    """A recorded body. Made by :meth:`CpuBackend.capture`."""

    def __init__(self, tape: Tape, pool: SharedPool, closed: Callable[[], None]) -> None:
        bases, self._pool_bytes = tape.book.placed()
        pool.fit(max(pool.nbytes, self._pool_bytes))
        self._tape: Tape | None = tape
        self._calls: list[Call] = bind(tape, bases, pool.storage)
        self._closed = closed

    @property
    def steps(self) -> int:
        """Number of operations that a replay runs."""
        return len(self._calls)

    @property
    def pool_bytes(self) -> int:
        """Bytes of the shared pool that this graph's intermediates need."""
        return self._pool_bytes

    @property
    def externals(self) -> tuple[ExternalUse, ...]:
        """Every range of memory older than the capture that the graph reads or writes."""
        return self._tape.externals if self._tape is not None else ()

    @property
    def escaped(self) -> tuple[EscapedTensor, ...]:
        """Tensors made inside the capture that the model still held after it."""
        return self._tape.escaped if self._tape is not None else ()

    def listing(self) -> list[str]:
        """A line for each step: number, operation, shapes, the model's line."""
        return listing_of(self._tape) if self._tape is not None else []

    def replay(self) -> None:
        """Do the recorded work again. Raises NotCapturedError once the graph is closed."""
        if self._tape is None:
            raise NotCapturedError("the graph is closed: capture again before replaying")
        if recording():
            raise CaptureError("a graph was replayed inside a capture: replay outside of it")
        # the capture saw the casts that autocast made: they are steps, and must not be made twice
        with torch.no_grad(), torch.autocast("cpu", enabled=False):
            for function, args, kwargs in self._calls:
                function(*args, **kwargs)

    def close(self) -> None:
        """Let go of the calls and of the memory that the graph holds. Idempotent."""
        if self._tape is not None:
            self._tape = None
            self._calls = []
            self._pool_bytes = 0
            self._closed()


class CpuBackend:
    """Captures and replays on the CPU; all of its graphs share one pool of intermediates."""

    name = "cpu"

    def __init__(self) -> None:
        self.device = torch.device("cpu")
        self._pool = SharedPool()
        self._graphs: weakref.WeakSet[CpuGraph] = weakref.WeakSet()
        self._closed = False

    def warm_up(self, body: Callable[[], object]) -> None:
        """Run ``body`` once, eagerly and without gradients."""
        with capturing_reported_as(False), torch.no_grad():
            body()

    def capture(self, body: Callable[[], object]) -> CpuGraph:
        """Record ``body``, which runs once.

        Raises CaptureError for what a GPU graph could not hold, naming the operation and the
        model's line; an error of ``body`` itself passes through. Either way the backend goes on.
        """
        if self._closed:
            raise NotCapturedError("the CPU backend is closed: make another one to capture")
        with capturing_reported_as(True):
            tape = record(body)
        graph = CpuGraph(tape, self._pool, self._fit_pool)
        self._graphs.add(graph)
        return graph

    def join_stream(self) -> None:
        """Nothing to order: a CPU does one thing after the other."""

    def pool_bytes(self) -> int:
        """Bytes of the shared pool: what the largest graph needs."""
        return self._pool.nbytes

    def poison_pool(self) -> None:
        """Fill the pool with NaN. Replays do not notice, readers of stale intermediates do."""
        self._pool.poison()

    def blank_pool(self) -> None:
        """Fill the pool with zeros."""
        self._pool.blank()

    def close(self) -> None:
        """Close every graph and free the pool. Idempotent."""
        self._closed = True
        for graph in list(self._graphs):
            graph.close()
        self._fit_pool()

    def _fit_pool(self) -> None:
        self._pool.fit(max((graph.pool_bytes for graph in self._graphs), default=0))
