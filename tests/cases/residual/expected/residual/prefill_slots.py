# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:576fa7013ef35090361e995f229ce7b930a807defcec26456618bc12251e8df0
"""residual.prefill: every slot as the spec declares it, for captures, reports and checks."""

from __future__ import annotations

import torch
from ppcgc import runtime as rt

SLOTS = (
    rt.SlotInfo(
        name="input_ids",
        line="spec.yaml:26",
        axes=("tokens",),
        dtype=torch.int64,
        padding="zero",
        batch="input_ids",
        host=True,
        in_block=True,
    ),
    rt.SlotInfo(
        name="slot_mapping",
        line="spec.yaml:27",
        axes=("tokens",),
        dtype=torch.int64,
        padding="fill",
        role=rt.Role.WRITE_INDEX,
        batch="slot_mapping",
        host=True,
        in_block=True,
        fill="1",
        of_state="kv",
    ),
    rt.SlotInfo(
        name="cu_seqlens",
        line="spec.yaml:28",
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
        line="spec.yaml:29",
        axes=("requests",),
        dtype=torch.int32,
        padding="zero",
        role=rt.Role.LENGTHS,
        of_axis="tokens",
        batch="seq_lens",
        host=True,
        in_block=True,
    ),
    rt.SlotInfo(
        name="num_tokens",
        line="spec.yaml:30",
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
