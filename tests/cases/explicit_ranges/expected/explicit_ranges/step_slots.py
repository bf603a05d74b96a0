# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:fb314e7ac1734b7f023d3edafa499a58d619deba71d9bc12e4aba1132bc41c89
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
