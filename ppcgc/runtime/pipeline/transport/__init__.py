"""Transports, chosen by name in one place."""

from __future__ import annotations

import os

import torch

from ppcgc.runtime.errors import TransportError
from ppcgc.runtime.pipeline.faults import Faults
from ppcgc.runtime.pipeline.groups import Edge
from ppcgc.runtime.pipeline.transport.base import Transfer, Transport
from ppcgc.runtime.pipeline.transport.captured import CapturedTransport
from ppcgc.runtime.pipeline.transport.eager import EagerTransport
from ppcgc.runtime.pipeline.transport.symmetric import SymmetricTransport

__all__ = ["NAMES", "Transfer", "Transport", "check_transport", "open_transport"]

_KINDS = {kind.name: kind for kind in (EagerTransport, CapturedTransport, SymmetricTransport)}
NAMES = tuple(_KINDS)


def check_transport(name: str, device: torch.device) -> None:
    """Raises TransportError for a transport that is unknown, or not to be had on the device."""
    if name not in _KINDS:
        raise TransportError(f"transport {name!r}: one of {', '.join(NAMES)}")
    if name != "eager" and device.type != "cuda":
        raise TransportError(
            f"transport {name} needs GPUs and NCCL, the stage is on {device} and hands over by "
            "gloo; use `transport: eager` there"
        )
    if device.type == "cuda":
        # see Note [multicast stays off] in ``symmetric``; read when a communicator is made
        os.environ.setdefault("NCCL_NVLS_ENABLE", "0")


def open_transport(
    name: str,
    device: torch.device,
    incoming: Edge | None,
    outgoing: Edge | None,
    faults: Faults,
) -> Transport:
    """A transport over these edges. Raises TransportError."""
    check_transport(name, device)
    return _KINDS[name](device, incoming, outgoing, faults)
