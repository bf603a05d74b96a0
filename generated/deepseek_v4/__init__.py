# ppcgc: generated from specs/deepseek_v4.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:0e88973b6be78f978cf1dd5448851ff2143ddfd8576aaf45063f6a2620385d4f
"""Hyper-connections: a token is several residual streams side by side, and no other residual is
handed over. Layers that choose experts by a hash of the token id read the ids on any stage.
"""

from __future__ import annotations

from .boundary import Boundary
from .decode import DecodeExtents, DecodeOutputs
from .decode_first import DecodeFirst, DecodeFirstBatch, DecodeFirstSlots, DecodeOnly
from .decode_later import DecodeLast, DecodeLaterBatch, DecodeLaterSlots, DecodeMiddle
from .family import FINGERPRINT, Dims, State, stage_layers
from .prefill import PrefillExtents, PrefillOutputs
from .prefill_first import PrefillFirst, PrefillFirstBatch, PrefillFirstSlots
from .prefill_last import PrefillLast, PrefillLastBatch, PrefillLastSlots
from .prefill_middle import PrefillMiddle, PrefillMiddleBatch, PrefillMiddleSlots
from .prefill_only import PrefillOnly, PrefillOnlyBatch, PrefillOnlySlots

__all__ = [
    "FINGERPRINT",
    "Boundary",
    "DecodeExtents",
    "DecodeFirst",
    "DecodeFirstBatch",
    "DecodeFirstSlots",
    "DecodeLast",
    "DecodeLaterBatch",
    "DecodeLaterSlots",
    "DecodeMiddle",
    "DecodeOnly",
    "DecodeOutputs",
    "Dims",
    "PrefillExtents",
    "PrefillFirst",
    "PrefillFirstBatch",
    "PrefillFirstSlots",
    "PrefillLast",
    "PrefillLastBatch",
    "PrefillLastSlots",
    "PrefillMiddle",
    "PrefillMiddleBatch",
    "PrefillMiddleSlots",
    "PrefillOnly",
    "PrefillOnlyBatch",
    "PrefillOnlySlots",
    "PrefillOutputs",
    "State",
    "stage_layers",
]
