"""Tied weights: what the weights are counts, not what the config says of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from hf_models import LAYERS, alone, pack, pools_for, prefill, random_prompts, small_model
from torch import nn
from transformers import AutoModelForCausalLM

from ppcgc.hf.stage import HFStage, build_stage, split, stage_tensor_names

TWO = [(0, 1), (1, LAYERS)]
TOLERANCE = 2e-5
HEAD, EMBEDDING = "lm_head.weight", "model.embed_tokens.weight"


def untied_model() -> Any:
    """A model whose config says tied and whose head is another tensor than its embedding."""
    model = small_model("llama-tied")
    head = torch.randn(model.lm_head.weight.shape, generator=torch.Generator().manual_seed(1))
    model.lm_head.weight = nn.Parameter(head * 0.15)
    assert model.config.tie_word_embeddings
    return model


def check(stages: list[HFStage], model: Any) -> None:
    prompts = random_prompts((9, 1, 14))
    logits = prefill(stages, pools_for(stages, 3), pack(prompts, tokens=24, requests=3))
    expected = torch.stack([alone(model, prompt) for prompt in prompts])
    torch.testing.assert_close(logits, expected, atol=TOLERANCE, rtol=0)


def built(model: Any, tensors: dict[str, torch.Tensor], ranges: Any = TWO) -> list[HFStage]:
    """Stages that got only what :func:`stage_tensor_names` says that they need."""
    stages = []
    for start, end in ranges:
        names = stage_tensor_names(model.config, start, end, available=tensors)
        part = {name: tensors[name] for name in names}
        stages.append(
            build_stage(model.config, start, end, part, dtype=torch.float32, device="cpu")
        )
    return stages


def test_a_head_of_its_own_in_a_tied_config() -> None:
    model = untied_model()
    check(split(model, TWO), model)
    check(built(model, model.state_dict()), model)


def test_weights_that_were_loaded_untied(tmp_path: Path) -> None:
    saved = small_model("llama")
    saved.save_pretrained(tmp_path)
    config = saved.config
    config.tie_word_embeddings = True
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path, config=config, dtype=torch.float32)
    assert not torch.equal(loaded.lm_head.weight, loaded.model.embed_tokens.weight)
    check(split(loaded.eval(), TWO), saved)


def test_tied_weights_in_an_untied_config() -> None:
    model = small_model("llama")
    model.lm_head.weight = model.model.embed_tokens.weight
    check(split(model, TWO), model)
    check(built(model, model.state_dict()), model)


@pytest.mark.parametrize("kept", [HEAD, EMBEDDING])
def test_one_tensor_of_a_tie_is_enough(kept: str) -> None:
    model = small_model("llama-tied")
    tensors = model.state_dict()
    part = {name: t for name, t in tensors.items() if name == kept or name not in (HEAD, EMBEDDING)}
    check(built(model, part), model)
    assert kept in stage_tensor_names(model.config, *TWO[1], available=part)


def test_names_without_weights_to_ask_are_the_config_s() -> None:
    names = stage_tensor_names(small_model("llama-tied").config, *TWO[1])
    assert EMBEDDING in names
    assert HEAD not in names


def test_tied_weights_are_cast_once() -> None:
    model = small_model("llama-tied")
    stage = build_stage(
        model.config, 0, LAYERS, model.state_dict(), dtype=torch.bfloat16, device="cpu"
    )
    parameters = dict(stage.model.named_parameters())
    assert parameters[HEAD].data_ptr() == parameters[EMBEDDING].data_ptr()
