"""The memory that all graphs of a CPU backend keep their intermediates in."""

from __future__ import annotations

import torch


class SharedPool:
    """One storage, as large as the largest graph needs.

    Every recorded intermediate is a view of this storage. It grows and shrinks in place, so the
    tensors of graphs captured earlier follow it without being made again; its contents are lost
    then, which no graph minds: a replay reads only what that replay wrote.
    """

    def __init__(self) -> None:
        self.storage = torch.empty(0, dtype=torch.uint8).untyped_storage()

    @property
    def nbytes(self) -> int:
        """Bytes held now."""
        return self.storage.nbytes()

    def fit(self, nbytes: int) -> None:
        """Hold exactly ``nbytes``. The old memory is freed before the new is taken."""
        if nbytes != self.nbytes:
            self.storage.resize_(0)
            self.storage.resize_(nbytes)

    def poison(self) -> None:
        """Set every byte to 0xFF: NaN in every float dtype, -1 in signed integers.

        Bitwise equal results after this show that no step reads memory that it did not write.
        """
        self._fill(0xFF)

    def blank(self) -> None:
        """Set every byte to zero, as if nothing had ever been there."""
        self._fill(0)

    def _fill(self, byte: int) -> None:
        torch.empty(0, dtype=torch.uint8).set_(self.storage).fill_(byte)
