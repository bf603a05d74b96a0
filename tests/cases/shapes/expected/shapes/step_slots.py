# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:d537729046a0e090de41a413e09a7ba112f6e5b0d839b71aaeedf67e3ee80f30
"""shapes.step: every slot as the spec declares it, for captures, reports and checks."""

from __future__ import annotations

import torch
from ppcgc import runtime as rt

SLOTS = (
    rt.SlotInfo(
        name="positions",
        line="spec.yaml:17",
        axes=("tokens",),
        dtype=torch.int64,
        padding="zero",
        batch="positions",
        host=True,
        in_block=True,
        dim=1,
    ),
    rt.SlotInfo(
        name="rope",
        line="spec.yaml:18",
        axes=("tokens",),
        dtype=torch.float32,
        padding="zero",
        batch="rope",
        dim=1,
    ),
    rt.SlotInfo(
        name="pairs",
        line="spec.yaml:19",
        axes=("tokens",),
        dtype=torch.float32,
        padding="repeat_last",
        batch="pairs",
    ),
    rt.SlotInfo(
        name="bounds",
        line="spec.yaml:20",
        axes=("requests",),
        dtype=torch.int32,
        padding="repeat_last",
        batch="bounds",
        host=True,
        in_block=True,
    ),
    rt.SlotInfo(
        name="scalar",
        line="spec.yaml:21",
        axes=(),
        dtype=torch.float32,
        padding="none",
        batch="scalar",
    ),
    rt.SlotInfo(
        name="table",
        line="spec.yaml:22",
        axes=(),
        dtype=torch.int32,
        padding="none",
        batch="table",
        host=True,
        in_block=True,
    ),
    rt.SlotInfo(
        name="lanes",
        line="spec.yaml:23",
        axes=("tokens",),
        dtype=torch.int32,
        padding="none",
        in_block=True,
        dim=1,
        source="compute",
        rule="row.tokens * 3",
    ),
)
