# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 2; do not edit
# spec: sha256:91eeedae7e9f4f9e5b7c073b8eee3dec82945491b02a8e8df004e3334dbb1440
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
