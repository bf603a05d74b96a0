"""Transports, chosen by name in one place."""

from __future__ import annotations

import os
from collections.abc import Sequence

import torch

from ppcgc.runtime.errors import TransportError
from ppcgc.runtime.pipeline.faults import Faults
from ppcgc.runtime.pipeline.groups import Edge
from ppcgc.runtime.pipeline.handoff import HandOff
from ppcgc.runtime.pipeline.transport.base import Transfer, Transport
from ppcgc.runtime.pipeline.transport.captured import CapturedTransport
from ppcgc.runtime.pipeline.transport.eager import EagerTransport
from ppcgc.runtime.pipeline.transport.symmetric import SymmetricTransport
from ppcgc.runtime.row_moves import runs_kernels

__all__ = [
    "NAMES",
    "Transfer",
    "Transport",
    "check_scattered",
    "check_transports",
    "open_transport",
]

_KINDS = {kind.name: kind for kind in (EagerTransport, CapturedTransport, SymmetricTransport)}
NAMES = tuple(_KINDS)


def check_transports(names: Sequence[str], device: torch.device) -> None:
    """Raises TransportError for one that is unknown, or not to be had on the device.

    ``symmetric`` goes alone: the runners of a rank share their blocks, and its sender would not
    know that another transport has written there since.
    """
    for name in names:
        if name not in _KINDS:
            raise TransportError(f"transport {name!r}: one of {', '.join(NAMES)}")
        if name != "eager" and device.type != "cuda":
            raise TransportError(
                f"transport {name} needs GPUs and NCCL, the stage is on {device} and hands over "
                "by gloo; use `transport: eager` there"
            )
    if "symmetric" in names and len(set(names)) > 1:
        raise TransportError(
            f"transports {', '.join(names)}: `symmetric` cannot be mixed with another; give all "
            "runners one"
        )
    if "symmetric" in names and not runs_kernels(device):
        raise TransportError(
            "transport symmetric needs Triton, whose kernels wait and tell, and this torch has "
            "none; use `transport: eager`"
        )
    if device.type == "cuda":
        # see Note [multicast stays off] in ``symmetric``; read when a communicator is made
        os.environ.setdefault("NCCL_NVLS_ENABLE", "0")


def check_scattered(handoffs: Sequence[HandOff], names: Sequence[str]) -> bool:
    """Whether keys travel in parts. Raises TransportError where that would be inside a graph."""
    scattered = False
    for handoff, name in zip(handoffs, names, strict=True):
        keys = [side.scattered for side in (handoff.takes, handoff.hands) if side is not None]
        if any(keys) and name != "eager":
            raise TransportError(
                f"{handoff.runner}: transport {name} cannot join the parts of {min(keys[0])} "
                "(`wire: scatter_gather`); use `transport: eager`"
            )
        scattered = scattered or any(keys)
    return scattered


def open_transport(
    name: str,
    device: torch.device,
    incoming: Edge | None,
    outgoing: Edge | None,
    faults: Faults,
) -> Transport:
    """A transport over these edges; the name was checked."""
    return _KINDS[name](device, incoming, outgoing, faults)
