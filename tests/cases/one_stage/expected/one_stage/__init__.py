# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:740bc790888aacc66747fbb88bbd813989e7e5e4aa888ea10c37331d7d662819
"""The family one_stage"""

from __future__ import annotations

from .family import FINGERPRINT, Dims, stage_layers
from .step import StepExtents, StepOutputs
from .step_only import StepOnly, StepOnlyBatch, StepOnlySlots

__all__ = [
    "FINGERPRINT",
    "Dims",
    "StepExtents",
    "StepOnly",
    "StepOnlyBatch",
    "StepOnlySlots",
    "StepOutputs",
    "stage_layers",
]
