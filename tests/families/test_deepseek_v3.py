"""DeepSeek-V3: keys wider than values (MLA, expanded), a dense layer before layers of experts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hf_family import COMMON, check_every_step, small_model
from transformers import DeepseekV3Config

from generated import deepseek_v3
from ppcgc.hf.kv import KVShape
from ppcgc.hf.stage import split

KV_ROWS, CONTEXT = 20 * 16, 32
ROPE, NOPE, VALUE = 8, 16, 12


def latent_model(device: str) -> Any:
    config = DeepseekV3Config(
        **(COMMON | {"num_key_value_heads": 4, "head_dim": ROPE}),
        q_lora_rank=24,
        kv_lora_rank=16,
        qk_rope_head_dim=ROPE,
        qk_nope_head_dim=NOPE,
        v_head_dim=VALUE,
        n_routed_experts=8,
        num_experts_per_tok=2,
        moe_intermediate_size=32,
        n_group=2,
        topk_group=1,
        first_k_dense_replace=1,
    )
    return small_model(config, device, experts=True)


@pytest.mark.parametrize("cuts", [(), (2,), (1, 3)], ids=["one", "two", "three"])
def test_every_step_equals_the_unsplit_model(cuts: Sequence[int], device: str) -> None:
    model = latent_model(device)
    check_every_step(deepseek_v3, model, cuts, device, kv_rows=KV_ROWS, context=CONTEXT)


def test_the_pool_keeps_expanded_keys_and_values() -> None:
    stage = split(latent_model("cpu"), [(0, 2), (2, 4)])[1]
    assert stage.kv_shapes() == {
        layer: KVShape(heads=4, key_dim=NOPE + ROPE, value_dim=VALUE) for layer in (2, 3)
    }
