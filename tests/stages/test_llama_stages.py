"""The committed runners of ``specs/llama.yaml`` on a tiny Llama: one, two and three stages."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from llama_pipeline import (
    CONTEXT,
    SENTINEL,
    VOCAB,
    Pipeline,
    build,
    consecutive,
    decode_step,
    pack,
    prompts_of,
    small_llama,
    unsplit,
)

BUCKETS = (16, 32, 64, 128, 256, 512, 1024, 2048)
LIVE = [(n, b) for b in BUCKETS for n in (1, b - 1, b, b + 1)]


def assert_near(found: torch.Tensor, wanted: torch.Tensor) -> None:
    torch.testing.assert_close(found, wanted, atol=2e-5, rtol=1e-5)


@pytest.fixture(scope="module")
def model() -> Any:
    return small_llama()


SPLITS = [(1, False), (2, False), (2, True), (3, True)]


@pytest.fixture(scope="module", params=SPLITS, ids=lambda p: f"{p[0]} stages{', fed' * p[1]}")
def pipeline(request: pytest.FixtureRequest, model: Any) -> Pipeline:
    of, fed = request.param
    made = build(model, of=of, fed=fed)
    for pool in made.pools():  # before any step: warm-up and capture wrote the reserved row alone
        assert (pool[1:] == SENTINEL).all()
        assert (pool[0] != SENTINEL).all()
    return made


def lengths_of(tokens: int) -> list[int]:
    """Uneven prompts, sixteen at most, none longer than CONTEXT needs to be."""
    if tokens < 8:
        return [tokens]
    return [tokens // 2, 3, tokens - tokens // 2 - 3]


def prefill_batch(tokens: int, seed: int) -> tuple[list[torch.Tensor], Any]:
    prompts = prompts_of(*lengths_of(tokens), seed=seed)
    rows = consecutive([len(prompt) for prompt in prompts], first=1 + seed % 7)
    return prompts, pack(prompts, rows)


def run_fuller(pipeline: Pipeline, bucket: int) -> None:
    """Every row of every slot of the bucket filled by an earlier batch."""
    prompts = prompts_of(*[bucket // 16] * 16, seed=bucket)
    batch = pack(prompts, consecutive([bucket // 16] * 16, first=300))
    pipeline.run(pipeline.prefill, batch)


@pytest.mark.parametrize(("tokens", "bucket"), LIVE)
def test_prefill_over_a_fuller_batch(pipeline: Pipeline, tokens: int, bucket: int) -> None:
    run_fuller(pipeline, bucket)
    prompts, batch = prefill_batch(tokens, seed=tokens)
    found = pipeline.run(pipeline.prefill, batch).clone()
    written = [pool.clone() for pool in pipeline.pools()]
    size = next((size for size in BUCKETS if size >= tokens), None)
    path = f"replay {tokens}→{size}" if size else f"eager {tokens} (over capacity)"
    assert {str(runner.last_step) for runner in pipeline.prefill} == {path}
    if size:
        again = body_again(pipeline.prefill)[:tokens]
        assert torch.equal(again, found)  # the model's own Python over the same slots: same bits
        for pool, before in zip(pipeline.pools(), written, strict=True):
            assert torch.equal(pool[1:], before[1:])
    eager = pipeline.run(pipeline.prefill, batch, "eager")
    assert_near(found, eager)
    if tokens <= 520:  # the unsplit model's own attention is slow and was compared often enough
        wanted = unsplit(pipeline.model, prompts)
        assert_near(pipeline.logits(found), wanted)


@torch.no_grad()
def body_again(runners: list[Any]) -> torch.Tensor:
    """The last step once more, by the model's Python over the slots as they are loaded."""
    for runner in runners:
        bucket = runner.table[runner.last_step.choice.padded]
        runner.body(bucket)()
    hidden: torch.Tensor = bucket.outputs.hidden_states
    return hidden


