# ppcgc: generated from specs/llama_parallel.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:1cf0528eed60b8101cfce9227076c03f5629733e8a71887231aa7eea6de44354
"""llama_parallel.prefill: every slot as the spec declares it, for captures, reports and checks."""

from __future__ import annotations

import torch
from ppcgc import runtime as rt

SLOTS = (
    rt.SlotInfo(
        name="input_ids",
        line="llama.yaml:34",
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
        line="llama.yaml:35",
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
        line="llama.yaml:36",
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
        line="llama.yaml:37",
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
        name="seq_lens",
        line="llama.yaml:38",
        axes=("requests",),
        dtype=torch.int32,
        padding="zero",
        role=rt.Role.LENGTHS,
        batch="seq_lens",
        host=True,
        in_block=True,
    ),
    rt.SlotInfo(
        name="num_tokens",
        line="llama.yaml:39",
        axes=(),
        dtype=torch.int32,
        padding="none",
        role=rt.Role.COUNT,
        of_axis="tokens",
        in_block=True,
        source="compute",
        rule="live.tokens",
    ),
)
