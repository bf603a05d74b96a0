# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:773d23123ee19b4d0c25b8148f026260d49d8f4589778d9b1fbb360cba4c318c
"""Axes that count the rows of their own source."""

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