@pytest.mark.parametrize("requests", [1, 2, 3, 4, 7, 8, 9, 15, 16, 17])
def test_decode_after_prefill(pipeline: Pipeline, requests: int) -> None:
    lengths = [2 + request for request in range(requests)]
    prompts = prompts_of(*lengths, seed=requests)
    rows = consecutive([CONTEXT] * requests)
    own = [row[:length] for row, length in zip(rows, lengths, strict=True)]
    hidden = pipeline.run(pipeline.prefill, pack(prompts, own))
    last = torch.tensor(lengths).cumsum(0) - 1
    tokens = pipeline.logits(hidden[last]).argmax(-1)
    sequences = [[*p.tolist(), t] for p, t in zip(prompts, tokens.tolist(), strict=True)]
    fuller = decode_step([1] * 16, consecutive([CONTEXT] * 16, first=1200))
    for _ in range(3):
        pipeline.run(pipeline.decode, fuller)
        own = [row[: len(ids)] for row, ids in zip(rows, sequences, strict=True)]
        batch = decode_step([ids[-1] for ids in sequences], own)
        found = pipeline.run(pipeline.decode, batch).clone()
        if requests <= 16:
            assert torch.equal(body_again(pipeline.decode)[:requests], found)
        logits = pipeline.logits(found)
        wanted = torch.stack(
            [pipeline.model(torch.tensor([ids])).logits[0, -1] for ids in sequences]
        )
        assert_near(logits, wanted)
        for ids, token in zip(sequences, logits.argmax(-1).tolist(), strict=True):
            ids.append(token)
    padded = next((size for size in (1, 2, 4, 8, 16) if size >= requests), None)
    path = f"replay {requests}→{padded}" if padded else f"eager {requests} (over capacity)"
    assert {str(runner.last_step) for runner in pipeline.decode} == {path}


def test_a_packed_prompt_gives_what_it_gives_alone(pipeline: Pipeline) -> None:
    prompts = prompts_of(20, 9, 14, seed=3)
    together = pipeline.run(
        pipeline.prefill, pack(prompts, consecutive([20, 9, 14], first=1))
    ).clone()
    start = 0
    for prompt in prompts:
        alone = pipeline.run(
            pipeline.prefill, pack([prompt], consecutive([len(prompt)], first=900))
        )
        assert_near(together[start : start + len(prompt)], alone)
        start += len(prompt)


def test_a_step_writes_its_rows_of_the_cache_and_the_reserved_one(pipeline: Pipeline) -> None:
    pipeline.run(pipeline.prefill, prefill_batch(64, seed=1)[1])
    for runners, batch, rows in (
        (pipeline.prefill, pack(prompts_of(5, 2), [[7, 30, 9, 500, 2], [3, 44]]), 7),
        (pipeline.decode, decode_step([1, 2, 3], [[5, 6], [8, 11, 12], [20]]), 3),
    ):
        for pool in pipeline.pools():
            pool.fill_(SENTINEL)
        pipeline.run(runners, batch)
        mapping = torch.as_tensor(batch.slot_mapping)
        assert len(mapping) == rows
        for pool in pipeline.pools():
            changed = (pool != SENTINEL).flatten(1).any(1).nonzero().flatten()
            assert changed.tolist() == sorted([0, *mapping.tolist()])


def test_runners_and_buckets_in_any_order(pipeline: Pipeline) -> None:
    order = random.Random(0)
    for step in range(12):
        if order.random() < 0.5:
            tokens = order.randint(1, 130)
            runners, batch = pipeline.prefill, prefill_batch(tokens, seed=step)[1]
        else:
            rows = [[1200 + 3 * request] for request in range(order.randint(1, 16))]
            ids = [order.randint(1, VOCAB - 1) for _ in rows]
            runners, batch = pipeline.decode, decode_step(ids, rows)
        found = pipeline.run(runners, batch).clone()
        live = len(found)
        assert torch.equal(body_again(runners)[:live], found)
        assert_near(found, pipeline.run(runners, batch, "eager"))


def test_intermediates_of_all_graphs_share_the_largest_one_s_memory(pipeline: Pipeline) -> None:
    graphs = [
        bucket.graph
        for runner in (*pipeline.prefill, *pipeline.decode)
        for bucket in runner.table.values()
    ]
    needed = [graph.pool_bytes for graph in graphs]
    pool = pipeline.prefill[0].backend.pool_bytes()
    assert pool == max(needed)
    assert sum(needed) > 1.3 * pool
    outputs = {
        bucket.outputs.hidden_states.data_ptr()
        for runner in pipeline.prefill
        for bucket in runner.table.values()
    }
    assert len(outputs) == len(pipeline.prefill)
