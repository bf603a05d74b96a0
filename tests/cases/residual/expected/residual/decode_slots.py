# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:576fa7013ef35090361e995f229ce7b930a807defcec26456618bc12251e8df0
"""residual.decode: every slot as the spec declares it, for captures, reports and checks."""

from __future__ import annotations

import torch
from ppcgc import runtime as rt

SLOTS = (
    rt.SlotInfo(
        name="input_ids",
        line="spec.yaml:40",
        axes=("tokens",),
        dtype=torch.int64,
        padding="zero",
        batch="input_ids",
        host=True,
        in_block=True,
    ),
    rt.SlotInfo(
        name="slot_mapping",
        line="spec.yaml:41",
        axes=("tokens",),
        dtype=torch.int64,
        padding="zero",
        role=rt.Role.WRITE_INDEX,
        batch="slot_mapping",
        of_state="kv",
    ),
    rt.SlotInfo(
        name="slot_table",
        line="spec.yaml:42",
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
        name="seq_lens",
        line="spec.yaml:43",
        axes=("requests",),
        dtype=torch.int32,
        padding="zero",
        role=rt.Role.LENGTHS,
        batch="seq_lens",
        host=True,
        in_block=True,
    ),
)
