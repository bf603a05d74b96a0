# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:773d23123ee19b4d0c25b8148f026260d49d8f4589778d9b1fbb360cba4c318c
"""rows_live.step: every slot as the spec declares it, for captures, reports and checks."""

from __future__ import annotations

import torch
from ppcgc import runtime as rt

SLOTS = (
    rt.SlotInfo(
        name="input_ids",
        line="spec.yaml:16",
        axes=("tokens",),
        dtype=torch.int64,
        padding="zero",
        batch="input_ids",
        host=True,
        in_block=True,
    ),
    rt.SlotInfo(
        name="grid",
        line="spec.yaml:17",
        axes=("images",),
        dtype=torch.int32,
        padding="zero",
        batch="mm.grid",
        dim=1,
    ),
)
