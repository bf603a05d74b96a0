# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:189a31b95294779ea8cb21a47bf0f77c1efe7d5be97a228617b6ed2428e9ac79
"""Sources below objects of the batch that may be missing."""

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
