# ppcgc: generated from specs/llama_flashinfer.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:d6bfb3bebb39dea1a74622641c924c00b0979f03b1d1b4fb6ce75ebab6e1f7e7
"""The dense decoder of `llama` over a paged cache, with attention of a library that plans on the
host: FlashInfer's paged wrappers. What a plan reads stays on the host.
"""

from __future__ import annotations

from .boundary import Boundary
from .decode import DecodeExtents, DecodeOutputs
from .decode_first import (
    DecodeFirst,
    DecodeFirstBatch,
    DecodeFirstHooks,
    DecodeFirstSlots,
    DecodeOnly,
)
from .decode_later import (
    DecodeLast,
    DecodeLaterBatch,
    DecodeLaterHooks,
    DecodeLaterSlots,
    DecodeMiddle,
)
from .family import FINGERPRINT, Dims, State, stage_layers
from .prefill import PrefillExtents, PrefillOutputs
from .prefill_first import (
    PrefillFirst,
    PrefillFirstBatch,
    PrefillFirstHooks,
    PrefillFirstSlots,
    PrefillOnly,
)
from .prefill_later import (
    PrefillLast,
    PrefillLaterBatch,
    PrefillLaterHooks,
    PrefillLaterSlots,
    PrefillMiddle,
)

__all__ = [
    "FINGERPRINT",
    "Boundary",
    "DecodeExtents",
    "DecodeFirst",
    "DecodeFirstBatch",
    "DecodeFirstHooks",
    "DecodeFirstSlots",
    "DecodeLast",
    "DecodeLaterBatch",
    "DecodeLaterHooks",
    "DecodeLaterSlots",
    "DecodeMiddle",
    "DecodeOnly",
    "DecodeOutputs",
    "Dims",
    "PrefillExtents",
    "PrefillFirst",
    "PrefillFirstBatch",
    "PrefillFirstHooks",
    "PrefillFirstSlots",
    "PrefillLast",
    "PrefillLaterBatch",
    "PrefillLaterHooks",
    "PrefillLaterSlots",
    "PrefillMiddle",
    "PrefillOnly",
    "PrefillOutputs",
    "State",
    "stage_layers",
]
