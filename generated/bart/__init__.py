# ppcgc: generated from specs/bart.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:c21ae249e285e29bfe50dca0ee0f6f306d649b9ed8d9e08eb17aa6ee126d79eb
"""The decode side of an encoder-decoder (BART in transformers' implementation). The encoder's
keys and values lie in a pool that is filled between replays; graphs read it by a table of
rows.
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
