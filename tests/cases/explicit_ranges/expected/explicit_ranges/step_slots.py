# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 2; do not edit
# spec: sha256:fac76d77da4387cca9cde94c101985db10a5425b6cdc1ac32467f95052f1e573
"""explicit_ranges.step: every slot as the spec declares it, for captures, reports and checks."""

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
        name="positions",
        line="spec.yaml:17",
        axes=("tokens",),
        dtype=torch.int64,
        padding="zero",
        batch="positions",
        host=True,
        in_block=True,
    ),
)
