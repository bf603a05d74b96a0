# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:70852ee30e9dd3150034fe106d7caef838dfd044e75bb01550f561b5abd47f24
"""What can become of the forward's result."""

from __future__ import annotations

from .by_index import ByIndexExtents, ByIndexOutputs
from .by_index_only import ByIndexOnly, ByIndexOnlyBatch, ByIndexOnlySlots
from .by_name import ByNameExtents, ByNameOutputs
from .by_name_only import ByNameOnly, ByNameOnlyBatch, ByNameOnlySlots
from .family import FINGERPRINT, Dims, stage_layers

__all__ = [
    "FINGERPRINT",
    "ByIndexExtents",
    "ByIndexOnly",
    "ByIndexOnlyBatch",
    "ByIndexOnlySlots",
    "ByIndexOutputs",
    "ByNameExtents",
    "ByNameOnly",
    "ByNameOnlyBatch",
    "ByNameOnlySlots",
    "ByNameOutputs",
    "Dims",
    "stage_layers",
]
