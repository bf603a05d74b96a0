# ppcgc: generated from specs/bench_llama.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:1a9996329bccfba3693523ddf7406001fb97911900169b5cb732c52ddb53c35b
"""bench_llama.prefill: every slot as the spec declares it, for captures, reports and checks."""

from __future__ import annotations

import torch
from ppcgc import runtime as rt

SLOTS = (
    rt.SlotInfo(
        name="positions",
        line="bench_llama.yaml:34",
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
        line="bench_llama.yaml:35",
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
        name="request_rows",
        line="bench_llama.yaml:36",
        axes=("requests",),
        dtype=torch.int64,
        padding="zero",
        batch="request_rows",
        host=True,
        in_block=True,
    ),
    rt.SlotInfo(
        name="seq_lens",
        line="bench_llama.yaml:37",
        axes=("requests",),
        dtype=torch.int32,
        padding="zero",
        role=rt.Role.LENGTHS,
        batch="seq_lens",
        host=True,
        in_block=True,
    ),
    rt.SlotInfo(
        name="prefix_lens",
        line="bench_llama.yaml:38",
        axes=("requests",),
        dtype=torch.int32,
        padding="zero",
        role=rt.Role.LENGTHS,
        batch="prefix_lens",
        host=True,
        in_block=True,
    ),
    rt.SlotInfo(
        name="starts",
        line="bench_llama.yaml:39",
        axes=("requests",),
        dtype=torch.int32,
        padding="zero",
        batch="starts",
        host=True,
        in_block=True,
    ),
    rt.SlotInfo(
        name="cu_seqlens",
        line="bench_llama.yaml:40",
        axes=("requests",),
        dtype=torch.int32,
        padding="repeat_last",
        role=rt.Role.OFFSETS,
        of_axis="tokens",
        batch="cu_seqlens",
        host=True,
        in_block=True,
    ),
)
