"""Graph backends, chosen by name in one place."""

from __future__ import annotations

import torch

from ppcgc.runtime.backends.base import Backend, Graph
from ppcgc.runtime.errors import BuildError

__all__ = ["Backend", "Graph", "open_backend"]


def open_backend(device: str | torch.device) -> Backend:
    """A backend for ``cpu``, ``cuda`` or ``cuda:N``. Runners that share one share its pool.

    Raises BuildError for a device that has no backend or is not there.
    """
    try:
        wanted = torch.device(device)
    except (RuntimeError, TypeError) as problem:  # torch's own, of a name that it does not know
        raise BuildError(f"device {device!r}: one of cpu, cuda, cuda:N") from problem
    if wanted.type == "cpu":
        from ppcgc.runtime.backends.cpu import CpuBackend

        return CpuBackend()
    if wanted.type == "cuda":
        if not torch.cuda.is_available():
            raise BuildError(f"device {device}: this torch sees no CUDA device")
        if wanted.index is not None and wanted.index >= torch.cuda.device_count():
            raise BuildError(
                f"device {device}: this torch sees {torch.cuda.device_count()} CUDA devices, "
                f"the last is cuda:{torch.cuda.device_count() - 1}"
            )
        from ppcgc.runtime.backends.cuda import CudaBackend

        return CudaBackend(wanted)
    raise BuildError(f"device {device}: ppcgc has the backends cpu and cuda")
