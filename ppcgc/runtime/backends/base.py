"""What a graph backend does: warm up, capture, replay, close.

Both backends keep the same promises:

* ``capture(body)`` runs ``body()`` once and records its device work; ``Graph.replay()`` does
  that work again on the very same memory, without running ``body``'s Python.
* graphs of one backend share one memory pool and must be replayed one at a time: a replay may
  overwrite another graph's intermediates, never anything that lived before its capture.
* what cannot be captured (a host read, a data-dependent shape) raises
  :class:`~ppcgc.runtime.errors.CaptureError` naming the op and the line of the model, and
  leaves the process able to run eagerly and to capture something else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch


class Graph(Protocol):
    """A captured body."""

    @property
    def steps(self) -> int | None:
        """Number of device operations in the graph, None where the backend cannot tell."""
        ...

    @property
    def replay(self) -> Callable[[], None]:
        """Does the captured work again. Asynchronous on a GPU, on the current stream."""
        ...

    def close(self) -> None:
        """Free what only this graph holds. Idempotent."""
        ...


class Backend(Protocol):
    """A way of capturing and replaying on one device."""

    @property
    def name(self) -> str: ...

    @property
    def device(self) -> torch.device: ...

    def warm_up(self, body: Callable[[], None]) -> None:
        """Run ``body`` once, uncaptured, where captures will run: lazy set-up happens here."""
        ...

    def capture(self, body: Callable[[], None]) -> Graph:
        """Record ``body``. Raises CaptureError."""
        ...

    def join_stream(self) -> None:
        """Before a step writes slots: order it after the last step, if that was on another stream.

        Its graphs share one pool, so their replays follow each other whatever stream they are on.
        """
        ...

    def pool_bytes(self) -> int:
        """Bytes that the shared pool of intermediates holds now, as measured."""
        ...

    def close(self) -> None:
        """Close every graph and free the pool. Idempotent."""
        ...
