# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:60d459386d8bcb3f35623106fbaeb1751445f3d616ea8c6f033a1bf3df210b40
"""groups.step: every slot as the spec declares it, for captures, reports and checks."""

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
    rt.SlotInfo(
        name="attn.positions",
        line="spec.yaml:16",
        axes=("tokens",),
        dtype=torch.int64,
        padding="zero",
        batch="positions",
        host=True,
        in_block=True,
    ),
    rt.SlotInfo(
        name="spec.draft",
        line="spec.yaml:17",
        axes=("tokens",),
        dtype=torch.int64,
        padding="zero",
        batch="draft",
        host=True,
        in_block=True,
    ),
    rt.SlotInfo(
        name="attn.window",
        line="spec.yaml:18",
        axes=(),
        dtype=torch.int32,
        padding="none",
        source="const",
        rule="dims.hidden * 2",
    ),
    rt.SlotInfo(
        name="attn.mask",
        line="spec.yaml:19",
        axes=("tokens",),
        dtype=torch.bool,
        padding="fill",
        batch="mask",
        fill="false",
    ),
)
