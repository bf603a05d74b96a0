# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 2; do not edit
# spec: sha256:91eeedae7e9f4f9e5b7c073b8eee3dec82945491b02a8e8df004e3334dbb1440
"""one_stage.step: every slot as the spec declares it, for captures, reports and checks."""

from __future__ import annotations

import torch
from ppcgc import runtime as rt

SLOTS = (
    rt.SlotInfo(
        name="input_ids",
        line="spec.yaml:13",
        axes=("tokens",),
        dtype=torch.int64,
        padding="zero",
        batch="input_ids",
    ),
)
