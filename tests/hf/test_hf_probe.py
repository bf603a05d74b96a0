"""The probe must tell families that can be cut from those that cannot."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hf_models import CONFIGS
from torch import nn
from transformers import (
    AutoConfig,
    GraniteConfig,
    LlamaConfig,
    LlamaForCausalLM,
    OPTConfig,
)

from ppcgc.hf.probe import probe, shrink


@pytest.mark.parametrize("family", ["llama", "gemma3", "qwen3-moe"])
def test_families_that_can_be_cut(family: str) -> None:
    result = probe(CONFIGS[family]())
    assert result.splits, str(result)
    assert result.logit_scale > 1
    assert result.packing_error < 1e-4


def test_a_large_config_is_made_small_and_keeps_its_switches() -> None:
    small = shrink(LlamaConfig(attention_bias=True, num_hidden_layers=32))
    assert (small.num_hidden_layers, small.hidden_size, small.attention_bias) == (8, 64, True)
    assert small.num_key_value_heads == small.num_attention_heads  # as in the config given


def test_granite_multiplies_embeds_in_its_forward() -> None:
    result = probe(GraniteConfig(embedding_multiplier=12.0))
    assert not result.splits
    assert "by a factor of 12" in result.reason
    assert result.split_error > 0.1
    assert str(result).startswith("granite cannot be cut into stages")
    assert probe(GraniteConfig(embedding_multiplier=1.0)).splits


def test_another_layout_is_reported_and_not_raised() -> None:
    result = probe(OPTConfig())
    assert not result.splits
    assert result.split_error == float("inf")
    assert "pipeline plan" in result.reason


@pytest.mark.parametrize("family", ["bart", "marian"])
def test_a_plan_is_asked_before_anything_runs(family: str) -> None:
    """These do not run on the probe's prompts, which is not why they cannot be cut."""
    assert "its pipeline plan" in probe(AutoConfig.for_model(family)).reason


def test_two_attentions_in_a_layer() -> None:
    """LongCat's layers are half as many as the config says, and attend under two ids each."""
    result = probe(
        AutoConfig.for_model(
            "longcat_flash",
            vocab_size=96,
            hidden_size=64,
            ffn_hidden_size=96,
            expert_ffn_hidden_size=32,
            num_layers=4,
            num_attention_heads=4,
            q_lora_rank=32,
            kv_lora_rank=16,
            qk_nope_head_dim=16,
            qk_rope_head_dim=8,
            v_head_dim=16,
            n_routed_experts=4,
            zero_expert_num=2,
            moe_topk=2,
        )
    )
    assert not result.splits
    assert "layers [0, 4) attend under the ids [4, 5, 6, 7]" in result.reason


def test_right_numbers_that_no_graph_can_hold() -> None:
    """JetMoE's experts read on the host how many rows each of them has."""
    result = probe(AutoConfig.for_model("jetmoe", kv_channels=16))
    assert not result.splits
    assert result.split_error + result.packing_error + result.decode_error < 1e-3
    assert "no graph can hold its forward: Tensor.tolist()" in result.reason


class _MixingNorm(nn.Module):
    """Subtracts the mean over all rows, as nothing in a packed batch may."""

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return hidden - hidden.mean(dim=1, keepdim=True)


def test_rows_mixed_outside_of_attention_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def with_mixing(self: Any, config: Any) -> None:
        original(self, config)
        self.model.norm = _MixingNorm()

    original = LlamaForCausalLM.__init__
    monkeypatch.setattr(LlamaForCausalLM, "__init__", with_mixing)
    result = probe(CONFIGS["llama"]())
    assert not result.splits
    assert "mixes rows outside of the attention hook" in result.reason
