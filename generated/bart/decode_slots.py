# ppcgc: generated from specs/bart.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:c21ae249e285e29bfe50dca0ee0f6f306d649b9ed8d9e08eb17aa6ee126d79eb
"""bart.decode: every slot as the spec declares it, for captures, reports and checks."""

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
        line="bart.yaml:41",
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
    rt.SlotInfo(
        name="cross_table",
        line="bart.yaml:42",
        axes=("requests",),
        dtype=torch.int64,
        padding="zero",
        role=rt.Role.INDEX,
        batch="cross_table",
        host=True,
        in_block=True,
        of_state="cross_kv",
    ),
    rt.SlotInfo(
        name="source_lens",
        line="bart.yaml:43",
        axes=("requests",),
        dtype=torch.int32,
        padding="fill",
        role=rt.Role.LENGTHS,
        batch="source_lens",
        host=True,
        in_block=True,
        fill="1",
    ),
)
