# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:fb314e7ac1734b7f023d3edafa499a58d619deba71d9bc12e4aba1132bc41c89
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
