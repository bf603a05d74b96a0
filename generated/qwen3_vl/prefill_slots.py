# ppcgc: generated from specs/qwen3_vl.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:5c0b7ce280438fd8fe951fd90da2c1bcf5fbdee7f437f27952bf2c2672738b61
"""qwen3_vl.prefill: every slot as the spec declares it, for captures, reports and checks."""

from __future__ import annotations

import torch
from ppcgc import runtime as rt

SLOTS = (
    rt.SlotInfo(
        name="positions",
        line="qwen3_vl.yaml:34",
        axes=("tokens",),
        dtype=torch.int64,
        padding="zero",
        role=rt.Role.INDEX,
        batch="positions",
        host=True,
        in_block=True,
        dim=1,
    ),
    rt.SlotInfo(
        name="slot_mapping",
        line="llama_hf.yaml:37",
        axes=("tokens",),
        dtype=torch.int64,
        padding="zero",
        role=rt.Role.WRITE_INDEX,
        batch="slot_mapping",
        host=True,
        in_block=True,
        of_state="kv",
    ),
    rt.SlotInfo(
        name="cu_seqlens",
        line="llama_hf.yaml:38",
        axes=("requests",),
        dtype=torch.int32,
        padding="repeat_last",
        role=rt.Role.OFFSETS,
        of_axis="tokens",
        batch="cu_seqlens",
        host=True,
        in_block=True,
    ),
    rt.SlotInfo(
        name="last_token",
        line="llama_hf.yaml:39",
        axes=("requests",),
        dtype=torch.int64,
        padding="zero",
        role=rt.Role.INDEX,
        of_axis="tokens",
        batch="last_token",
        host=True,
        in_block=True,
    ),
    rt.SlotInfo(
        name="inputs_embeds",
        line="qwen3_vl.yaml:36",
        axes=("tokens",),
        dtype=None,
        padding="zero",
        source="caller",
    ),
    rt.SlotInfo(
        name="deepstack",
        line="qwen3_vl.yaml:37",
        axes=("tokens",),
        dtype=None,
        padding="zero",
        batch="deepstack",
        dim=1,
        absent=0,
    ),
)
