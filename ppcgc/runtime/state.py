"""State tensors: given at build, written by the graphs in place, never moved."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ppcgc.runtime.errors import StateError


def check_state(name: str, tensors: Sequence[Tensor], rows: int, device: torch.device) -> None:
    """Raises StateError unless every tensor lies on ``device`` with ``rows`` rows in front."""
    for place, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise StateError(f"state {name}[{place}] is a {type(tensor).__name__}, not a tensor")
        if tensor.dim() == 0 or tensor.shape[0] != rows:
            raise StateError(
                f"state {name}[{place}] has shape {list(tensor.shape)}, the spec says {rows} rows"
            )
        if tensor.device != device:
            raise StateError(
                f"state {name}[{place}] is on {tensor.device}, the stage is on {device}"
            )
