"""What a capture says of memory that it does not own, for checks by a reader or by `verify`."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ppcgc.runtime.backends.model_line import ModelLine


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalUse:
    """The first access to a range of memory that the capture did not make itself.

    Slots, parameters, pools, output buffers; also what nobody declared. ``start`` and ``end``
    are bytes from the storage's begin; ``storage_address`` is where that storage lies.
    Several slots may share one storage: tell them apart by range.
    """

    storage_address: int
    start: int
    end: int
    shape: tuple[int, ...]
    dtype: torch.dtype
    written: bool
    op: str
    line: ModelLine

    @property
    def address(self) -> int:
        """Address of the first byte."""
        return self.storage_address + self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class EscapedTensor:
    """A tensor made inside the capture that the model still holds after it.

    It keeps memory of its own, at the address that it had: each replay of its graph writes it
    again, no other graph does.
    """

    nbytes: int
    shape: tuple[int, ...]
    dtype: torch.dtype
    op: str
    line: ModelLine
