"""Python's garbage collector, held off while graphs are captured."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# Note [garbage is collected before capture, not during it]
# A collection inside a capture may free a tensor of an earlier, unrelated step: on a GPU that
# frees memory while the stream records, and either way it makes a capture depend on chance. So
# what is garbage goes first, in one collection for all the buckets, and none happens in between.


@contextmanager
def garbage_held() -> Iterator[None]:
    """Collect garbage, keep the collector off inside the block, then put its setting back.

    Windows nest: an inner one leaves the collector off for the outer one. Objects that the
    process froze with ``gc.freeze()`` stay frozen.
    """
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
