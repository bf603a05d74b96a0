"""Stages against the unsplit model, which runs one sequence at a time with its own attention."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from hf_models import (
    CONFIGS,
    LAYERS,
    Prefill,
    alone,
    decode,
    next_tokens,
    pack,
    pools_for,
    prefill,
    random_prompts,
    small_model,
)
from transformers import AutoModelForCausalLM

from ppcgc.hf.probe import probe
from ppcgc.hf.runners import HFDecode, HFPrefill, HFPrefillLast
from ppcgc.hf.stage import build_stage, split, stage_tensor_names
from ppcgc.runtime.errors import BuildError, DimError, LayerError

LENGTHS = (9, 1, 14)
TOLERANCE = 2e-5
TWO = [(0, 1), (1, LAYERS)]
THREE = [(0, 1), (1, 3), (3, LAYERS)]


@pytest.mark.parametrize("family", CONFIGS)
def test_prefill_and_decode_equal_the_unsplit_model(family: str) -> None:
    model = small_model(family)
    prompts = random_prompts(LENGTHS)
    expected = torch.stack([alone(model, prompt) for prompt in prompts])
    chosen = expected.argmax(-1)
    following = torch.stack(
        [alone(model, torch.cat([p, t[None]])) for p, t in zip(prompts, chosen, strict=True)]
    )
    assert expected.abs().max() > 1  # else a wrong mask would hide in the tolerance
    for ranges in (TWO, THREE):
        stages = split(model, ranges)
        pools = pools_for(stages, sequences=len(prompts))
        logits = prefill(stages, pools, pack(prompts, tokens=32, requests=4))
        assert logits.shape == (4, expected.shape[1])
        torch.testing.assert_close(logits[:3], expected, atol=TOLERANCE, rtol=0)
        step = decode(stages, pools, next_tokens(chosen.tolist(), LENGTHS, requests=4))
        torch.testing.assert_close(step[:3], following, atol=TOLERANCE, rtol=0)
        assert torch.isfinite(logits).all()
        assert torch.isfinite(step).all()


def test_one_stage_is_the_whole_model() -> None:
    model = small_model("llama")
    prompts = random_prompts(LENGTHS)
    stages = split(model, [(0, LAYERS)])
    logits = prefill(stages, pools_for(stages, sequences=3), pack(prompts, tokens=24, requests=3))
    expected = torch.stack([alone(model, prompt) for prompt in prompts])
    torch.testing.assert_close(logits, expected, atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("family", ["llama", "gemma3", "gpt-oss"])
def test_rows_that_no_sequence_owns_change_nothing(family: str) -> None:
    stages = split(small_model(family), TWO)
    prompts = random_prompts(LENGTHS)
    results = []
    for stale in (0, 77):
        pools = pools_for(stages, sequences=3)
        results.append(prefill(stages, pools, pack(prompts, tokens=32, requests=5, stale=stale)))
        for pool in pools:
            for tensor in pool.tensors():
                tensor[0] = -stale * 100.0  # the padding row, whatever is there
        results.append(decode(stages, pools, next_tokens([5, 6, 7], LENGTHS, requests=8))[:3])
    # the experts' products are of as many rows as chose them, stale ones among them: they round
    # differently on some processors; a stale row that got through would be off by its 77s
    for one, other in zip(results[:2], results[2:], strict=True):
        torch.testing.assert_close(one[:3], other[:3], atol=1e-5, rtol=1e-5)


def test_a_neighbour_in_the_pack_changes_nothing() -> None:
    stages = split(small_model("llama"), TWO)
    first, second, third = random_prompts(LENGTHS)
    other = (third + 1) % 90
    logits = [
        prefill(stages, pools_for(stages, sequences=3), pack(batch, tokens=32, requests=3))
        for batch in ([first, second, third], [first, second, other])
    ]
    assert torch.equal(logits[0][:2], logits[1][:2])
    assert not torch.equal(logits[0][2], logits[1][2])


def test_prefill_writes_live_rows_and_the_padding_row_only() -> None:
    stages = split(small_model("llama"), TWO)
    pools = pools_for(stages, sequences=3, poison=0.5)
    batch = pack(random_prompts(LENGTHS), tokens=32, requests=4)
    prefill(stages, pools, batch)
    for pool in pools:
        for tensor in pool.tensors():
            written = (tensor != 0.5).any(-1).any(-1).nonzero().flatten().tolist()
            assert written == sorted(set(batch.slot_mapping.tolist()))


def test_bfloat16_stages_agree_with_each_other() -> None:
    model = small_model("llama").to(torch.bfloat16)
    prompts = random_prompts(LENGTHS)
    logits = []
    for ranges in ([(0, LAYERS)], TWO):
        stages = split(model, ranges)
        pools = pools_for(stages, sequences=3)
        logits.append(prefill(stages, pools, pack(prompts, tokens=32, requests=3)))
    assert logits[0].dtype == torch.bfloat16
    assert torch.equal(logits[0], logits[1])


def test_split_shares_weights_and_leaves_the_model_as_it_was() -> None:
    model = small_model("llama-tied")
    prompt = random_prompts([11])[0]
    before = alone(model, prompt)
    config = copy.deepcopy(model.config)
    stages = split(model, TWO)
    pools = pools_for(stages, sequences=1)
    prefill(stages, pools, pack([prompt], tokens=16, requests=1))
    assert torch.equal(alone(model, prompt), before)
    assert model.config.to_dict() == config.to_dict()
    assert model.config._attn_implementation == config._attn_implementation
    mine = {p.data_ptr() for p in model.parameters()}
    assert {p.data_ptr() for stage in stages for p in stage.parameters()} == mine
    stages[0].to(torch.float64)  # a stage moved or cast later does not take the model along
    assert torch.equal(alone(model, prompt), before)


def test_a_later_model_of_the_same_config_does_not_reroute_stages() -> None:
    model = small_model("llama")
    stages = split(model, TWO)
    batch = pack(random_prompts(LENGTHS), tokens=32, requests=3)
    pools = pools_for(stages, sequences=3)
    expected = prefill(stages, pools, batch)
    AutoModelForCausalLM.from_config(model.config, attn_implementation="sdpa")
    again = pools_for(stages, sequences=3)
    assert torch.equal(prefill(stages, again, batch), expected)
    written = zip(pools, again, strict=True)
    assert all(
        torch.equal(a, b) for p, q in written for a, b in zip(p.tensors(), q.tensors(), strict=True)
    )


@pytest.mark.parametrize("family", ["llama-tied", "gemma3", "qwen3-moe"])
def test_a_stage_built_from_a_part_of_the_weights(family: str) -> None:
    model = small_model(family)
    whole = model.state_dict()
    stages = []
    for start, end in THREE:
        names = stage_tensor_names(model.config, start, end)
        part = {name: whole[name] for name in names}
        stages.append(
            build_stage(model.config, start, end, part, dtype=torch.float32, device="cpu")
        )
        assert len(part) < len(whole)
    batch = pack(random_prompts(LENGTHS), tokens=32, requests=3)
    shared = split(model, THREE)
    assert torch.equal(
        prefill(stages, pools_for(stages, sequences=3), batch),
        prefill(shared, pools_for(shared, sequences=3), batch),
    )


def test_missing_weights_are_named() -> None:
    model = small_model("llama-tied")
    part = model.state_dict()
    del part["model.embed_tokens.weight"], part["lm_head.weight"]  # tied: one would do
    with pytest.raises(BuildError, match=r"model\.embed_tokens\.weight"):
        build_stage(model.config, 1, LAYERS, part, dtype=torch.float32, device="cpu")


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ([(0, 1), (2, LAYERS)], r"\[2, 4\) does not go on from layer 1"),
        ([(0, 2), (1, LAYERS)], r"\[1, 4\) does not go on from layer 2"),
        ([(0, 2), (2, 2), (2, LAYERS)], r"\[2, 2\) has no layer"),
        ([(0, 2), (2, LAYERS + 1)], r"\[2, 5\) has no layer, or not of \[0, 4\)"),
        ([(0, 2)], r"end at layer 2 and the model at 4"),
        ([], r"end at layer 0 and the model at 4"),
        ([range(2), range(2, LAYERS)], r"range\(0, 2\) is not a pair .*give \(0, 2\)"),
        ([(0, 2, LAYERS)], r"\(0, 2, 4\) is not a pair"),
        (range(LAYERS), r"stage 0 is not a pair"),
        ([(0, 2.5), (2.5, LAYERS)], r"\[0, 2\.5\): layers are counted in integers"),
    ],
)
def test_ranges_that_do_not_cover_the_layers(ranges: Any, message: str) -> None:
    with pytest.raises(LayerError, match=message):
        split(small_model("llama"), ranges)


def test_integers_of_any_kind_are_layers_and_rows() -> None:
    two: Any = np.int64(2)
    first, last = split(small_model("llama"), [(0, two), (two, LAYERS)])
    assert (first.end_layer, last.start_layer) == (2, 2)
    assert {tensor.shape[0] for tensor in last.new_pool(two).tensors()} == {2}


@pytest.mark.parametrize("rows", [0, -1, 2.0, None])
def test_a_pool_has_rows_and_one_of_padding(rows: Any) -> None:
    stage = split(small_model("gemma3"), TWO)[1]
    with pytest.raises(DimError, match=rf"KV pool of {rows} rows for layer 1: .* at least 1"):
        stage.new_pool(rows)
    if rows is not None:
        with pytest.raises(DimError, match=rf"KV pool of {rows} rows for layer 2"):
            stage.new_pool(8, sliding_rows=rows)
    pool = stage.new_pool(8, sliding_rows=1)
    assert [layer and layer.keys.shape[0] for layer in pool.layers] == [None, 8, 1, 8]


def test_a_config_that_wants_tuples() -> None:
    """transformers itself does not run this model; its stages need not mind."""
    model = small_model("llama")
    prompts = random_prompts(LENGTHS)
    expected = torch.stack([alone(model, prompt) for prompt in prompts])
    model.config.return_dict = False
    stages = split(model, TWO)
    logits = prefill(stages, pools_for(stages, 3), pack(prompts, tokens=24, requests=3))
    torch.testing.assert_close(logits, expected, atol=TOLERANCE, rtol=0)
    assert model.config.return_dict is False
    assert probe(model.config).splits


def test_wrong_modules_pools_and_inputs_are_refused() -> None:
    stages = split(small_model("llama"), TWO)
    pools = pools_for(stages, sequences=1)
    with pytest.raises(BuildError, match="use HFPrefillLast"):
        HFPrefill(stages[1], pools[1])
    with pytest.raises(BuildError, match="use HFPrefill"):
        HFPrefillLast(stages[0], pools[0])
    with pytest.raises(LayerError, match=r"no layer 1.*owns layers \[0\]"):
        HFDecode(stages[1], pools[0])
    batch: Prefill = pack(random_prompts([3]), tokens=4, requests=1)
    with pytest.raises(BuildError, match="needs inputs_embeds and got None"):
        HFPrefillLast(stages[1], pools[1])(
            input_ids=batch.input_ids, positions=batch.positions, batch=batch
        )


def test_the_attention_outside_of_a_stage_is_refused() -> None:
    model: Any = AutoModelForCausalLM.from_config(
        CONFIGS["llama"](), attn_implementation="ppcgc", dtype=torch.float32
    )
    with pytest.raises(BuildError, match="outside of a stage"):
        alone(model, random_prompts([3])[0])


def test_stages_say_which_layers_they_have() -> None:
    stages = split(small_model("llama"), THREE)
    assert [(stage.start_layer, stage.end_layer) for stage in stages] == THREE
    modules = [HFDecode(s, p) for s, p in zip(stages, pools_for(stages, 1), strict=True)]
    assert [(module.start_layer, module.end_layer) for module in modules] == THREE
