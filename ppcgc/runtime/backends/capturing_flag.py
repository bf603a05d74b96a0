"""What library code is told when it asks torch whether a capture is on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

# Note [libraries ask whether a capture is on]
# `torch.cuda.is_current_stream_capturing()` decides, for one, whether transformers' masks read a
# value on the host. A CPU capture must answer as a GPU's would: True while it records, False
# while it warms up. A CPU build of torch raises instead of answering, so warm-up needs it too.
_ASKED_IN = (torch.cuda, torch.cuda.graphs)
_ASKED = "is_current_stream_capturing"


@contextmanager
def capturing_reported_as(answer: bool) -> Iterator[None]:
    """Answer ``answer`` on this thread inside the block; other threads ask torch itself."""
    asked = [(module, getattr(module, _ASKED)) for module in _ASKED_IN]
    torch_itself = torch.cuda.is_current_stream_capturing
    here = threading.get_ident()

    def is_current_stream_capturing() -> bool:
        return answer if threading.get_ident() == here else torch_itself()

    for module, _ in asked:
        setattr(module, _ASKED, is_current_stream_capturing)
    try:
        yield
    finally:
        for module, own in asked:
            setattr(module, _ASKED, own)
