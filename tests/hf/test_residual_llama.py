"""The reference Llama with a separate residual against transformers' own."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hf_models import LAYERS, alone, next_tokens, pack, pools_for, random_prompts, small_model

from examples.models.residual_llama import ResidualLlamaStage

LENGTHS = (9, 1, 14)


def through(modules: list[Any], batch: Any) -> torch.Tensor:
    handed = None
    for module in modules:
        handed = module(
            input_ids=batch.input_ids if handed is None else None,
            positions=batch.positions,
            batch=batch,
            pp_proxy_tensors=handed,
        )
    assert isinstance(handed, torch.Tensor)
    return handed


@pytest.mark.parametrize("family", ["llama", "llama-tied"])
@pytest.mark.parametrize(
    "ranges", [[(0, LAYERS)], [(0, 1), (1, LAYERS)], [(0, 1), (1, 3), (3, LAYERS)]]
)
def test_equals_the_unsplit_model(family: str, ranges: list[tuple[int, int]]) -> None:
    model = small_model(family)
    stages = [
        ResidualLlamaStage.from_hf(model.config, model.state_dict(), start, end)
        for start, end in ranges
    ]
    pools = pools_for(stages, sequences=3)
    prompts = random_prompts(LENGTHS)
    expected = torch.stack([alone(model, prompt) for prompt in prompts])
    batch = pack(prompts, tokens=32, requests=4)
    pairs = list(zip(stages, pools, strict=True))
    hidden = through([stage.prefill(pool) for stage, pool in pairs], batch)
    assert hidden.shape == (32, 64)
    logits = stages[-1].logits(hidden[batch.last_token[:3]])
    torch.testing.assert_close(logits, expected, atol=2e-5, rtol=0)
    chosen = expected.argmax(-1)
    following = torch.stack(
        [alone(model, torch.cat([p, t[None]])) for p, t in zip(prompts, chosen, strict=True)]
    )
    step = next_tokens(chosen.tolist(), LENGTHS, requests=4)
    hidden = through([stage.decode(pool) for stage, pool in pairs], step)
    torch.testing.assert_close(stages[-1].logits(hidden[:3]), following, atol=2e-5, rtol=0)


def test_stages_hand_over_hidden_states_and_residual_unadded() -> None:
    model = small_model("llama")
    stage = ResidualLlamaStage.from_hf(model.config, model.state_dict(), 0, 2)
    batch = pack(random_prompts([5]), tokens=8, requests=1)
    handed = stage.prefill(pools_for([stage], sequences=1)[0])(
        input_ids=batch.input_ids, positions=batch.positions, batch=batch
    )
    assert set(handed) == {"hidden_states", "residual"}
    with torch.no_grad():
        outputs = model.model(input_ids=batch.input_ids[None, :5], output_hidden_states=True)
    together = (handed["hidden_states"] + handed["residual"])[:5]
    torch.testing.assert_close(together, outputs.hidden_states[2][0], atol=2e-5, rtol=0)
