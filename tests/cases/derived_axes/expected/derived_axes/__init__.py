# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 2; do not edit
# spec: sha256:3cd225ddd4e59132f210b9cebbc7535eaa17909d9278eea9aeea0397c68391c8
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
