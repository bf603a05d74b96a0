# ppcgc: generated from specs/bench_llama.yaml by ppcgc 0.1.0, ABI 1; do not edit
# spec: sha256:46250c16c304183a1207510c543c4c9286f06641f8b080f1b2ec5ffdaa389b95
"""The measured scenario: packed prefill of a stage that is not the first, nine slots (six of
small integers, the offsets, and the boundary's two), every bucket replayed.
"""

from __future__ import annotations

from .boundary import Boundary
from .family import FINGERPRINT, Dims, State, stage_layers
from .prefill import PrefillExtents, PrefillOutputs
from .prefill_first import PrefillFirst, PrefillFirstBatch, PrefillFirstSlots, PrefillOnly
from .prefill_later import PrefillLast, PrefillLaterBatch, PrefillLaterSlots, PrefillMiddle
from .prefill_on_device import PrefillOnDeviceExtents, PrefillOnDeviceOutputs
from .prefill_on_device_first import (
    PrefillOnDeviceFirst,
    PrefillOnDeviceFirstBatch,
    PrefillOnDeviceFirstSlots,
    PrefillOnDeviceOnly,
)
from .prefill_on_device_later import (
    PrefillOnDeviceLast,
    PrefillOnDeviceLaterBatch,
    PrefillOnDeviceLaterSlots,
    PrefillOnDeviceMiddle,
)

__all__ = [
    "FINGERPRINT",
    "Boundary",
    "Dims",
    "PrefillExtents",
    "PrefillFirst",
    "PrefillFirstBatch",
    "PrefillFirstSlots",
    "PrefillLast",
    "PrefillLaterBatch",
    "PrefillLaterSlots",
    "PrefillMiddle",
    "PrefillOnDeviceExtents",
    "PrefillOnDeviceFirst",
    "PrefillOnDeviceFirstBatch",
    "PrefillOnDeviceFirstSlots",
    "PrefillOnDeviceLast",
    "PrefillOnDeviceLaterBatch",
    "PrefillOnDeviceLaterSlots",
    "PrefillOnDeviceMiddle",
    "PrefillOnDeviceOnly",
    "PrefillOnDeviceOutputs",
    "PrefillOnly",
    "PrefillOutputs",
    "State",
    "stage_layers",
]
