# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:3c5989f596772bebbe05153ede4982a22e3a42d6bc42f272be8dc574803c1086
"""Axes whose sizes or counts follow others."""

from __future__ import annotations

from .boundary import Boundary
from .family import FINGERPRINT, Dims, stage_layers
from .prefill import PrefillExtents, PrefillOutputs
from .prefill_first import PrefillFirst, PrefillFirstBatch, PrefillFirstSlots, PrefillOnly
from .prefill_later import PrefillLast, PrefillLaterBatch, PrefillLaterSlots, PrefillMiddle
from .verify import VerifyExtents, VerifyOutputs
from .verify_first import VerifyFirst, VerifyFirstBatch, VerifyFirstSlots, VerifyOnly
from .verify_later import VerifyLast, VerifyLaterBatch, VerifyLaterSlots, VerifyMiddle

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
    "PrefillOnly",
    "PrefillOutputs",
    "VerifyExtents",
    "VerifyFirst",
    "VerifyFirstBatch",
    "VerifyFirstSlots",
    "VerifyLast",
    "VerifyLaterBatch",
    "VerifyLaterSlots",
    "VerifyMiddle",
    "VerifyOnly",
    "VerifyOutputs",
    "stage_layers",
]
