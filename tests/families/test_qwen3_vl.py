"""Qwen3-VL's text decoder: three rows of positions, composed embeddings, features handed on."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import torch
from hf_family import (
    COMMON,
    PATHS,
    Pipeline,
    build_runners,
    check_serving,
    poisoned,
    random_ids,
)
from torch import Tensor
from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration
from vision_serving import Image, VisionEngine, VisionPrefillBatch, random_image, seen

from generated import qwen3_vl
from ppcgc.hf.deepstack import DeepstackDecode, deepstack_prefill_module, split_text_decoder
from ppcgc.hf.probe import randomize

KV_ROWS, CONTEXT = 20 * 16, 32
HIDDEN = COMMON["hidden_size"]
DEEPSTACK = 3  # of 4 layers
IMAGE_TOKEN = 90

TEXT: dict[str, Any] = COMMON | {
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [4, 2, 2]}
}
VISION: dict[str, Any] = {
    "depth": 3,
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_heads": 2,
    "out_hidden_size": HIDDEN,
    "patch_size": 4,
    "num_position_embeddings": 16,
    "deepstack_visual_indexes": [0, 1, 2],
}

CUTS = [(), (2,), (3,), (1, 2), (1, 3)]


def vision_model(device: str) -> Any:
    config = Qwen3VLConfig(
        text_config=TEXT,
        vision_config=VISION,
        image_token_id=IMAGE_TOKEN,
        video_token_id=IMAGE_TOKEN + 1,
        vision_start_token_id=IMAGE_TOKEN + 2,
        vision_end_token_id=IMAGE_TOKEN + 3,
    )
    config._attn_implementation = "eager"
    model = Qwen3VLForConditionalGeneration(config).eval()
    randomize(model, seed=7)
    return model.to(device)


def pipeline_of(model: Any, cuts: Sequence[int], device: str) -> Pipeline:
    sizes = qwen3_vl.Dims.from_config(
        model.config, kv_rows=KV_ROWS, context=CONTEXT, deepstack=DEEPSTACK
    )
    parts = []
    for stage in split_text_decoder(model, list(pairwise([0, *cuts, sizes.layer_count]))):
        pool = poisoned(stage.new_pool(KV_ROWS))
        modules = {
            "prefill": deepstack_prefill_module(stage, pool),
            "decode": DeepstackDecode(stage, pool),
        }
        parts.append((stage, modules, qwen3_vl.State(kv=pool.tensors())))
    pipeline = build_runners(qwen3_vl, sizes, parts, dtype=model.dtype, device=device)
    return replace(pipeline, before_finish=compose)


def compose(step: Any, batch: Any) -> None:
    """The caller's window: input embeddings of the live tokens."""
    if isinstance(batch, VisionPrefillBatch):
        step.slots.inputs_embeds[: batch.num_tokens].copy_(batch.embeds)


def engine_of(model: Any) -> VisionEngine:
    """Of the sequences of ``check_serving`` three of the first five have an image."""
    images = [
        random_image(2, 2, 2, hidden=HIDDEN, layers=DEEPSTACK),
        None,
        random_image(4, 2, 3, hidden=HIDDEN, layers=DEEPSTACK),
        random_image(1, 3, 4, hidden=HIDDEN, layers=DEEPSTACK),
        None,
        None,
        None,
    ]
    return VisionEngine(model, images, rows=KV_ROWS, context=CONTEXT)


@pytest.mark.parametrize("cuts", CUTS, ids=str)
def test_every_step_equals_the_unsplit_model(cuts: Sequence[int], device: str) -> None:
    model = vision_model(device)
    pipeline = pipeline_of(model, cuts, device)
    paths = check_serving(pipeline, lambda s: seen(model, s), engine_of(model))
    assert paths == PATHS


def test_features_are_handed_on_as_far_as_a_layer_takes_some() -> None:
    pipeline = pipeline_of(vision_model("cpu"), (1, 3), "cpu")
    _, middle, last = pipeline.runners["prefill"]
    bucket = next(iter(middle.table))
    assert middle.table[bucket].boundary.deepstack.shape == (2, bucket.tokens, HIDDEN)
    assert last.table[bucket].boundary.deepstack is None


