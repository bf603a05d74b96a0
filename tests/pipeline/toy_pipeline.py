"""A tiny model behind the generated runners of llama: stages, batches, and its plain forward."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from generated import llama
from ppcgc import runtime as rt

HIDDEN, VOCAB, KV_ROWS, CONTEXT = 8, 31, 4096, 16
CONFIG: dict[str, int] = {
    "hidden_size": HIDDEN,
    "vocab_size": VOCAB,
    "max_position_embeddings": 4096,
}
CLASSES: dict[str, dict[str, Any]] = {
    "prefill": {
        "only": llama.PrefillOnly,
        "first": llama.PrefillFirst,
        "middle": llama.PrefillMiddle,
        "last": llama.PrefillLast,
    },
    "decode": {
        "only": llama.DecodeOnly,
        "first": llama.DecodeFirst,
        "middle": llama.DecodeMiddle,
        "last": llama.DecodeLast,
    },
}


class ToyStage(nn.Module):
    """Layers of ``tanh(residual @ weight)``, each of which writes its rows into the cache."""

    def __init__(self, layers: rt.LayerRange, kv: list[Tensor]) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(5)
        weights = torch.randn(layers.count, HIDDEN, HIDDEN, generator=generator)
        self.start_layer, self.end_layer = layers.start, layers.end
        self.last = layers.end == layers.count
        self.table = torch.randn(VOCAB, HIDDEN, generator=generator).to(kv[0].device)
        self.weights = weights[layers.start : layers.end].to(kv[0].device)
        self.kv = kv

    def forward(
        self, *, input_ids: Any, positions: Tensor, batch: Any, pp_proxy_tensors: Any
    ) -> Any:
        if pp_proxy_tensors is None:
            hidden = self.table[input_ids]
            residual = positions[:, None].to(hidden.dtype) / 100 + torch.zeros_like(hidden)
        else:
            hidden, residual = pp_proxy_tensors["hidden_states"], pp_proxy_tensors["residual"]
        for weight, pool in zip(self.weights, self.kv, strict=True):
            residual = residual + hidden
            hidden = torch.tanh(residual @ weight)
            pool.index_copy_(0, batch.slot_mapping, hidden)
        if self.last:
            return hidden + residual
        return {"hidden_states": hidden, "residual": residual}


def place_of(stage: int, of: int) -> str:
    if of == 1:
        return "only"
    return "first" if stage == 0 else "last" if stage == of - 1 else "middle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """The runners of a stage by name, and the cache that they share."""

    runners: dict[str, Any]
    kv: list[Tensor]


def build(
    stage: int,
    of: int,
    *,
    layers: int = 4,
    backend: Any = None,
    names: tuple[str, ...] = ("prefill", "decode"),
    context: int = CONTEXT,
    dtype: torch.dtype = torch.float32,
    model: type[ToyStage] = ToyStage,
) -> Built:
    """One stage of the toy, and nothing of the others."""
    backend = backend or rt.open_backend("cpu")
    config = SimpleNamespace(num_hidden_layers=layers, **CONFIG)
    dims = llama.Dims.from_config(config, kv_rows=KV_ROWS, context=context)
    owned = llama.stage_layers(dims, stage=stage, of=of)
    kv = [torch.zeros(KV_ROWS, HIDDEN, device=backend.device) for _ in range(len(owned))]
    made = model(owned, kv)
    runners = {
        name: CLASSES[name][place_of(stage, of)](
            model=made,
            layers=owned,
            dims=dims,
            state=llama.State(kv=kv),
            dtype=dtype,
            backend=backend,
        )
        for name in names
    }
    return Built(runners=runners, kv=kv)


def prefill_batch(lengths: list[int], seed: int = 0) -> Any:
    """Sequences of these lengths, their rows of the cache one behind the other from row 1."""
    tokens = sum(lengths)
    generator = torch.Generator().manual_seed(seed)
    return SimpleNamespace(
        num_tokens=tokens,
        num_requests=len(lengths),
        input_ids=torch.randint(0, VOCAB, (tokens,), generator=generator),
        positions=torch.tensor([p for n in lengths for p in range(n)], dtype=torch.int64),
        slot_mapping=torch.arange(1, tokens + 1),
        cu_seqlens=torch.tensor([0, *accumulate(lengths)], dtype=torch.int32),
        seq_lens=torch.tensor(lengths, dtype=torch.int32),
    )


def decode_batch(requests: int, seed: int = 0) -> Any:
    generator = torch.Generator().manual_seed(seed)
    return SimpleNamespace(
        num_requests=requests,
        input_ids=torch.randint(0, VOCAB, (requests,), generator=generator),
        positions=torch.arange(requests) + 2,
        slot_mapping=torch.arange(1, requests + 1) * 3,
        slot_table=torch.zeros(requests, CONTEXT, dtype=torch.int64),
        seq_lens=torch.full((requests,), 3, dtype=torch.int32),
    )


def plain(batch: Any, layers: int = 4) -> Tensor:
    """What the whole toy gives for a batch, computed here by hand, without runners or stages."""
    generator = torch.Generator().manual_seed(5)
    weights = torch.randn(layers, HIDDEN, HIDDEN, generator=generator)
    table = torch.randn(VOCAB, HIDDEN, generator=generator)
    hidden = table[batch.input_ids]
    residual = (batch.positions / 100)[:, None].expand(-1, HIDDEN)
    for weight in weights:
        residual = residual + hidden
        hidden = torch.tanh(residual @ weight)
    given: Tensor = hidden + residual
    return given


#: runner, batch: replays of several buckets, an empty batch, one over capacity, decode between
def mixed_steps() -> list[tuple[str, Any]]:
    return [
        ("prefill", prefill_batch([30, 17], seed=1)),
        ("decode", decode_batch(3, seed=2)),
        ("prefill", prefill_batch([500, 13], seed=3)),
        ("prefill", prefill_batch([5], seed=4)),
        ("prefill", prefill_batch([1500, 700], seed=5)),
        ("decode", decode_batch(16, seed=6)),
        ("decode", decode_batch(20, seed=7)),
        ("prefill", prefill_batch([64], seed=8)),
        ("prefill", prefill_batch([], seed=9)),
        ("prefill", prefill_batch([63, 1], seed=10)),
    ]
