"""The stream that a backend captures on, with the workspace that its graphs use.

Note [a graph's own workspace]
    torch keeps one workspace of cuBLAS a stream, and a graph has its address in it. Others free
    that workspace: torch.compile(mode="reduce-overhead") at each recording, of all streams; newer
    releases of torch when any graph of the stream is reset (pytorch issue 193402). In the general
    pool its memory is then handed to whoever asks, and a replay writes over it. So it lies in a
    pool of its own, which nobody else allocates from and which stays while the process does.

Note [a stream of nobody else]
    The first matrix product on a stream makes the workspace, wherever memory comes from just then.
    torch hands out 32 streams a device, in turn, so its next one may have been somebody's, and
    have a workspace elsewhere; or be another backend's, whose graphs may run at the same time and
    would share it. A stream of the driver is nobody's before, and is lent again only when its
    backend and all of its graphs are gone.
"""

from __future__ import annotations

import atexit
import ctypes
import weakref
from typing import NamedTuple

import torch

NON_BLOCKING = 1  # work on the default stream does not wait for it, and is no part of a capture


class Lent(NamedTuple):
    stream: torch.cuda.Stream
    workspace: torch.cuda.MemPool


_idle: dict[int, list[Lent]] = {}  # by device


class CaptureStream:
    """A stream on loan. Whoever replays its graphs keeps this object."""

    def __init__(self, device: torch.device) -> None:
        # also for a replay that is still on its way, of graphs that are gone, and the first call
        torch.cuda.synchronize(device)
        idle = _idle.setdefault(device.index, [])
        try:
            lent = idle.pop()  # not asked before: another thread may take the last one
        except IndexError:
            lent = _new(device)
        self.stream, self._workspace = lent
        weakref.finalize(self, idle.append, lent).atexit = False

    def make_workspace(self) -> int:
        """See that the workspace of cuBLAS for this stream lies in its pool.

        To be called before each warm-up and capture: whoever resets a graph of the stream, with
        newer torch, or records by other means has it made anew. Gives the bytes that were taken.
        """
        device = self.stream.device
        with torch.cuda.stream(self.stream), torch.no_grad():
            factor = torch.ones(16, 16, dtype=torch.float16, device=device)
            product = torch.empty_like(factor)
            before = torch.cuda.memory_reserved(device)
            with torch.cuda.use_mem_pool(self._workspace, device):
                torch.mm(factor, factor, out=product)
        return max(0, torch.cuda.memory_reserved(device) - before)


def _new(device: torch.device) -> Lent:
    """A stream of the driver's, which no other part of the process has, and an empty pool."""
    made = ctypes.c_void_p()
    with torch.cuda.device(device):
        refused = ctypes.CDLL("libcuda.so.1").cuStreamCreate(ctypes.byref(made), NON_BLOCKING)
        if refused:
            raise RuntimeError(f"cuStreamCreate on {device}: CUDA error {refused}")
        stream = torch.cuda.ExternalStream(made.value, device)  # type: ignore[no-untyped-call]  # torch's
        return Lent(stream, torch.cuda.MemPool())


@atexit.register  # while CUDA is still there
def _forget() -> None:
    for idle in _idle.values():
        idle.clear()