def test_a_prompt_without_images_gets_no_features_of_an_earlier_one(device: str) -> None:
    model = vision_model(device)
    pipeline = pipeline_of(model, (2,), device)
    engine = engine_of(model)
    pipeline.step("prefill", engine.prefill([engine.start(ids) for ids in random_ids((9, 4))]))
    first = pipeline.runners["prefill"][0]
    slots = first.table[first.last_step.choice.padded].slots
    assert slots.deepstack.any()
    text = replace(engine.start(random_ids((14,))[0]), image=None)
    logits = pipeline.step("prefill", engine.prefill([text]))
    assert not slots.deepstack.any()
    torch.testing.assert_close(logits[0], seen(model, text), atol=3e-5, rtol=0)


def test_each_row_of_positions_counts() -> None:
    model = vision_model("cpu")
    pipeline = pipeline_of(model, (2,), "cpu")
    engine = engine_of(model)
    batch = engine.prefill([engine.start(ids) for ids in random_ids((9, 4))])
    logits = pipeline.step("prefill", batch)
    for row in range(3):
        moved = batch.positions.clone()
        moved[row] += torch.arange(moved.shape[1])
        other: Tensor = pipeline.step("prefill", replace(batch, positions=moved))
        assert (other - logits).abs().max() > 1e-2


def test_a_prompt_over_capacity_is_composed_in_the_same_window(device: str) -> None:
    model = vision_model(device)
    pipeline = pipeline_of(model, (1, 2), device)
    engine = engine_of(model)
    sequence = engine.start(random_ids((70,))[0])
    batch = engine.prefill([sequence])
    first, *later = pipeline.runners["prefill"]
    begun = first.begin(batch)
    compose(begun, batch)
    handed = first.finish(begun)
    for runner in later:
        handed = runner.run(batch, handed)
    assert pipeline.path("prefill") == "eager 70 (over capacity)"
    torch.testing.assert_close(handed.logits[0], seen(model, sequence), atol=3e-5, rtol=0)


def test_pixels_through_the_models_own_vision_tower(device: str) -> None:
    model = vision_model(device)
    if "mm_token_type_ids" not in inspect.signature(model.forward).parameters:
        pytest.skip("this transformers finds images by other inputs")
    pipeline = pipeline_of(model, (1, 2), device)
    grid = torch.tensor([[1, 4, 8]], device=device)  # patches; 2 x 2 of them make a token
    generator = torch.Generator().manual_seed(5)
    pixels = torch.randn(32, 3 * 2 * 4 * 4, generator=generator).to(device)
    ids = [7, 3, *[IMAGE_TOKEN] * 8, 11, 5]
    with torch.no_grad():
        tower = model.model.visual(pixels, grid_thw=grid, return_dict=True)
        flat = torch.tensor([ids], device=device)
        expected = model(
            input_ids=flat,
            pixel_values=pixels,
            image_grid_thw=grid,
            mm_token_type_ids=(flat == IMAGE_TOKEN).int(),
        ).logits[0, -1]
    image = Image(
        at=2,
        rows=2,
        columns=4,
        embeds=tower.pooler_output,
        deep=torch.stack(list(tower.deepstack_features)),
    )
    engine = VisionEngine(model, [image], rows=KV_ROWS, context=CONTEXT)
    logits = pipeline.step("prefill", engine.prefill([engine.start(ids)]))
    torch.testing.assert_close(logits[0], expected, atol=3e-5, rtol=0)


def test_weights_are_the_models_own() -> None:
    model = vision_model("cpu")
    theirs = {parameter.data_ptr() for parameter in model.parameters()}
    for stage in split_text_decoder(model, [(0, 1), (1, 4)]):
        assert {parameter.data_ptr() for parameter in stage.parameters()} <= theirs
    assert all(parameter.requires_grad for parameter in model.parameters())
    assert model.config.text_config._attn_implementation == "eager"
