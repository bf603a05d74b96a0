# ppcgc: generated from specs/sglang_decode.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:c4a62b50f35e2c9ca438a2bfdd47451d633610f72adfbedfcccc3d09e8502cf3
"""The buffers of SGLang 0.5.23's decode graphs, slot for slot: names, axes, dtypes, what padded
rows hold and where live rows come from are those of its decode registry. Where that leaves
padded rows as an earlier step wrote them, they are reset here. Switches of its server that
add or drop buffers are options.
"""

from __future__ import annotations

from .boundary import Boundary
from .decode import DecodeExtents, DecodeOutputs
from .decode_first import DecodeFirst, DecodeFirstBatch, DecodeFirstSlots, DecodeOnly
from .decode_later import DecodeLast, DecodeLaterBatch, DecodeLaterSlots, DecodeMiddle
from .family import FINGERPRINT, Dims, Options, State, stage_layers

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
    "Options",
    "State",
    "stage_layers",
]
