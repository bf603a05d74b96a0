# ppcgc: generated from specs/gemma3.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:1a34668af6465bf8ef450a33f5b98707f5688b70eb68ae8f5afcd4e2b7154ca1
"""gemma3.decode: every slot as the spec declares it, for captures, reports and checks."""

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
        line="gemma3.yaml:36",
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
        line="gemma3.yaml:37",
        axes=("requests",),
        dtype=torch.int64,
        padding="zero",
        role=rt.Role.INDEX,
        batch="slot_table",
        host=True,
        in_block=True,
        of_state="kv",
    ),
    rt.SlotInfo(
        name="slot_mapping_swa",
        line="gemma3.yaml:38",
        axes=("tokens",),
        dtype=torch.int64,
        padding="zero",
        role=rt.Role.WRITE_INDEX,
        batch="slot_mapping_swa",
        host=True,
        in_block=True,
        of_state="swa_kv",
    ),
    rt.SlotInfo(
        name="slot_table_swa",
        line="gemma3.yaml:40",
        axes=("requests",),
        dtype=torch.int64,
        padding="zero",
        role=rt.Role.INDEX,
        batch="slot_table_swa",
        host=True,
        in_block=True,
        of_state="swa_kv",
    ),
)
