# ppcgc: generated from specs/bench_llama.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:1a9996329bccfba3693523ddf7406001fb97911900169b5cb732c52ddb53c35b
"""The measured scenario: packed prefill of a stage that is not the first, nine slots (six of
small integers, the offsets, and the boundary's two), every bucket replayed.
"""

from __future__ import annotations

from .boundary import Boundary
from .family import FINGERPRINT, Dims, State, stage_layers
from .prefill import PrefillExtents, PrefillOutputs
from .prefill_dense import PrefillDenseExtents, PrefillDenseOutputs
from .prefill_dense_first import (
    PrefillDenseFirst,
    PrefillDenseFirstBatch,
    PrefillDenseFirstSlots,
    PrefillDenseOnly,
)
from .prefill_dense_later import (
    PrefillDenseLast,
    PrefillDenseLaterBatch,
    PrefillDenseLaterSlots,
    PrefillDenseMiddle,
)
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
    "PrefillDenseExtents",
    "PrefillDenseFirst",
    "PrefillDenseFirstBatch",
    "PrefillDenseFirstSlots",
    "PrefillDenseLast",
    "PrefillDenseLaterBatch",
    "PrefillDenseLaterSlots",
    "PrefillDenseMiddle",
    "PrefillDenseOnly",
    "PrefillDenseOutputs",
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
