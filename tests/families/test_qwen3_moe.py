"""Qwen3-MoE: experts computed in groups, padding rows included."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hf_family import COMMON, check_every_step, small_model
from transformers import Qwen3MoeConfig

from generated import qwen3_moe

KV_ROWS, CONTEXT = 20 * 16, 32


def experts_model(device: str) -> Any:
    config = Qwen3MoeConfig(
        **COMMON,
        num_experts=6,
        num_experts_per_tok=2,
        moe_intermediate_size=32,
        mlp_only_layers=[1],  # one dense layer among them
        norm_topk_prob=True,
    )
    return small_model(config, device, experts=True)


@pytest.mark.parametrize("cuts", [(), (2,), (1, 2)], ids=["one", "two", "three"])
def test_every_step_equals_the_unsplit_model(cuts: Sequence[int], device: str) -> None:
    model = experts_model(device)
    check_every_step(qwen3_moe, model, cuts, device, kv_rows=KV_ROWS, context=CONTEXT)
