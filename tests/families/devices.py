"""The devices that families are run on: the CPU backend always, CUDA where there is one."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> str:
    """A device to build on, and the name of its backend."""
    name = str(request.param)
    if name == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    return name
