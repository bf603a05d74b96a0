"""Subjects for `ppcgc verify`: the runners that are measured.

    ppcgc verify benchmarks.verified:measured --quick
    ppcgc verify benchmarks.verified:measured --device cuda --runner prefill

On a CPU the tiny shape, on a GPU the one that the figures are of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from benchmarks.batches import Batch, batch_of
from benchmarks.generated import bench_llama
from benchmarks.model import Stage, with_weights
from benchmarks.pipeline_stage import Part
from benchmarks.shape import LLAMA_8B, TINY, Shape
from ppcgc import runtime as rt

RUNNERS = ("Prefill", "PrefillDense", "PrefillOnDevice")


def measured(*, device: str = "cpu", kinds: Sequence[str] = RUNNERS) -> list[rt.Subject]:
    """The measured runners; the stage that the figures are of stands between two others.

    Verification drives a pipeline from its first stage, so the layers before and after the
    measured ones are stages of their own.
    """
    where = torch.device(device)
    shape = LLAMA_8B if where.type == "cuda" else TINY
    stages = pipeline_of_three(shape, where)
    backend = rt.open_backend(where)
    return [subject(shape, stages, kind, backend) for kind in kinds]


def pipeline_of_three(shape: Shape, device: torch.device) -> list[Stage]:
    """The layers before, the measured ones, the layers after."""
    ends = replace(shape, layers=shape.start)
    after = shape.start + shape.layers
    return [
        with_weights(lambda: Part(ends, 0), ends, device),
        with_weights(lambda: Part(shape, shape.start), shape, device),
        with_weights(lambda: Part(ends, after), ends, device),
    ]


def subject(shape: Shape, stages: list[Stage], kind: str, backend: rt.Backend) -> rt.Subject:
    """A runner over these stages, with batches where its spec wants them."""

    def build(place: str, stage: Stage) -> Any:
        return getattr(bench_llama, f"{kind}{place}")(
            model=stage,
            layers=rt.LayerRange(stage.start_layer, stage.end_layer, shape.num_hidden_layers),
            dims=bench_llama.Dims.from_config(shape, kv_rows=shape.kv_rows),
            state=bench_llama.State(kv=stage.kv()),
            dtype=shape.dtype,
            backend=backend,
        )

    def batches(live: Any, seed: int) -> Batch | None:
        made = batch(live.tokens, live.requests, seed, shape.kv_rows)
        if made is not None and kind == "PrefillOnDevice":
            return made.on(backend.device)
        return made

    runners = [
        build(place, stage)
        for place, stage in zip(("First", "Middle", "Last"), stages, strict=True)
    ]
    return rt.Subject(runners=runners, batches=batches, content="positions")


def batch(tokens: int, requests: int, seed: int, kv_rows: int) -> Batch | None:
    """Parts of prompts, as even as can be, in shuffled rows of the cache."""
    if tokens < requests:
        return None
    random = np.random.default_rng(seed)
    share, more = divmod(tokens, requests) if requests else (0, 0)
    made = batch_of([share + (number < more) for number in range(requests)])
    made.positions[:] += random.integers(0, 64, requests).repeat(np.diff(made.cu_seqlens))
    made.slot_mapping[:] = 1 + random.permutation(kv_rows - 1)[:tokens]
    return made
