# ppcgc: generated from specs/llama.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:2c4847b3a218e5a2b0391c899a8f056c233c69768480a7ee2c6373c54f3f924f
"""Dense decoder with a separate residual stream (Llama, Mistral, Qwen2, Qwen3, SmolLM2)."""

from __future__ import annotations

from .boundary import Boundary
from .decode import DecodeExtents, DecodeOutputs
from .decode_first import DecodeFirst, DecodeFirstBatch, DecodeFirstSlots, DecodeOnly
from .decode_later import DecodeLast, DecodeLaterBatch, DecodeLaterSlots, DecodeMiddle
from .family import FINGERPRINT, Dims, State, stage_layers
from .prefill import PrefillExtents, PrefillOutputs
from .prefill_first import PrefillFirst, PrefillFirstBatch, PrefillFirstSlots, PrefillOnly
from .prefill_later import PrefillLast, PrefillLaterBatch, PrefillLaterSlots, PrefillMiddle

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
    "PrefillLaterBatch",
    "PrefillLaterSlots",
    "PrefillMiddle",
    "PrefillOnly",
    "PrefillOutputs",
    "State",
    "stage_layers",
]
