# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:3c5989f596772bebbe05153ede4982a22e3a42d6bc42f272be8dc574803c1086
"""derived_axes.verify: every slot as the spec declares it, for captures, reports and checks."""

from __future__ import annotations

import torch
from ppcgc import runtime as rt

SLOTS = (
    rt.SlotInfo(
        name="input_ids",
        line="spec.yaml:20",
        axes=("tokens",),
        dtype=torch.int64,
        padding="zero",
        batch="input_ids",
        host=True,
        in_block=True,
    ),
    rt.SlotInfo(
        name="lengths",
        line="spec.yaml:21",
        axes=("requests",),
        dtype=torch.int32,
        padding="fill",
        batch="lengths",
        host=True,
        in_block=True,
        fill="1 if live.requests > 2 else 0",
    ),
    rt.SlotInfo(
        name="table",
        line="spec.yaml:22",
        axes=("pages",),
        dtype=torch.int32,
        padding="zero",
        batch="table",
        host=True,
        in_block=True,
    ),
    rt.SlotInfo(
        name="half",
        line="spec.yaml:23",
        axes=("halves",),
        dtype=torch.int32,
        padding="zero",
        batch="half",
    ),
)
