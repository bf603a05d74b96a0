"""Stages under a graph backend: captured on one batch, replayed on others, equal to eager."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
import torch
from hf_models import CONFIGS, LAYERS, next_tokens, pack, pools_for, random_prompts, small_model
from torch import Tensor

from ppcgc.hf.runners import HFDecode, prefill_module
from ppcgc.hf.stage import split
from ppcgc.runtime.backends.base import Backend
from ppcgc.runtime.backends.cpu import CpuBackend
from ppcgc.runtime.backends.cuda import CudaBackend

TOKENS, REQUESTS = 32, 4
EXPERTS_FAMILIES = ("qwen3-moe", "gpt-oss")


def fixed(batch: Any, device: torch.device) -> Any:
    """The batch's tensors on the device: the addresses that a graph reads."""
    return type(batch)(**{f.name: getattr(batch, f.name).to(device) for f in fields(batch)})


def refill(buffers: Any, batch: Any) -> None:
    for field in fields(batch):
        getattr(buffers, field.name).copy_(getattr(batch, field.name))


def check_replay(model: Any, backend: Backend, *, kind: str) -> None:
    """Capture both stages on a nearly empty batch, then replay fuller and emptier ones."""
    stages = split(model, [(0, 1), (1, LAYERS)])
    pools = pools_for(stages, sequences=REQUESTS, poison=0.25)
    make = prefill_module if kind == "prefill" else HFDecode
    first, last = (make(stage, pool) for stage, pool in zip(stages, pools, strict=True))
    batches = [batch_of(kind, lengths) for lengths in ((1,), (9, 1, 14), (20, 3, 5, 4), (2, 6))]
    buffers = fixed(batches[0], backend.device)
    out: dict[str, Tensor] = {}

    @torch.no_grad()
    def body() -> None:
        hidden = first(input_ids=buffers.input_ids, positions=buffers.positions, batch=buffers)
        logits = last(inputs_embeds=hidden, positions=buffers.positions, batch=buffers)
        out.setdefault("logits", torch.zeros_like(logits)).copy_(logits)

    backend.warm_up(body)
    graph = backend.capture(body)
    for batch in batches[1:] + batches[:1]:
        refill(buffers, batch)
        graph.replay()
        replayed = out["logits"].clone()
        written = [tensor.clone() for pool in pools for tensor in pool.tensors()]
        body()
        assert torch.equal(replayed, out["logits"])
        assert torch.isfinite(replayed).all()
        rows = slice(1, None)  # row 0 takes every padding row's write, in any order
        again = [tensor for pool in pools for tensor in pool.tensors()]
        assert all(torch.equal(a[rows], b[rows]) for a, b in zip(written, again, strict=True))
    graph.close()
    backend.close()


def batch_of(kind: str, lengths: tuple[int, ...]) -> Any:
    if kind == "prefill":
        return pack(random_prompts(lengths), tokens=TOKENS, requests=REQUESTS)
    return next_tokens([n + 2 for n in lengths], lengths, requests=REQUESTS)


@pytest.mark.parametrize("kind", ["prefill", "decode"])
@pytest.mark.parametrize("family", CONFIGS)
def test_replay_equals_eager(family: str, kind: str) -> None:
    check_replay(small_model(family), CpuBackend(), kind=kind)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", ["prefill", "decode"])
@pytest.mark.parametrize("family", CONFIGS)
def test_replay_equals_eager_on_a_gpu(family: str, kind: str, dtype: torch.dtype) -> None:
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    model = small_model(family).to("cuda", dtype)
    if family in EXPERTS_FAMILIES and dtype == torch.float32:
        # torch's grouped_mm has no float32 kernel on CUDA and reads its offsets on the host
        model.set_experts_implementation("batched_mm")
    check_replay(model, CudaBackend(), kind=kind)
