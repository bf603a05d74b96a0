# ppcgc: generated from specs/gemma3.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:1a34668af6465bf8ef450a33f5b98707f5688b70eb68ae8f5afcd4e2b7154ca1
"""gemma3.prefill: every slot as the spec declares it, for captures, reports and checks."""

from __future__ import annotations

import torch
from ppcgc import runtime as rt

SLOTS = (
    rt.SlotInfo(
        name="input_ids",
        line="llama_hf.yaml:35",
        axes=("tokens",),
        dtype=torch.int64,
        padding="zero",
        role=rt.Role.INDEX,
        batch="input_ids",
        host=True,
        in_block=True,
    ),
    rt.SlotInfo(
        name="positions",
        line="llama_hf.yaml:36",
        axes=("tokens",),
        dtype=torch.int64,
        padding="zero",
        role=rt.Role.INDEX,
        batch="positions",
        host=True,
        in_block=True,
    ),
    rt.SlotInfo(
        name="slot_mapping",
        line="gemma3.yaml:30",
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
        name="slot_mapping_swa",
        line="gemma3.yaml:31",
        axes=("tokens",),
        dtype=torch.int64,
        padding="zero",
        role=rt.Role.WRITE_INDEX,
        batch="slot_mapping_swa",
        host=True,
        in_block=True,
        of_state="swa_kv",
    ),
)
