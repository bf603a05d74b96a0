"""Batches for a whole model over ranks: every bucket of the runners of ``specs/llama.yaml``."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from types import SimpleNamespace
from typing import Any

import torch

from benchmarks.rank_stage import VOCAB

CONTEXT = 64  # rows of the cache that one sequence may own
PREFILL_BUCKETS, DECODE_BUCKETS = (16, 32, 64, 128, 256, 512, 1024, 2048), (1, 2, 4, 8, 16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A batch, and the padded rows and requests of the bucket that it must take."""

    runner: str
    batch: Any
    rows: int
    requests: int


def prefill(lengths: list[int], bucket: int, seed: int) -> Step:
    """Prompts of these lengths; their rows of the cache lie one behind the other from row 1."""
    tokens = sum(lengths)
    make = torch.Generator().manual_seed(seed)
    batch = SimpleNamespace(
        num_tokens=tokens,
        num_requests=len(lengths),
        input_ids=torch.randint(0, VOCAB, (tokens,), generator=make),
        positions=torch.tensor([at for n in lengths for at in range(n)], dtype=torch.int64),
        slot_mapping=torch.arange(1, tokens + 1),
        cu_seqlens=torch.tensor([0, *accumulate(lengths)], dtype=torch.int32),
        seq_lens=torch.tensor(lengths, dtype=torch.int32),
    )
    return Step(runner="prefill", batch=batch, rows=bucket, requests=16)


def decode(lengths: list[int], bucket: int, seed: int) -> Step:
    """One token more for each of the prompts that were prefilled last."""
    count, end = len(lengths), 1 + sum(lengths)
    make = torch.Generator().manual_seed(seed)
    table = torch.zeros(count, CONTEXT, dtype=torch.int64)
    for request, (length, start) in enumerate(
        zip(lengths, accumulate(lengths, initial=1), strict=False)
    ):
        table[request, :length] = torch.arange(start, start + length)
        table[request, length] = end + request
    batch = SimpleNamespace(
        num_requests=count,
        input_ids=torch.randint(0, VOCAB, (count,), generator=make),
        positions=torch.tensor(lengths, dtype=torch.int64),
        slot_mapping=torch.arange(end, end + count),
        slot_table=table,
        seq_lens=torch.tensor(lengths, dtype=torch.int32) + 1,
    )
    return Step(runner="decode", batch=batch, rows=bucket, requests=bucket)


def prompt_and_token() -> list[Step]:
    return [prefill([47], 64, seed=1), decode([47], 1, seed=2)]


def all_buckets() -> list[Step]:
    """Every bucket of both runners, three quarters full, in an order that goes up and down."""
    steps = []
    for seed, bucket in enumerate(reversed(PREFILL_BUCKETS)):
        tokens = bucket * 3 // 4
        prompts = min(16, 1 + tokens // 24)
        lengths = [tokens // prompts] * (prompts - 1)
        steps.append(prefill([*lengths, tokens - sum(lengths)], bucket, seed=10 + seed))
    lengths = [20 + request for request in range(16)]
    for seed, bucket in enumerate(DECODE_BUCKETS):
        live = bucket // 2 + max(1, bucket // 4) if bucket > 1 else 1
        steps.append(prefill(lengths[:live], _bucket(sum(lengths[:live])), seed=30 + seed))
        steps.append(decode(lengths[:live], bucket, seed=40 + seed))
    return steps


def _bucket(tokens: int) -> int:
    return min(size for size in PREFILL_BUCKETS if size >= tokens)
