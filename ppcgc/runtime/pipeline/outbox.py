"""Blocks on their way to the next rank.

Note [a send reads until it is done]
    A send that is under way reads its block still, and the next replay writes the stage's one
    output address. So each batch in flight has an output slot of its own: the live bytes are
    copied there and sent from there, and a slot is written again only after its send is done.
    With one batch in flight nothing is copied; the next step waits for the send instead.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ppcgc.runtime.pipeline.layout import Wire
from ppcgc.runtime.pipeline.transport import Transfer, Transport


class Outbox:
    """``slots`` batches may be in flight; ``nbytes`` is the size of the largest block."""

    def __init__(self, slots: int, nbytes: int, device: torch.device) -> None:
        count = slots if slots > 1 else 0
        self._slots = [torch.empty(nbytes, dtype=torch.uint8, device=device) for _ in range(count)]
        self._sends: list[list[tuple[Transfer, Tensor]]] = [[] for _ in range(max(1, slots))]
        self._turn = 0

    @property
    def nbytes(self) -> int:
        return sum(slot.nbytes for slot in self._slots)

    def before_step(self) -> None:
        """With one batch in flight, wait until its block may be written again."""
        if not self._slots:
            self._settle(0)

    def send(self, block: Tensor, wire: Wire, transport: Transport, step: int) -> None:
        """Send of a block that the next step will overwrite. Raises PeerError kinds."""
        self._turn = turn = (self._turn + 1) % len(self._sends)
        self._settle(turn)
        pieces = [block[piece] for piece in wire.pieces]
        if self._slots:
            slot = self._slots[turn]
            pieces = [
                slot[where].copy_(piece) for where, piece in zip(wire.pieces, pieces, strict=True)
            ]
        self._sends[turn] = [(transport.send(piece, step), piece) for piece in pieces]

    def send_own(self, block: Tensor, wire: Wire, transport: Transport, step: int) -> None:
        """Send of a block that nobody will write again; it is kept until it has gone."""
        self._turn = turn = (self._turn + 1) % len(self._sends)
        self._settle(turn)
        pieces = [block[piece] for piece in wire.pieces]
        self._sends[turn] = [(transport.send(piece, step), piece) for piece in pieces]

    def _settle(self, turn: int) -> None:
        under_way, self._sends[turn] = self._sends[turn], []
        for transfer, _ in under_way:
            transfer.wait()

    def settle(self, *, on_host: bool = False, moved: Callable[[], None] = lambda: None) -> None:
        """Wait for all sends, the oldest first; ``on_host`` until they have really gone.

        The next rank takes them in this order, so each wait begins where the one before ended;
        ``moved`` is called in between.
        """
        for later in range(1, len(self._sends) + 1):
            turn = (self._turn + later) % len(self._sends)
            for transfer, _ in self._sends[turn] if on_host else ():
                transfer.confirm()
            if self._sends[turn]:
                self._settle(turn)
                moved()

    def drop(self) -> None:
        """Forget what is under way: see Note [a failure cascades] in ``faults``."""
        self._sends = [[] for _ in self._sends]
