"""Copies of a model's modules that share its weights and run the hook's attention.

For families whose stages are not made by :mod:`.stage` because their forward as a whole cannot
run packed sequences, while its parts can.
"""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from torch import nn

from ppcgc.hf.hook import ATTENTION_NAME

ModuleT = TypeVar("ModuleT", bound=nn.Module)


def attending_copy(module: ModuleT) -> ModuleT:
    """A copy for inference: weights in the original's memory, configs of its own.

    See Note [a config of its own] in ``stage``.
    """
    shared: dict[int, Any] = {
        id(weight): nn.Parameter(weight.detach(), requires_grad=False)
        for weight in module.parameters()
    }
    copied = copy.deepcopy(module, shared)
    for part in copied.modules():
        config = getattr(part, "config", None)
        if config is not None:
            config._attn_implementation = ATTENTION_NAME
    return copied.eval()
