# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:60d459386d8bcb3f35623106fbaeb1751445f3d616ea8c6f033a1bf3df210b40
"""Slots in groups, each a small object of its own."""

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
