# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 2; do not edit
# spec: sha256:4c75f6229891d375adee6ab56edc23eebe277a952666f7dbfdc46dcb7ad90427
"""outputs.by_name: every slot as the spec declares it, for captures, reports and checks."""

from __future__ import annotations

import torch
from ppcgc import runtime as rt

SLOTS = (
    rt.SlotInfo(
        name="input_ids",
        line="spec.yaml:15",
        axes=("tokens",),
        dtype=torch.int64,
        padding="zero",
        batch="input_ids",
    ),
)
