# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 2; do not edit
# spec: sha256:fac76d77da4387cca9cde94c101985db10a5425b6cdc1ac32467f95052f1e573
"""Four stages of unequal length, fixed in the spec."""

from __future__ import annotations

from .boundary import Boundary
from .family import FINGERPRINT, Dims, stage_layers
from .step import StepExtents, StepOutputs
from .step_first import StepFirst, StepFirstBatch, StepFirstSlots
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
    "StepOutputs",
    "stage_layers",
]
