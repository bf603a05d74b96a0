# ppcgc: generated from specs/qwen3_vl.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:5c0b7ce280438fd8fe951fd90da2c1bcf5fbdee7f437f27952bf2c2672738b61
"""qwen3_vl.decode: every slot as the spec declares it, for captures, reports and checks."""

from __future__ import annotations

import torch
from ppcgc import runtime as rt

SLOTS = (
    rt.SlotInfo(
        name="input_ids",
        line="llama_hf.yaml:51",
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
        line="qwen3_vl.yaml:48",
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
        line="llama_hf.yaml:53",
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
        name="seq_lens",
        line="llama_hf.yaml:54",
        axes=("requests",),
        dtype=torch.int32,
        padding="zero",
        role=rt.Role.LENGTHS,
        batch="seq_lens",
        host=True,
        in_block=True,
    ),
    rt.SlotInfo(
        name="slot_table",
        line="llama_hf.yaml:55",
        axes=("requests",),
        dtype=torch.int64,
        padding="zero",
        role=rt.Role.INDEX,
        batch="slot_table",
        host=True,
        in_block=True,
        of_state="kv",
    ),
)
