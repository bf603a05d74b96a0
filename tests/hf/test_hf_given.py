"""What was changed in a model after its config made it is not lost in its stages, but refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hf_models import LAYERS, alone, pack, pools_for, prefill, random_prompts, small_model
from torch import nn

from ppcgc.hf.stage import build_stage, split
from ppcgc.runtime.errors import BuildError

TWO = [(0, 1), (1, LAYERS)]


class _Adapter(nn.Module):
    """A layer and something of low rank beside it."""

    def __init__(self, base_layer: Any) -> None:
        super().__init__()
        self.base_layer = base_layer
        self.lora_a = nn.Linear(base_layer.in_features, 2, bias=False)
        self.lora_b = nn.Linear(2, base_layer.out_features, bias=False)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.base_layer(hidden) + self.lora_b(self.lora_a(hidden))
        return result


class _Doubling(nn.Linear):
    """The tensors of a Linear, and another forward."""

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return 2 * super().forward(hidden)


def head_with_bias(model: Any) -> None:
    model.lm_head = nn.Linear(64, 96, bias=True)


def parameter_beside_a_weight(model: Any) -> None:
    model.model.layers[2].self_attn.q_proj.lora_a = nn.Parameter(torch.zeros(2, 64))


def buffer_beside_a_weight(model: Any) -> None:
    model.model.layers[2].mlp.register_buffer("scale", torch.ones(1), persistent=False)


def lost_norm(model: Any) -> None:
    model.model.norm.weight = None


def adapter(model: Any) -> None:
    mlp = model.model.layers[3].mlp
    mlp.up_proj = _Adapter(mlp.up_proj)


def parametrization(model: Any) -> None:
    nn.utils.parametrizations.weight_norm(model.model.layers[0].mlp.up_proj)


def another_class(model: Any) -> None:
    model.lm_head = _Doubling(64, 96, bias=False)


def another_activation(model: Any) -> None:
    model.model.layers[0].mlp.act_fn = nn.ReLU()


def hook(model: Any) -> None:
    model.model.layers[1].mlp.register_forward_hook(lambda _module, _args, out: out * 2)


def hook_before(model: Any) -> None:
    model.lm_head.register_forward_pre_hook(lambda _module, args: (args[0] * 2,))


def forward_of_one_module(model: Any) -> None:
    norm = model.model.norm
    norm.forward = lambda hidden: type(norm).forward(norm, hidden) * 2


def head_of_fewer_words(model: Any) -> None:
    model.lm_head = nn.Linear(64, 80, bias=False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (head_with_bias, r"1 of its tensors would be in no stage, lm_head\.bias: .* the config"),
        (parameter_beside_a_weight, r"in no stage, model\.layers\.2\.self_attn\.q_proj\.lora_a"),
        (buffer_beside_a_weight, r"in no stage, model\.layers\.2\.mlp\.scale"),
        (lost_norm, r"lacks 1 tensors of those that its config makes, model\.norm\.weight"),
        (adapter, r"layers\.3\.mlp\.up_proj was wrapped or replaced.*_Adapter, .*Linear.*merge"),
        (parametrization, r"layers\.0\.mlp\.up_proj was wrapped or replaced: it is a .*Parametr"),
        (another_class, r"lm_head was wrapped or replaced: it is a .*_Doubling, "),
        (another_activation, r"mlp\.act_fn was wrapped or replaced: it is a .*ReLU, .*SiLU"),
        (hook, r"model\.layers\.1\.mlp \(LlamaMLP\) has forward hooks \(1\).*remove them"),
        (hook_before, r"lm_head \(Linear\) has forward hooks \(1\)"),
        (forward_of_one_module, r"model\.norm \(LlamaRMSNorm\) has a forward of its own"),
        (head_of_fewer_words, r"lm_head\.weight has shape \[80, 64\] and the config makes \[96"),
    ],
)
def test_a_model_that_was_changed(change: Callable[[Any], None], message: str) -> None:
    model = small_model("llama")
    assert len(split(model, TWO)) == 2
    change(model)
    with pytest.raises(BuildError, match=message):
        split(model, TWO)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, where it compiles
def test_wrappers_name_what_they_wrap() -> None:
    model = small_model("llama")
    with pytest.raises(BuildError, match=r"OptimizedModule wraps a LlamaForCausalLM: .*_orig_mod"):
        split(torch.compile(model), TWO)
    with pytest.raises(BuildError, match=r"DataParallel wraps a LlamaForCausalLM: .*its \.module"):
        split(nn.DataParallel(model), TWO)
    with pytest.raises(BuildError, match="and not of a Linear"):
        split(nn.Linear(2, 2), TWO)
    with pytest.raises(BuildError, match="and not of a str"):
        split("a path", TWO)


class AlignDevicesHook:
    """By its name the one of accelerate, which moves inputs to where the weights are."""


def test_what_transformers_and_accelerate_do_themselves_may_stay() -> None:
    model = small_model("llama")
    prompts = random_prompts([9, 4])
    expected = torch.stack([alone(model, prompt) for prompt in prompts])
    model(input_ids=prompts[0][None], output_hidden_states=True)  # leaves hooks that collect them
    assert any(module._forward_hooks for module in model.modules())
    for module in (model, model.model.norm):
        module._hf_hook, module.forward = AlignDevicesHook(), module.forward
    stages = split(model, TWO)
    logits = prefill(stages, pools_for(stages, 2), pack(prompts, tokens=16, requests=2))
    torch.testing.assert_close(logits, expected, atol=2e-5, rtol=0)


def test_a_resized_vocabulary_is_the_config_s_too() -> None:
    model = small_model("llama")
    model.resize_token_embeddings(100, mean_resizing=False)
    prompts = random_prompts([9, 4])
    stages = split(model, TWO)
    logits = prefill(stages, pools_for(stages, 2), pack(prompts, tokens=16, requests=2))
    expected = torch.stack([alone(model, prompt) for prompt in prompts])
    assert logits.shape == (2, 100)
    torch.testing.assert_close(logits, expected, atol=2e-5, rtol=0)


def test_weights_of_wrapped_modules() -> None:
    model = small_model("llama")
    adapter(model)
    with pytest.raises(
        BuildError, match=r"up_proj\.weight for one \(.*up_proj\.base_layer\.weight"
    ):
        build_stage(model.config, *TWO[1], model.state_dict(), dtype=torch.float32, device="cpu")


def test_weights_of_another_vocabulary() -> None:
    model = small_model("llama")
    head_of_fewer_words(model)
    with pytest.raises(BuildError, match=r"stage \[1, 4\): lm_head\.weight has shape \[80, 64\]"):
        build_stage(model.config, *TWO[1], model.state_dict(), dtype=torch.float32, device="cpu")
