"""Python's garbage collector, held off while graphs are captured."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Note [garbage is collected before capture, not during it]
# A runner that was dropped without `close()` waits for the collector. The destructor of its memory
# pool gives memory back to CUDA, which a thread that captures may not do: the capture is invalid
# then, and an error in a destructor takes the process along. So what is garbage goes first, in one
# collection for all the buckets, and none happens in between; nor while another graph is recorded.


_lock = threading.Lock()
_windows = 0  # open ones, of all threads
_was_enabled = False  # before the first of them


@contextmanager
def collector_off() -> Iterator[None]:
    """Keep the collector off inside the block, then put its setting back.

    Windows nest, and those of several threads overlap: the last one that is left ends them.
    """
    global _windows, _was_enabled
    with _lock:
        if not _windows:
            _was_enabled = gc.isenabled()
            gc.disable()
        _windows += 1
    try:
        yield
    finally:
        with _lock:
            _windows -= 1
            if not _windows and _was_enabled:
                gc.enable()


@contextmanager
def garbage_held() -> Iterator[None]:
    """Collect garbage, and keep the collector off inside the block.

    Objects that the process froze with ``gc.freeze()`` stay frozen.
    """
    gc.collect()
    with collector_off():
        yield
