# ppcgc: generated from specs/gpt_oss.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:973e555edc50d488fa32795dcb8dc67177045d96387e5f1f308387990857c579
"""gpt-oss in transformers' implementation: sliding and full layers in turn with pools of their
own, as in Gemma 3, attention sinks, experts in groups.
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
