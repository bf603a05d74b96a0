"""What a transport does: move blocks of bytes from a rank to the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from ppcgc.runtime.pipeline.faults import Faults
from ppcgc.runtime.pipeline.groups import Edge


class Transfer(Protocol):
    """A block on its way."""

    def wait(self) -> None:
        """What this rank does from here on comes after the transfer.

        On a GPU its stream waits, the host does not. Raises PeerError kinds.
        """
        ...

    def confirm(self) -> None:
        """Block the host until the bytes are really there. Raises PeerError kinds."""
        ...


class Transport(Protocol):
    """Both ends of this rank: blocks come in from the rank before and go out to the next.

    Blocks are flat uint8 tensors on the stage's device. Both ends know the size beforehand.
    """

    @property
    def name(self) -> str: ...

    @property
    def in_graph(self) -> bool:
        """Whether a replay moves the blocks itself, whole, by ``arrive`` and ``depart``."""
        ...

    def blocks(self, incoming: int, outgoing: int) -> tuple[Tensor | None, Tensor | None]:
        """Memory of these sizes for what comes in and what goes out, None where it is 0."""
        ...

    def warm_up(self) -> None:
        """Connect each edge, on all ranks together, before any capture."""
        ...

    def arrive(self, incoming: Tensor | None) -> None:
        """Inside the captured region of a bucket: behind it the block may be read."""
        ...

    def depart(self, incoming: Tensor | None, outgoing: Tensor | None) -> None:
        """At its end: ``incoming`` has been read, ``outgoing`` is written."""
        ...

    def send(self, block: Tensor, step: int) -> Transfer: ...

    def receive(self, block: Tensor, step: int) -> Transfer:
        """Into ``block``, once what this rank did before has read it."""
        ...

    def break_off(self) -> None:
        """Whatever waits on the GPU for a rank that is gone ends; from any thread."""
        ...

    def replayed(self, step: int) -> Transfer | None:
        """What the replay that was queued last receives by itself, with ``in_graph``."""
        ...

    def recount(self) -> None:
        """All ranks replayed, equally often, without ``replayed``; waits for the device."""
        ...


def passed(device: torch.device) -> Callable[[], bool]:
    """Tells whether the current stream is through with all that was queued until now."""
    event = torch.cuda.Event()  # type: ignore[no-untyped-call]  # torch left it untyped
    event.record(torch.cuda.current_stream(device))
    query: Callable[[], bool] = event.query
    return query


class Queued:
    """A transfer that this rank's stream does itself; ``done`` tells whether it has happened."""

    def __init__(self, faults: Faults, peer: int, step: int, done: Callable[[], bool]) -> None:
        self._faults = faults
        self.peer, self.step = peer, step
        self.done = done
        faults.look_after(f"stream, rank {self.peer}", self)

    def wait(self) -> None:
        return None

    def confirm(self) -> None:
        self._faults.poll(self.done, peer=self.peer, step=self.step, what="the boundary")


class Ends:
    """What transports share: the edges of this rank, and plain memory for its blocks."""

    in_graph = False

    def __init__(
        self, device: torch.device, incoming: Edge | None, outgoing: Edge | None, faults: Faults
    ) -> None:
        self.device = device
        self.incoming, self.outgoing = incoming, outgoing
        self.faults = faults

    def blocks(self, incoming: int, outgoing: int) -> tuple[Tensor | None, Tensor | None]:
        return self._block(incoming), self._block(outgoing)

    def _block(self, nbytes: int) -> Tensor | None:
        if not nbytes:
            return None
        return torch.zeros(nbytes, dtype=torch.uint8, device=self.device)

    def arrive(self, incoming: Tensor | None) -> None:
        return None

    def depart(self, incoming: Tensor | None, outgoing: Tensor | None) -> None:
        return None

    def break_off(self) -> None:
        return None  # communicators are aborted by their groups

    def replayed(self, step: int) -> Transfer | None:
        return None

    def recount(self) -> None:
        return None


def edge_of(edge: Edge | None, what: str) -> Edge:
    """The edge, which the place in the pipeline has. RuntimeError otherwise: our own mistake."""
    if edge is None:
        raise RuntimeError(f"this stage has no edge to {what}")
    return edge
