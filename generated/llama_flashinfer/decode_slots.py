# ppcgc: generated from specs/llama_flashinfer.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:d6bfb3bebb39dea1a74622641c924c00b0979f03b1d1b4fb6ce75ebab6e1f7e7
"""llama_flashinfer.decode: every slot as the spec declares it, for captures, reports and checks."""

from __future__ import annotations

import torch
from ppcgc import runtime as rt

SLOTS = (
    rt.SlotInfo(
        name="input_ids",
        line="llama.yaml:52",
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
        line="llama.yaml:53",
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
        line="llama.yaml:54",
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
        name="num_tokens",
        line="llama.yaml:57",
        axes=(),
        dtype=torch.int32,
        padding="none",
        role=rt.Role.COUNT,
        of_axis="tokens",
        in_block=True,
        source="compute",
        rule="live.tokens",
    ),
    rt.SlotInfo(
        name="page_indptr",
        line="llama_flashinfer.yaml:44",
        axes=("requests",),
        dtype=torch.int32,
        padding="repeat_last",
        role=rt.Role.OFFSETS,
        of_axis="pages",
        batch="page_indptr",
        host=True,
        host_only=True,
    ),
    rt.SlotInfo(
        name="page_indices",
        line="llama_flashinfer.yaml:45",
        axes=("pages",),
        dtype=torch.int64,
        padding="zero",
        role=rt.Role.INDEX,
        batch="page_indices",
        host=True,
        in_block=True,
    ),
    rt.SlotInfo(
        name="last_page_len",
        line="llama_flashinfer.yaml:46",
        axes=("requests",),
        dtype=torch.int32,
        padding="fill",
        role=rt.Role.LENGTHS,
        batch="last_page_len",
        host=True,
        host_only=True,
        fill="1",
    ),
)
