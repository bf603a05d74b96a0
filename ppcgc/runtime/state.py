"""State tensors: given at build, written by the graphs in place, never moved."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ppcgc.runtime.errors import StateError


def check_state(
    name: str, tensors: Sequence[Tensor], rows: int, device: torch.device, line: str = ""
) -> None:
    """Raises StateError unless every tensor lies on ``device`` with ``rows`` rows in front.

    ``line`` is the spec's, where the rows are declared.
    """
    if not isinstance(tensors, Sequence) or isinstance(tensors, str):
        shape = f" of shape {list(tensors.shape)}" if isinstance(tensors, Tensor) else ""
        raise StateError(
            f"state {name} is a {type(tensors).__name__}{shape}; give a list of one tensor a "
            f"layer, each of {rows} rows"
        )
    for place, tensor in enumerate(tensors):
        _check(f"state {name}[{place}]", tensor, rows, device, line)


def _check(name: str, tensor: object, rows: int, device: torch.device, line: str) -> None:
    if not isinstance(tensor, Tensor):
        raise StateError(f"{name} is a {type(tensor).__name__}, not a tensor")
    if tensor.dim() == 0 or tensor.shape[0] != rows:
        has = f"{tensor.shape[0]} rows" if tensor.dim() else "no rows"
        raise StateError(
            f"{name} has shape {list(tensor.shape)}, {has}; the spec says {rows} rows"
            f"{f' ({line})' if line else ''}: make the tensor with {rows} rows in dimension 0, or "
            "build Dims for those that it has"
        )
    if tensor.device != device:
        raise StateError(f"{name} is on {tensor.device}, the stage is on {device}")
    if tensor.is_inference():
        raise StateError(
            f"{name} was made inside torch.inference_mode(), and nothing can write it outside of "
            "it, not even a warm-up; make it outside of torch.inference_mode()"
        )
