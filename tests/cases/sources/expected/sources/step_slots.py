# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:a0396ae931ba4cce559a947cd6dcde5f2b610ae5ff0866f3c7e71c297c212ec3
"""sources.step: every slot as the spec declares it, for captures, reports and checks."""

from __future__ import annotations

import torch
from ppcgc import runtime as rt

SLOTS = (
    rt.SlotInfo(
        name="on_device",
        line="spec.yaml:15",
        axes=("tokens",),
        dtype=torch.float32,
        padding="zero",
        batch="on_device",
    ),
    rt.SlotInfo(
        name="host",
        line="spec.yaml:16",
        axes=("tokens",),
        dtype=torch.int64,
        padding="zero",
        batch="host",
        host=True,
        in_block=True,
    ),
    rt.SlotInfo(
        name="narrowed",
        line="spec.yaml:17",
        axes=("tokens",),
        dtype=torch.int32,
        padding="zero",
        batch="host",
        cast=True,
        host=True,
        in_block=True,
    ),
    rt.SlotInfo(
        name="received",
        line="spec.yaml:18",
        axes=("tokens",),
        dtype=None,
        padding="zero",
        boundary="hidden_states",
        source="boundary",
    ),
    rt.SlotInfo(
        name="block_number",
        line="spec.yaml:19",
        axes=("tokens",),
        dtype=torch.int32,
        padding="none",
        in_block=True,
        source="compute",
        rule="row.tokens // dims.block",
    ),
    rt.SlotInfo(
        name="waste",
        line="spec.yaml:20",
        axes=(),
        dtype=torch.int32,
        padding="none",
        in_block=True,
        source="compute",
        rule="padded.tokens - live.tokens",
    ),
    rt.SlotInfo(
        name="is_full",
        line="spec.yaml:21",
        axes=(),
        dtype=torch.bool,
        padding="none",
        in_block=True,
        source="compute",
        rule="live.tokens == padded.tokens",
    ),
    rt.SlotInfo(
        name="scale",
        line="spec.yaml:22",
        axes=("tokens",),
        dtype=torch.float32,
        padding="none",
        source="const",
        rule="0.25",
    ),
    rt.SlotInfo(
        name="drafted",
        line="spec.yaml:23",
        axes=("tokens",),
        dtype=torch.int64,
        padding="fill",
        source="caller",
        fill="9",
    ),
    rt.SlotInfo(
        name="scratch",
        line="spec.yaml:24",
        axes=("tokens",),
        dtype=torch.float32,
        padding="none",
        mutable=True,
        source="graph",
    ),
)
