# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:189a31b95294779ea8cb21a47bf0f77c1efe7d5be97a228617b6ed2428e9ac79
"""nested_batch.step: every slot as the spec declares it, for captures, reports and checks."""

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
        batch="text.ids",
        host=True,
        in_block=True,
    ),
    rt.SlotInfo(
        name="bias",
        line="spec.yaml:17",
        axes=("tokens",),
        dtype=torch.int64,
        padding="zero",
        batch="spec.info.bias",
        host=True,
        in_block=True,
        absent=1,
    ),
    rt.SlotInfo(
        name="scale",
        line="spec.yaml:18",
        axes=("tokens",),
        dtype=torch.float32,
        padding="zero",
        batch="spec.scale",
        absent=0.5,
    ),
    rt.SlotInfo(
        name="adapter",
        line="spec.yaml:19",
        axes=("tokens",),
        dtype=torch.int64,
        padding="zero",
        batch="lora.ids",
    ),
    rt.SlotInfo(
        name="grid",
        line="spec.yaml:20",
        axes=("images",),
        dtype=torch.int64,
        padding="zero",
        batch="mm.grid",
    ),
    rt.SlotInfo(
        name="whole",
        line="spec.yaml:21",
        axes=(),
        dtype=torch.float32,
        padding="none",
        batch="spec.whole",
        absent=2,
    ),
)
