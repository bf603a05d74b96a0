# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:1e4305ee185251b0d581b9816b805fe79e4b5279f68fcee4c8dec058a34ec0b5
"""long_names.run_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_: every slot as the spec
declares it, for captures, reports and checks.
"""

from __future__ import annotations

import torch
from ppcgc import runtime as rt

SLOTS = (
    rt.SlotInfo(
        name="ids_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
        line="spec.yaml:21",
        axes=("tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",),
        dtype=torch.int64,
        padding="zero",
        role=rt.Role.WRITE_INDEX,
        batch="abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcde.ids_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
        host=True,
        in_block=True,
        absent=0,
        of_state="st_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
    ),
    rt.SlotInfo(
        name="cu_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
        line="spec.yaml:22",
        axes=("req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",),
        dtype=torch.int32,
        padding="repeat_last",
        role=rt.Role.OFFSETS,
        of_axis="tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
        batch="cu_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
        host=True,
        in_block=True,
    ),
    rt.SlotInfo(
        name="grp_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_.mem_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
        line="spec.yaml:23",
        axes=("tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",),
        dtype=None,
        padding="fill",
        batch="mem_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
        fill="live.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ + padded.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
    ),
    rt.SlotInfo(
        name="num_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
        line="spec.yaml:24",
        axes=("tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",),
        dtype=torch.int32,
        padding="none",
        in_block=True,
        source="compute",
        rule="row.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ * live.tok_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ + live.req_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
    ),
)
