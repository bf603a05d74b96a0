# ppcgc: generated from specs/deepseek_v32.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:fc823acf29b4d0090ee2a918ec5727ccf12dade4a6bbbce2bb21f665591d8321
"""Sparse attention over the positions that an indexer picks. Layers without an indexer reuse
what the layer before picked, so a stage that starts with one takes `topk_indices` over the
boundary.
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
