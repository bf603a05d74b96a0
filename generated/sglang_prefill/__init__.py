# ppcgc: generated from specs/sglang_prefill.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:f8d530ac0644a20edd50ef335b38862d75a55fac961252e19282bd1619178667
"""The buffers of SGLang 0.5.23's prefill graphs, slot for slot: names, axes, dtypes, what padded
rows hold and where live rows come from are those of its prefill registry. Switches of its
server that add or drop buffers are options.
"""

from __future__ import annotations

from .boundary import Boundary
from .family import FINGERPRINT, Dims, Options, State, stage_layers
from .prefill import PrefillExtents, PrefillOutputs
from .prefill_first import PrefillFirst, PrefillFirstBatch, PrefillFirstSlots, PrefillOnly
from .prefill_later import PrefillLast, PrefillLaterBatch, PrefillLaterSlots, PrefillMiddle

__all__ = [
    "FINGERPRINT",
    "Boundary",
    "Dims",
    "Options",
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
