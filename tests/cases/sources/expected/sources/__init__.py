# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:a0396ae931ba4cce559a947cd6dcde5f2b610ae5ff0866f3c7e71c297c212ec3
"""Every source of a slot."""

from __future__ import annotations

from .boundary import Boundary
from .family import FINGERPRINT, Dims, stage_layers
from .step import StepExtents, StepOutputs
from .step_first import StepFirst, StepFirstBatch, StepFirstSlots, StepOnly
from .step_later import StepLast, StepLaterBatch, StepLaterSlots, StepMiddle

__all__ = [
    "FINGERPRINT",
    "Boundary",
    "Dims",
    "StepExtents",
    "StepFirst",
    "StepFirstBatch",
    "StepFirstSlots",
    "StepLast",
    "StepLaterBatch",
    "StepLaterSlots",
    "StepMiddle",
    "StepOnly",
    "StepOutputs",
    "stage_layers",
]
