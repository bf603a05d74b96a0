# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:273ac02076b5384be9554b57455730d885074abf805b9f2da54729d17f2ca3a9
"""hidden_only.prefill: every slot as the spec declares it, for captures, reports and checks."""

from __future__ import annotations

import torch
from ppcgc import runtime as rt

SLOTS = (
    rt.SlotInfo(
        name="input_ids",
        line="spec.yaml:21",
        axes=("tokens",),
        dtype=torch.int64,
        padding="zero",
        role=rt.Role.INDEX,
        batch="input_ids",
        host=True,
        in_block=True,
    ),
    rt.SlotInfo(
        name="last_token",
        line="spec.yaml:22",
        axes=("requests",),
        dtype=torch.int64,
        padding="zero",
        role=rt.Role.INDEX,
        of_axis="tokens",
        batch="last_token",
        host=True,
        in_block=True,
    ),
)
