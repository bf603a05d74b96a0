"""Families that a stage would serve wrongly are refused where it is built, with the reason."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from ppcgc.hf.hook import ATTENTION_NAME, _attend, attending
from ppcgc.hf.probe import probe, randomize
from ppcgc.hf.stage import build_stage, split
from ppcgc.runtime.errors import BuildError

SIZES = {
    "vocab_size": 96,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "pad_token_id": None,
    "bos_token_id": None,
    "eos_token_id": None,
}
LONG = {
    "rope_type": "longrope",
    "rope_theta": 1e4,
    "short_factor": [1.0] * 8,
    "long_factor": [2.0] * 8,
}


def small(family: str, **more: Any) -> Any:
    config = AutoConfig.for_model(family, **SIZES | more)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    randomize(model, seed=7)
    return model


def test_a_layer_that_attends_twice() -> None:
    """DiffLlama: the second call's values would be written over the first's."""
    (stage,) = split(small("diffllama"), [(0, 4)])
    with pytest.raises(BuildError, match=r"layers \[0, 1, 2, 3\] attend more than once"):
        stage.new_pool(8)
    assert not probe(AutoConfig.for_model("diffllama", **SIZES)).splits


@pytest.mark.parametrize("name", ["position_bias", "block_indices", "sinks"])
def test_an_argument_that_would_change_what_is_attended_to(name: str) -> None:
    rows = torch.zeros(1, 2, 3, 4)
    given: dict[str, Any] = {
        name: torch.zeros(3),
        "position_ids": torch.zeros(1, 3),
        "use_cache": False,
    }
    with (
        attending(object()),  # type: ignore[arg-type]  # not asked
        pytest.raises(BuildError, match=f"{ATTENTION_NAME}.*Identity gives {name}, which change"),
    ):
        _attend(torch.nn.Identity(), rows, rows, rows, None, **given)


BIDIRECTIONAL = [
    pytest.param(
        ("gemma3_text", {"head_dim": 16, "use_bidirectional_attention": True}), id="gemma3"
    ),
    pytest.param(("llama", {"is_causal": False}), id="config"),
]


@pytest.mark.parametrize("given", BIDIRECTIONAL)
def test_tokens_that_see_those_that_follow(given: tuple[str, dict[str, Any]]) -> None:
    """The unsplit model's first logits change with its last token; a stage's could not."""
    family, more = given
    model = small(family, **more)
    ids = torch.tensor([[5, 6, 7], [5, 6, 8]])
    with torch.no_grad():
        first, other = model(input_ids=ids).logits[:, 0]
    assert not torch.allclose(first, other, atol=1e-3)
    (stage,) = split(model, [(0, 4)])
    with pytest.raises(BuildError, match=r"Attention is not causal.*cannot be a stage"):
        stage.new_pool(8)
    assert "is not causal" in probe(model.config).reason


def test_a_call_s_own_flag_decides_whether_it_is_causal() -> None:
    rows = torch.zeros(1, 2, 3, 4)
    module = torch.nn.Identity()
    with (
        attending(object()),  # type: ignore[arg-type]  # not asked
        pytest.raises(BuildError, match="Identity is not causal"),
    ):
        _attend(module, rows, rows, rows, None, is_causal=False)


@pytest.mark.parametrize("longest", [None, 17])
def test_requests_that_would_turn_their_neighbours(longest: int | None) -> None:
    """longrope takes its factors by the longest request of a batch."""
    model = small("phi3", original_max_position_embeddings=16, rope_parameters=LONG)
    with pytest.raises(BuildError, match=r"a request past 16 positions .* Say longest=16 or less"):
        split(model, [(0, 4)], longest=longest)
    with pytest.raises(BuildError, match="longest=16"):
        build_stage(model.config, 0, 4, {}, dtype=torch.float32, device="cpu", longest=longest)
    assert len(split(model, [(0, 2), (2, 4)], longest=16)) == 2
    found = probe(model.config)
    assert found.splits
    assert "no request may go past 16 positions (longrope)" in found.reason


def test_errors_of_a_family_s_own_code_are_refusals() -> None:
    shared = small(
        "gemma4_text",
        head_dim=16,
        sliding_window=6,
        layer_types=["sliding_attention", "full_attention"] * 2,
        num_kv_shared_layers=0,
        hidden_size_per_layer_input=8,
        vocab_size_per_layer_input=96,
    )
    last = split(shared, [(0, 2), (2, 4)])[1]
    with pytest.raises(BuildError, match=r"does not run on layers \[2, 4\) alone \(AttributeError"):
        last.new_pool(8)


def test_weights_that_a_family_keeps_in_float32_stay_so() -> None:
    model = small(
        "glm4_moe",
        n_routed_experts=4,
        moe_intermediate_size=32,
        head_dim=16,
        first_k_dense_replace=1,
    )
    stage = build_stage(model.config, 2, 4, model.state_dict(), dtype=torch.bfloat16, device="cpu")
    kept = {
        name.rpartition("layers.")[2]
        for name, tensor in stage.model.state_dict().items()
        if tensor.dtype is torch.float32
    }
    gates = {f"{layer}.mlp.gate.weight" for layer in (2, 3)}
    assert kept == gates | {f"{layer}.mlp.gate.e_score_correction_bias" for layer in (2, 3)}


def test_a_pool_has_the_stage_s_dtype_whatever_its_first_weight_has() -> None:
    _, last = split(small("llama").to(torch.bfloat16), [(0, 2), (2, 4)])
    # as a family with sinks in float32 has them
    last.register_parameter("sinks", torch.nn.Parameter(torch.zeros(4), requires_grad=False))
    assert next(last.parameters()).dtype is torch.float32
    assert {tensor.dtype for tensor in last.new_pool(4).tensors()} == {torch.bfloat16}


@pytest.mark.parametrize("family", ["gptj", "cwm"])
def test_a_probe_s_no_is_about_the_family(family: str) -> None:
    """Sizes by other names, tokens that must be numbers: the small model is made all the same."""
    assert "no small model of it could be made" not in probe(AutoConfig.for_model(family)).reason


def test_a_config_that_cannot_be_made_small_says_so() -> None:
    found = probe(
        AutoConfig.for_model(
            "phi3", rope_parameters=LONG | {"short_factor": [1.0] * 48, "long_factor": [1.0] * 48}
        )
    )
    assert not found.splits
    assert "which tells nothing of the family: give a config" in found.reason
