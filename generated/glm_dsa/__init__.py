# ppcgc: generated from specs/glm_dsa.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:a44205a61e5ce44ca77b1e6bd3d9721b7635392f90a79dd313071ff9cd66b30a
"""GLM's sparse attention: DeepSeek-V3.2's, where a list of the config says which layers reuse
the positions that the layer before picked.
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
