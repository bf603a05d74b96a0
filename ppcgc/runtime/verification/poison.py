"""Bytes that nobody means: what still holds them was not written."""

from __future__ import annotations

import torch
from torch import Tensor

POISON_BYTE = 0x5A


def poison_bytes(tensor: Tensor) -> None:
    """Every byte 0x5A: 1e16 in float32, large in every integer."""
    if tensor.dtype == torch.bool:
        tensor.fill_(True)
        return
    count = tensor.numel() * tensor.element_size()
    pattern = torch.full((count,), POISON_BYTE, dtype=torch.uint8, device=tensor.device)
    tensor.copy_(pattern.view(tensor.dtype).view(tensor.shape))
