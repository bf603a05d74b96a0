"""Small random models of several families, and batches packed by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    Gemma3TextConfig,
    GptOssConfig,
    LlamaConfig,
    MistralConfig,
    Qwen3Config,
    Qwen3MoeConfig,
)

from ppcgc.hf.kv import KVPool
from ppcgc.hf.probe import randomize
from ppcgc.hf.runners import HFDecode, prefill_module
from ppcgc.hf.stage import HFStage

LAYERS = 4
VOCAB = 96
CONTEXT = 24  # rows of the pool that each sequence has
POISON = 1e4

COMMON: dict[str, Any] = {
    "vocab_size": VOCAB,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 128,
    "pad_token_id": None,
    "bos_token_id": None,
    "eos_token_id": None,
}
EXPERTS: dict[str, Any] = {"num_experts_per_tok": 2, "moe_intermediate_size": 32}
ALTERNATING = ["sliding_attention", "full_attention"] * (LAYERS // 2)
DYNAMIC = {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 4.0}

CONFIGS: dict[str, Any] = {
    "llama": lambda: LlamaConfig(**COMMON),
    "llama-tied": lambda: LlamaConfig(**COMMON, tie_word_embeddings=True),
    "llama-dynamic": lambda: LlamaConfig(**COMMON, rope_parameters=DYNAMIC),
    "qwen3": lambda: Qwen3Config(**COMMON),
    "qwen3-moe": lambda: Qwen3MoeConfig(**COMMON, **EXPERTS, num_experts=4),
    "gemma3": lambda: Gemma3TextConfig(**COMMON, sliding_window=6, layer_types=ALTERNATING),
    "mistral-window": lambda: MistralConfig(**COMMON, sliding_window=6),
    "gpt-oss": lambda: GptOssConfig(
        **COMMON,
        num_experts_per_tok=2,
        num_local_experts=4,
        sliding_window=6,
        layer_types=ALTERNATING,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
    ),
}


def small_model(family: str) -> Any:
    """The unsplit model, float32, with weights large enough for mistakes to show."""
    config = CONFIGS[family]()
    model = AutoModelForCausalLM.from_config(
        config, attn_implementation="eager", dtype=torch.float32
    ).eval()
    randomize(model, seed=7)
    return model


def random_prompts(lengths: Sequence[int], seed: int = 3) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(1, VOCAB, (n,), generator=generator) for n in lengths]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefill:
    input_ids: Tensor
    positions: Tensor
    slot_mapping: Tensor
    cu_seqlens: Tensor
    last_token: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Decode:
    input_ids: Tensor
    positions: Tensor
    slot_mapping: Tensor
    slot_table: Tensor
    seq_lens: Tensor


def kv_row(sequence: int, position: int) -> int:
    """Sequences own CONTEXT rows each, in descending order so that rows are not positions."""
    return (sequence + 1) * CONTEXT - position


def pack(prompts: Sequence[Tensor], *, tokens: int, requests: int, stale: int = 0) -> Prefill:
    """Prompts packed and padded to ``tokens`` rows and ``requests`` requests.

    Rows past the live ones hold ``stale`` as id and position.
    """
    ids: list[int] = []
    positions: list[int] = []
    rows: list[int] = []
    ends = [0]
    for sequence, prompt in enumerate(prompts):
        ids += prompt.tolist()
        positions += range(len(prompt))
        rows += [kv_row(sequence, position) for position in range(len(prompt))]
        ends.append(len(ids))
    spare = tokens - len(ids)
    last = [end - 1 for end in ends[1:]]
    return Prefill(
        input_ids=torch.tensor(ids + [stale] * spare),
        positions=torch.tensor(positions + [stale] * spare),
        slot_mapping=torch.tensor(rows + [0] * spare),
        cu_seqlens=torch.tensor(ends + [ends[-1]] * (requests + 1 - len(ends)), dtype=torch.int32),
        last_token=torch.tensor(last + [0] * (requests - len(last))),
    )


def next_tokens(ids: Sequence[int], lengths: Sequence[int], *, requests: int) -> Decode:
    """One token for each sequence after ``lengths`` tokens, padded to ``requests`` rows."""
    spare = requests - len(ids)
    table = [
        [kv_row(sequence, position) for position in range(length + 1)]
        for sequence, length in enumerate(lengths)
    ]
    return Decode(
        input_ids=torch.tensor([*ids, *[0] * spare]),
        positions=torch.tensor([*lengths, *[0] * spare]),
        slot_mapping=torch.tensor([row[-1] for row in table] + [0] * spare),
        slot_table=torch.tensor(
            [row + [0] * (CONTEXT - len(row)) for row in table] + [[0] * CONTEXT] * spare
        ),
        seq_lens=torch.tensor([n + 1 for n in lengths] + [0] * spare, dtype=torch.int32),
    )


class HasPool(Protocol):
    def new_pool(self, rows: int) -> KVPool: ...


def pools_for(stages: Sequence[HasPool], sequences: int, poison: float = POISON) -> list[KVPool]:
    """Pools full of a large number: reading a row that was never written shows."""
    pools = [stage.new_pool(1 + sequences * CONTEXT) for stage in stages]
    for pool in pools:
        for tensor in pool.tensors():
            tensor.fill_(poison)
    return pools


@torch.no_grad()
def prefill(stages: Sequence[HFStage], pools: Sequence[KVPool], batch: Prefill) -> Tensor:
    """Logits [requests, vocab] through all stages."""
    hidden = batch.input_ids
    for stage, pool in zip(stages, pools, strict=True):
        entry = "input_ids" if stage.is_first else "inputs_embeds"
        module = prefill_module(stage, pool)
        hidden = module(**{entry: hidden}, positions=batch.positions, batch=batch)
    return hidden


@torch.no_grad()
def decode(stages: Sequence[HFStage], pools: Sequence[KVPool], batch: Decode) -> Tensor:
    """Logits [requests, vocab] through all stages."""
    hidden = batch.input_ids
    for stage, pool in zip(stages, pools, strict=True):
        entry = "input_ids" if stage.is_first else "inputs_embeds"
        hidden = HFDecode(stage, pool)(**{entry: hidden}, positions=batch.positions, batch=batch)
    return hidden


@torch.no_grad()
def alone(model: Any, ids: Tensor) -> Tensor:
    """Logits [vocab] of the last token, by the unsplit model's own forward."""
    logits: Tensor = model(input_ids=ids[None]).logits[0, -1]
    return logits
