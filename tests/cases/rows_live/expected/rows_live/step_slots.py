# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 2; do not edit
# spec: sha256:e43bb53af3cb5a7d8c7cdbb8f65669c4fba57a342cdeb9670036812f0cb22dd0
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
