# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:3c5989f596772bebbe05153ede4982a22e3a42d6bc42f272be8dc574803c1086
"""derived_axes.prefill: every slot as the spec declares it, for captures, reports and checks."""

from __future__ import annotations

import torch
from ppcgc import runtime as rt

SLOTS = (
    rt.SlotInfo(
        name="input_ids",
        line="spec.yaml:32",
        axes=("tokens",),
        dtype=torch.int64,
        padding="zero",
        batch="input_ids",
        host=True,
        in_block=True,
    ),
    rt.SlotInfo(
        name="half",
        line="spec.yaml:33",
        axes=("halves",),
        dtype=torch.int32,
        padding="zero",
        batch="half",
    ),
)
