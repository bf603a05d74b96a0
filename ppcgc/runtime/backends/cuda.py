"""CUDA graphs behind the backend protocol: one stream, one memory pool, one graph a bucket."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import torch

from ppcgc.runtime.backends.capture_stream import CaptureStream
from ppcgc.runtime.backends.memset_nodes import nodes_of, replace_memsets
from ppcgc.runtime.backends.model_line import line_of_error
from ppcgc.runtime.collecting import collector_off
from ppcgc.runtime.errors import CaptureError, NotCapturedError


def _closed() -> None:
    raise NotCapturedError("the graph is closed")


class CudaGraph:
    """A captured CUDA graph. ``replay`` is the graph's own: no Python between step and launch.

    It keeps the pool of its intermediates and its workspace, which may outlive the backend that
    way.
    """

    def __init__(
        self,
        graph: torch.cuda.CUDAGraph,
        pool: torch.cuda.MemPool,
        stream: CaptureStream,
        steps: int | None,
    ) -> None:
        self._graph: torch.cuda.CUDAGraph | None = graph
        self._pool, self._stream = pool, stream
        self._steps = steps
        self.replay: Callable[[], None] = graph.replay

    @property
    def steps(self) -> int | None:
        """The graph's nodes; None where NVIDIA's bindings, which count them, are not there."""
        return self._steps

    def close(self) -> None:
        if self._graph is not None:
            self._graph.reset()
            self._graph = None
            self.replay = _closed


class CudaBackend:
    """Capture and replay on one CUDA device."""

    name = "cuda"
    replaces_memsets = True  # see ``memset_nodes``; what it saves is measured without

    def __init__(self, device: torch.device | str = "cuda") -> None:
        self.device = torch.device(device)
        if self.device.index is None:
            self.device = torch.device("cuda", torch.cuda.current_device())
        self._stream = CaptureStream(self.device)
        self._pool = self._new_pool()
        self._graphs: list[CudaGraph] = []
        self._pool_bytes = 0
        self._index: int = self.device.index
        self._last_stream: torch.cuda.Stream | None = None  # of the last step
        self._step_stream: int | None = None  # the same, as CUDA names it

    def warm_up(self, body: Callable[[], None]) -> None:
        """Run ``body`` on the capture stream, then wait for it."""
        stream = self._stream.stream
        stream.wait_stream(torch.cuda.current_stream(self.device))
        self._pool_bytes += self._stream.make_workspace()
        with torch.cuda.stream(stream), torch.no_grad():
            body()
        torch.cuda.current_stream(self.device).wait_stream(stream)
        torch.cuda.synchronize(self.device)

    def capture(self, body: Callable[[], None]) -> CudaGraph:
        """Record ``body``. Raises CaptureError with the line of the model that cannot be captured.

        Note [other threads during capture]
            A watchdog thread may touch CUDA while this one captures; ``thread_local`` keeps its
            calls from invalidating the capture.
        """
        self._pool_bytes += self._stream.make_workspace()
        graph = torch.cuda.CUDAGraph(keep_graph=True)  # to be changed before it is instantiated
        before = torch.cuda.memory_reserved(self.device)
        uses = self._pool.use_count()
        try:
            self._record(graph, body)
            steps = self._instantiate(graph)
        except Exception as error:
            torch.cuda.synchronize(self.device)
            graph.reset()  # before the pool goes, whatever keeps the error and its frames
            self._take_back(uses)
            if isinstance(error, CaptureError):
                raise
            raise _refusal(error) from error
        self._pool_bytes += max(0, torch.cuda.memory_reserved(self.device) - before)
        made = CudaGraph(graph, self._pool, self._stream, steps)
        self._graphs.append(made)
        return made

    def _record(self, graph: torch.cuda.CUDAGraph, body: Callable[[], None]) -> None:
        """Capture ``body`` on the capture stream. Raises what it raises.

        Note [what a broken capture leaves behind]
            Where CUDA has ended the capture itself, ending it raises another error over the one
            that tells why, and torch leaves the capture stream the current one. Up to 2.11 its
            allocators then take the pool for one that is still recorded into: they keep what
            `empty_cache` should give back, and refuse another capture there. Up to 2.13 the pool
            stays in use for good. Of device memory that can be taken back, of pinned memory it
            cannot: the next capture has another pool.
        """
        problem: list[Exception] = []

        def kept() -> None:
            try:
                body()
            except Exception as error:
                problem.append(error)
                raise

        here = torch.cuda.current_stream(self.device)
        try:
            with (
                torch.no_grad(),
                collector_off(),  # see Note [garbage is collected before capture, not during it]
                torch.cuda.stream(here),  # again behind the capture
                torch.cuda.graph(
                    graph,
                    pool=self._pool.id,  # type: ignore[arg-type]  # documented so
                    stream=self._stream.stream,
                    capture_error_mode="thread_local",
                ),
            ):
                kept()
        except Exception:
            if not problem:
                raise
        if problem:
            raise problem.pop()

    def _take_back(self, uses: int) -> None:
        """Leave the pool with so many uses. See Note [what a broken capture leaves behind]."""
        with suppress(RuntimeError):  # torch's word for a pool that is not recorded into
            torch._C._cuda_endAllocateToPool(self._index, self._pool.id)
        if self._pool.use_count() <= uses:
            return
        while self._pool.use_count() > uses:
            torch._C._cuda_releasePool(self._index, self._pool.id)
        self._pool = self._new_pool()

    def _new_pool(self) -> torch.cuda.MemPool:
        with torch.cuda.device(self.device):  # a pool belongs to the device that is current
            return torch.cuda.MemPool()

    def _instantiate(self, graph: torch.cuda.CUDAGraph) -> int | None:
        """Make the graph ready for its launches; how many nodes it has, where that is known."""
        nodes = nodes_of(graph)
        with torch.cuda.device(self.device), torch.no_grad():
            if nodes is not None and self.replaces_memsets:
                replace_memsets(nodes, self._stream.stream, self._pool)
            steps = None if nodes is None else nodes.count()
            graph.instantiate()
        return steps

    def join_stream(self) -> None:
        """Let the current stream wait for the last step, if that was on another one.

        Note [a step on another stream]
            A load that overtakes an earlier replay overwrites what it reads, and two replays at a
            time share the pool's memory. An event is recorded only when the stream has changed:
            on the old stream, behind all that it was given, so that steps which stay on one
            stream pay for a comparison alone. What reads the outputs on the old stream, a copy
            of `keep: ring` among it, has been waited for as well then.
        """
        if torch._C._cuda_getCurrentRawStream(self._index) != self._step_stream:
            self._change_stream()

    def _change_stream(self) -> None:
        stream, before = torch.cuda.current_stream(self.device), self._last_stream
        if before is not None:
            stream.wait_stream(before)
        self._last_stream, self._step_stream = stream, stream.cuda_stream

    def pool_bytes(self) -> int:
        return self._pool_bytes

    def close(self) -> None:
        for graph in self._graphs:
            graph.close()
        self._graphs.clear()


def _refusal(problem: Exception) -> CaptureError:
    first_line = str(problem).strip().splitlines()[:1]
    return CaptureError(
        f"{type(problem).__name__}: {first_line[0] if first_line else 'no message'}\n"
        f"  at {line_of_error(problem)}"
    )
