"""The generated runners of llama_hf over stages of small models, and the example as a whole."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hf_models import alone, random_prompts, small_model

from examples import smollm2
from examples.pipeline import Pipeline, path
from examples.serving import PAGE, Pages, Sequence, pack_decode, pack_prefill
from ppcgc.hf import loading
from ppcgc.runtime import open_backend

CONTEXT = 48
KV_ROWS = 48 * PAGE


def pipeline_of(model: Any, stages: int) -> Pipeline:
    return Pipeline.build(
        model, stages=stages, backend=open_backend("cpu"), kv_rows=KV_ROWS, context=CONTEXT
    )


@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize("family", ["llama", "gemma3"])
def test_packed_prefill_then_decode_equals_the_unsplit_model(family: str, stages: int) -> None:
    model = small_model(family)
    pipeline = pipeline_of(model, stages)
    pages = Pages(KV_ROWS)
    sequences = [Sequence(ids=ids.tolist()) for ids in random_prompts((9, 1, 14, 20, 3))]
    for step in range(5):
        for sequence in sequences:
            pages.fit(sequence)
        if step == 0:
            logits = pipeline.run_prefill(pack_prefill(sequences))
            assert path(pipeline.prefill) == "replay 47→64"
        else:
            logits = pipeline.run_decode(pack_decode(sequences, context=CONTEXT))
            assert path(pipeline.decode) == "replay 5→8"
        expected = torch.stack([alone(model, torch.tensor(s.ids)) for s in sequences])
        torch.testing.assert_close(logits, expected, atol=2e-5, rtol=0)
        for sequence, token in zip(sequences, logits.argmax(-1).tolist(), strict=True):
            sequence.ids.append(token)


def test_a_prompt_over_capacity_runs_eagerly_and_decodes_from_the_cache() -> None:
    model = small_model("llama")
    model.config.max_position_embeddings = 1024
    pipeline = Pipeline.build(
        model, stages=2, backend=open_backend("cpu"), kv_rows=KV_ROWS, context=544
    )
    sequence = Sequence(ids=random_prompts([530])[0].tolist())
    pages = Pages(KV_ROWS)
    pages.fit(sequence)
    logits = pipeline.run_prefill(pack_prefill([sequence]))
    assert path(pipeline.prefill) == "eager 530 (over capacity)"
    torch.testing.assert_close(
        logits[0], alone(model, torch.tensor(sequence.ids)), atol=5e-5, rtol=0
    )
    sequence.ids.append(5)
    pages.fit(sequence)
    logits = pipeline.run_decode(pack_decode([sequence], context=544))
    assert path(pipeline.decode) == "replay 1→1"
    torch.testing.assert_close(
        logits[0], alone(model, torch.tensor(sequence.ids)), atol=5e-5, rtol=0
    )


@pytest.fixture
def _small_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    small = {
        **loading.SMOLLM2_SHAPE,
        "hidden_size": 64,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 96,
        "num_hidden_layers": 3,
        "vocab_size": 128,
    }
    monkeypatch.setattr(loading, "SMOLLM2_SHAPE", small)


@pytest.mark.usefixtures("_small_shape")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_example_on_random_weights(capsys: pytest.CaptureFixture[str], dtype: str) -> None:
    assert smollm2.main(["--random", "--dtype", dtype, "--stages", "3"]) == 0
    printed = capsys.readouterr().out
    assert "model: random weights, as asked" in printed
    assert "replay 47→64" in printed
    assert "41 replays against eager at the same shape, bit by bit: EQUAL" in printed
    assert "llama_hf.decode, middle stage" in printed


@pytest.mark.usefixtures("_small_shape")
def test_the_example_fails_when_tokens_differ(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smollm2, "unsplit", lambda model, prompt: [1, 2, 3])
    assert smollm2.main(["--random"]) == 1
    assert "unsplit model: DIFFERENT" in capsys.readouterr().out
