"""Gemma 3 and gpt-oss: sliding layers with pools and write locations of their own.

The layers alternate unevenly, so that cuts make stages with sliding layers alone, with full
layers alone and with both.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import pytest
import torch
from hf_family import COMMON, PATHS, Pipeline, alone, build, check_serving, random_ids, small_model
from sliding_serving import SlidingEngine, sliding_parts
from transformers import Gemma3TextConfig, GptOssConfig

from generated import gemma3, gpt_oss
from ppcgc.hf.stage import split

KV_ROWS, CONTEXT = 20 * 16, 32
WINDOW = 5  # shorter than most prompts
SWA_ROWS = 1 + 8 * WINDOW
KINDS = ["sliding_attention", "sliding_attention", "full_attention", "sliding_attention"]

FAMILIES: dict[str, ModuleType] = {"gemma3": gemma3, "gpt_oss": gpt_oss}


def sliding_model(family: str, device: str) -> Any:
    if family == "gemma3":
        config: Any = Gemma3TextConfig(**COMMON, sliding_window=WINDOW, layer_types=KINDS)
        return small_model(config, device)
    config = GptOssConfig(
        **COMMON,
        sliding_window=WINDOW,
        layer_types=KINDS,
        num_local_experts=4,
        num_experts_per_tok=2,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
    )
    return small_model(config, device, experts=True)


def pipeline_of(
    family: str, model: Any, *, cuts: Sequence[int], device: str, context: int = CONTEXT
) -> Pipeline:
    package = FAMILIES[family]
    return build(
        package,
        model,
        sliding_parts(package, KV_ROWS, SWA_ROWS),
        cuts=cuts,
        device=device,
        kv_rows=KV_ROWS,
        context=context,
        swa_rows=SWA_ROWS,
    )


def engine() -> SlidingEngine:
    return SlidingEngine(rows=KV_ROWS, context=CONTEXT, swa_rows=SWA_ROWS, window=WINDOW)


@pytest.mark.parametrize("cuts", [(), (2,), (2, 3), (1, 3)], ids=["one", "two", "three", "mixed"])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_step_equals_the_unsplit_model(family: str, cuts: Sequence[int], device: str) -> None:
    model = sliding_model(family, device)
    pipeline = pipeline_of(family, model, cuts=cuts, device=device)
    assert check_serving(pipeline, lambda s: alone(model, s.ids), engine()) == PATHS


def test_a_ring_is_written_over_many_times(device: str) -> None:
    model = sliding_model("gemma3", device)
    pipeline = pipeline_of("gemma3", model, cuts=(2,), device=device)
    serving = engine()
    sequence = serving.start(random_ids([3])[0])
    logits = pipeline.step("prefill", serving.prefill([sequence]))
    for _ in range(2 * WINDOW + 2):
        sequence.ids.append(int(logits.argmax(-1)))
        logits = pipeline.step("decode", serving.decode([sequence]))
        torch.testing.assert_close(logits[0], alone(model, sequence.ids), atol=3e-5, rtol=0)


def test_a_prompt_over_capacity_leaves_its_ring_for_the_next_step(device: str) -> None:
    model = sliding_model("gemma3", device)
    pipeline = pipeline_of("gemma3", model, cuts=(2, 3), device=device, context=80)
    serving = SlidingEngine(rows=KV_ROWS, context=80, swa_rows=SWA_ROWS, window=WINDOW)
    sequence = serving.start(random_ids([70])[0])
    batch = serving.prefill([sequence])
    first, *later = pipeline.runners["prefill"]
    handed = first.run(batch)
    for runner in later:
        handed = runner.run(batch, handed)
    assert pipeline.path("prefill") == "eager 70 (over capacity)"
    sequence.ids.append(int(handed.logits[0].argmax()))
    logits = pipeline.step("decode", serving.decode([sequence]))
    torch.testing.assert_close(logits[0], alone(model, sequence.ids), atol=3e-5, rtol=0)


def test_a_stage_has_the_slots_of_its_own_layers() -> None:
    pipeline = pipeline_of("gemma3", sliding_model("gemma3", "cpu"), cuts=(2, 3), device="cpu")
    has = [
        {name for name in ("slot_table", "slot_table_swa") if holds(runner, name)}
        for runner in pipeline.runners["decode"]
    ]
    assert has == [{"slot_table_swa"}, {"slot_table"}, {"slot_table_swa"}]


def holds(runner: Any, name: str) -> bool:
    slots = next(iter(runner.table.values())).slots
    return getattr(slots, name, None) is not None


def test_pools_by_kind_of_layer() -> None:
    first, second = split(sliding_model("gpt_oss", "cpu"), [(0, 2), (2, 4)])
    assert sorted(first.sliding_layers) == [0, 1]
    assert sorted(second.sliding_layers) == [3]
    pool = second.new_pool(40, sliding_rows=7)
    assert [tuple(t.shape) for t in pool.tensors({2})] == [(40, 2, 16)] * 2
    assert [tuple(t.shape) for t in pool.tensors({3})] == [(7, 2, 16)] * 2
    assert [t.shape[0] for t in pool.tensors()] == [40, 40, 7, 7]
    assert {t.shape[0] for t in second.new_pool(40).tensors()} == {40}
