"""Rotations that change with the longest request: held up to there, refused past it."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from hf_models import (
    ALTERNATING,
    COMMON,
    DYNAMIC,
    LAYERS,
    alone,
    pack,
    pools_for,
    prefill,
    random_prompts,
)
from transformers import AutoModelForCausalLM, Gemma3TextConfig, LlamaConfig

from ppcgc.hf.probe import probe, randomize
from ppcgc.hf.rotary import hold_frequencies
from ppcgc.hf.stage import HFStage, build_stage, split
from ppcgc.runtime.errors import BuildError

TWO = [(0, 1), (1, LAYERS)]
MOST = 16
BY_LAYER = {
    "full_attention": DYNAMIC,
    "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
}
SHORT: dict[str, Any] = COMMON | {"max_position_embeddings": MOST}
CONFIGS: dict[str, Any] = {
    "llama": lambda: LlamaConfig(**SHORT, rope_parameters=DYNAMIC),
    "gemma3": lambda: Gemma3TextConfig(
        **SHORT, sliding_window=6, layer_types=ALTERNATING, rope_parameters=BY_LAYER
    ),
}


def dynamic_model(family: str) -> Any:
    model = AutoModelForCausalLM.from_config(
        CONFIGS[family](), attn_implementation="eager", dtype=torch.float32
    ).eval()
    randomize(model, seed=7)
    return model


def serve(stages: list[HFStage], prompts: list[torch.Tensor]) -> torch.Tensor:
    batch = pack(prompts, tokens=48, requests=len(prompts))
    return prefill(stages, pools_for(stages, len(prompts)), batch)


@pytest.mark.parametrize("family", CONFIGS)
def test_up_to_the_original_length_nothing_changes(family: str) -> None:
    """Not even where the model that is split has just had a longer request."""
    model = dynamic_model(family)
    fresh = copy.deepcopy(model)
    prompts = random_prompts([9, MOST, 3])
    expected = torch.stack([alone(fresh, prompt) for prompt in prompts])
    (longer,) = random_prompts([MOST + 8])
    before = alone(fresh, longer)  # the frequencies grow
    assert not torch.allclose(alone(fresh, prompts[1]), expected[1], atol=1e-3)
    for given in (model, fresh):
        stages = split(given, TWO, longest=MOST)
        torch.testing.assert_close(serve(stages, prompts), expected, atol=2e-5, rtol=0)
        # rows that nobody owns may hold any position
        assert not torch.allclose(serve(stages, [longer])[0], before, atol=1e-3)
        torch.testing.assert_close(serve(stages, prompts), expected, atol=2e-5, rtol=0)
    stages = [
        build_stage(model.config, a, b, model.state_dict(), dtype=torch.float32, device="cpu")
        for a, b in TWO
    ]
    torch.testing.assert_close(serve(stages, prompts), expected, atol=2e-5, rtol=0)


def test_a_model_whose_frequencies_were_reset() -> None:
    """It has one buffer by two names then."""
    model = dynamic_model("llama")
    long, short = random_prompts([MOST + 8, 3])
    alone(model, long)
    expected = alone(model, short)
    torch.testing.assert_close(serve(split(model, TWO), [short])[0], expected, atol=2e-5, rtol=0)


@pytest.mark.parametrize("family", CONFIGS)
def test_longer_requests_are_refused(family: str) -> None:
    model = dynamic_model(family)
    with pytest.raises(BuildError, match=r"dynamic rotates .* past 16 .* up to 17 .*longest=16"):
        split(model, TWO, longest=MOST + 1)
    found = probe(model.config)
    assert found.splits
    assert "no request may go past 16 positions (dynamic)" in found.reason


def test_a_family_that_does_not_keep_them() -> None:
    model = torch.nn.Linear(2, 2)
    model.rope_type = "dynamic"  # type: ignore[assignment]  # as a rotary module has it
    with pytest.raises(BuildError, match="Linear: its rotations are dynamic"):
        hold_frequencies(model)
