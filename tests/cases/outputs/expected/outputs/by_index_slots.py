# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:70852ee30e9dd3150034fe106d7caef838dfd044e75bb01550f561b5abd47f24
"""outputs.by_index: every slot as the spec declares it, for captures, reports and checks."""

from __future__ import annotations

import torch
from ppcgc import runtime as rt

SLOTS = (
    rt.SlotInfo(
        name="input_ids",
        line="spec.yaml:27",
        axes=("tokens",),
        dtype=torch.int64,
        padding="zero",
        batch="input_ids",
    ),
)
