"""The two attentions against a loop over heads, tokens and positions."""

from __future__ import annotations

import math

import pytest
import torch
from hf_models import Decode, Prefill
from torch import Tensor

from ppcgc.hf.attention import DecodeAttention, PrefillAttention
from ppcgc.hf.kernels import Scoring, varlen_serves
from ppcgc.hf.kv import KVPool, KVShape, allocate

HEADS, KV_HEADS, WIDTH, VALUE_WIDTH = 6, 2, 8, 12
SCORINGS = {
    "plain": Scoring(scaling=0.4),
    "window": Scoring(scaling=0.4, window=3),
    "softcap": Scoring(scaling=0.4, softcap=1.5),
    "sinks": Scoring(scaling=0.4, sinks=torch.linspace(-1, 2, HEADS)),
    "all": Scoring(scaling=0.4, window=2, softcap=2.0, sinks=torch.linspace(-1, 2, HEADS)),
}


def by_loop(query: Tensor, keys: Tensor, values: Tensor, at: int, scoring: Scoring) -> Tensor:
    """One query [H, D] at position ``at`` over keys [n, K, D] of positions 0 to n - 1."""
    out = torch.zeros(HEADS, values.shape[-1])
    for head in range(HEADS):
        group = head // (HEADS // KV_HEADS)
        weights = {}
        for position in range(at + 1):
            if scoring.window is not None and at - position >= scoring.window:
                continue
            score = float(query[head] @ keys[position, group]) * scoring.scaling
            if scoring.softcap is not None:
                score = math.tanh(score / scoring.softcap) * scoring.softcap
            weights[position] = math.exp(score)
        total = sum(weights.values())
        if scoring.sinks is not None:
            total += math.exp(float(scoring.sinks[head]))
        for position, weight in weights.items():
            out[head] += values[position, group] * (weight / total)
    return out


def random_rows(rows: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return (
        torch.randn(rows, HEADS, WIDTH, generator=generator),
        torch.randn(rows, KV_HEADS, WIDTH, generator=generator),
        torch.randn(rows, KV_HEADS, VALUE_WIDTH, generator=generator),
    )


def new_pool(rows: int, poison: float) -> KVPool:
    pool = allocate(
        {0: KVShape(heads=KV_HEADS, key_dim=WIDTH, value_dim=VALUE_WIDTH)},
        layers=1,
        rows=rows,
        dtype=torch.float32,
        device="cpu",
    )
    for tensor in pool.tensors():
        tensor.fill_(poison)
    return pool


@pytest.mark.parametrize("kind", SCORINGS)
def test_packed_prefill(kind: str) -> None:
    scoring = SCORINGS[kind]
    lengths, tokens = (5, 1, 7), 16
    query, keys, values = random_rows(tokens, seed=1)
    zeros = torch.zeros(tokens, dtype=torch.int64)
    batch = Prefill(
        input_ids=zeros,
        positions=zeros,
        slot_mapping=torch.tensor([*range(20, 33), 0, 0, 0]),
        cu_seqlens=torch.tensor([0, 5, 6, 13, 13], dtype=torch.int32),
        last_token=zeros,
    )
    out = PrefillAttention(batch, new_pool(40, poison=1e4)).attend(0, query, keys, values, scoring)
    start = 0
    for length in lengths:
        own = slice(start, start + length)
        for at in range(length):
            expected = by_loop(query[start + at], keys[own], values[own], at, scoring)
            torch.testing.assert_close(out[start + at], expected, atol=1e-5, rtol=0)
        start += length
    assert torch.equal(out[start:], torch.zeros_like(out[start:]))


@pytest.mark.parametrize("kind", SCORINGS)
def test_decode_over_the_pool(kind: str) -> None:
    scoring = SCORINGS[kind]
    lengths, context = (4, 1, 6), 8
    pool = new_pool(64, poison=1e4)
    cache = pool.layer(0)
    history = [random_rows(length, seed=length) for length in lengths]
    table = torch.zeros(4, context, dtype=torch.int64)
    for request, (_, keys, values) in enumerate(history):
        rows = torch.arange(60 - 9 * request, 0, -1)[: lengths[request]]
        table[request, : lengths[request]] = rows
        cache.keys[rows[:-1]], cache.values[rows[:-1]] = keys[:-1], values[:-1]
    query, keys, values = random_rows(4, seed=9)
    for request, (_, own_keys, own_values) in enumerate(history):
        keys[request], values[request] = own_keys[-1], own_values[-1]
    zeros = torch.zeros(4, dtype=torch.int64)
    batch = Decode(
        input_ids=zeros,
        positions=zeros,
        slot_mapping=torch.tensor([*(int(table[r, n - 1]) for r, n in enumerate(lengths)), 0]),
        slot_table=table,
        seq_lens=torch.tensor([*lengths, 0], dtype=torch.int32),
    )
    out = DecodeAttention(batch, pool).attend(0, query, keys, values, scoring)
    for request, (_, own_keys, own_values) in enumerate(history):
        expected = by_loop(query[request], own_keys, own_values, lengths[request] - 1, scoring)
        torch.testing.assert_close(out[request], expected, atol=1e-5, rtol=0)
    assert torch.equal(out[3], torch.zeros_like(out[3]))


@pytest.mark.gpu
@pytest.mark.parametrize("groups", [1, 3])
def test_varlen_on_a_gpu_equals_the_exact_form(groups: int) -> None:
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    generator = torch.Generator().manual_seed(0)
    tokens, kv_heads, width = 64, 3, 64
    query, keys, values = (
        torch.randn(tokens, heads, width, generator=generator).to("cuda", torch.bfloat16)
        for heads in (kv_heads * groups, kv_heads, kv_heads)
    )
    scoring = Scoring(scaling=0.2)
    assert varlen_serves(query, keys, values, scoring)
    zeros = torch.zeros(tokens, dtype=torch.int64, device="cuda")
    batch = Prefill(
        input_ids=zeros,
        positions=zeros,
        slot_mapping=zeros,
        cu_seqlens=torch.tensor([0, 20, 47, 47], dtype=torch.int32, device="cuda"),
        last_token=zeros,
    )
    results = []
    for dtype in (torch.bfloat16, torch.float32):
        pool = allocate(
            {0: KVShape(heads=kv_heads, key_dim=width, value_dim=width)},
            layers=1,
            rows=2,
            dtype=dtype,
            device="cuda",
        )
        inputs = (query.to(dtype), keys.to(dtype), values.to(dtype))
        results.append(PrefillAttention(batch, pool).attend(0, *inputs, scoring))
    torch.testing.assert_close(results[0].float(), results[1], atol=2e-2, rtol=2e-2)
    assert torch.equal(results[0][47:], torch.zeros_like(results[0][47:]))
