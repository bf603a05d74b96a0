# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:1e4305ee185251b0d581b9816b805fe79e4b5279f68fcee4c8dec058a34ec0b5
"""Names of sixty characters, as long as the language allows, wherever a name can stand; and a
sentence that is longer than one line of a docstring can be.
"""

from __future__ import annotations

from .boundary import Boundary
from .family import FINGERPRINT, Dims, State, stage_layers
from .run_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ import (
    RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijExtents,
    RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijOutputs,
)
from .run_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij__first import (
    RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijFirst,
    RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijFirstBatch,
    RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijFirstSlots,
    RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijOnly,
)
from .run_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij__later import (
    RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijLast,
    RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijLaterBatch,
    RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijLaterSlots,
    RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijMiddle,
)

__all__ = [
    "FINGERPRINT",
    "Boundary",
    "Dims",
    "RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijExtents",
    "RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijFirst",
    "RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijFirstBatch",
    "RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijFirstSlots",
    "RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijLast",
    "RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijLaterBatch",
    "RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijLaterSlots",
    "RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijMiddle",
    "RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijOnly",
    "RunAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijOutputs",
    "State",
    "stage_layers",
]
