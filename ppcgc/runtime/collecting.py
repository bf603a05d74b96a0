"""Python's garbage collector, held off while graphs are captured."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# Note [garbage is collected before capture, not during it]
# A runner that was dropped without `close()` waits for the collector. The destructor of its memory
# pool gives memory back to CUDA, which a thread that captures may not do: the capture is invalid
# then, and an error in a destructor takes the process along. So what is garbage goes first, in one
# collection for all the buckets, and none happens in between; nor while another graph is recorded.


@contextmanager
def collector_off() -> Iterator[None]:
    """Keep the collector off inside the block, then put its setting back; windows nest."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def garbage_held() -> Iterator[None]:
    """Collect garbage, and keep the collector off inside the block.

    Objects that the process froze with ``gc.freeze()`` stay frozen.
    """
    gc.collect()
    with collector_off():
        yield
