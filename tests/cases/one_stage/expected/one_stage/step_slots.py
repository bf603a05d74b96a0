# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:740bc790888aacc66747fbb88bbd813989e7e5e4aa888ea10c37331d7d662819
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
