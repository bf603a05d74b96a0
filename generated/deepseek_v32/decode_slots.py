# ppcgc: generated from specs/deepseek_v32.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:fc823acf29b4d0090ee2a918ec5727ccf12dade4a6bbbce2bb21f665591d8321
"""deepseek_v32.decode: every slot as the spec declares it, for captures, reports and checks."""

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
        line="llama_hf.yaml:52",
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
