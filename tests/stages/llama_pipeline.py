"""A tiny random Llama behind the committed runners of ``specs/llama.yaml``, and its batches."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from examples.models.residual_llama import ResidualLlamaStage
from generated import llama
from ppcgc import runtime as rt

KV_ROWS = 2600
CONTEXT = 64
LAYERS = 3
VOCAB = 101
SENTINEL = 1e4  # what a row of the cache holds before anybody writes it; masked, so harmless


def small_llama() -> Any:
    """Random weights, scaled up so that tokens differ clearly."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCAB,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=4096,
        tie_word_embeddings=False,
    )
    model = LlamaForCausalLM(config).eval().requires_grad_(False)
    for weight in model.parameters():
        if weight.dim() > 1:
            weight.normal_(0, 0.15)
    return model


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """Prefill and decode runners of every stage; both share the stage's KV pool."""

    model: Any
    prefill: list[Any]
    decode: list[Any]
    stages: list[ResidualLlamaStage]

    def run(self, runners: list[Any], batch: Any, how: str = "run") -> Tensor:
        """Hidden states of the last stage."""
        first, *later = runners
        handed = getattr(first, how)(batch)
        for runner in later:
            handed = getattr(runner, how)(batch, handed)
        hidden: Tensor = handed.hidden_states
        return hidden

    def logits(self, hidden: Tensor) -> Tensor:
        return self.stages[-1].logits(hidden)

    def pools(self) -> list[Tensor]:
        return [tensor for runner in self.prefill for tensor in runner.state.kv]


def build(model: Any, *, of: int, fed: bool) -> Pipeline:
    """Every bucket captured over pools full of the sentinel."""
    dims = llama.Dims.from_config(model.config, kv_rows=KV_ROWS, context=CONTEXT)
    backend = rt.open_backend("cpu")
    made = Pipeline(model=model, prefill=[], decode=[], stages=[])
    for stage in range(of):
        owned = llama.stage_layers(dims, stage=stage, of=of)
        part = ResidualLlamaStage.from_hf(model.config, model.state_dict(), owned.start, owned.end)
        pool = part.new_pool(KV_ROWS)
        for tensor in pool.tensors():
            tensor.fill_(SENTINEL)
        common: dict[str, Any] = {
            "layers": owned,
            "dims": dims,
            "state": llama.State(kv=pool.tensors()),
            "dtype": torch.float32,
            "backend": backend,
        }
        place = "Only" if of == 1 else "Last" if stage == of - 1 else "Middle" if stage else "First"
        made.prefill.append(getattr(llama, f"Prefill{place}")(model=part.prefill(pool), **common))
        made.decode.append(getattr(llama, f"Decode{place}")(model=part.decode(pool), **common))
        made.stages.append(part)
    if fed:
        for runners in (made.prefill, made.decode):
            for sender, receiver in pairwise(runners):
                sender.feed(receiver)
    rt.capture([*made.prefill, *made.decode])
    return made


def prompts_of(*lengths: int, seed: int = 0) -> list[Tensor]:
    make = torch.Generator().manual_seed(seed)
    return [torch.randint(1, VOCAB, (length,), generator=make) for length in lengths]


def pack(prompts: list[Tensor], rows: list[list[int]]) -> SimpleNamespace:
    """A prefill batch; ``rows`` are the cache rows of each prompt."""
    lengths = [len(prompt) for prompt in prompts]
    none = torch.empty(0, dtype=torch.int64)
    return SimpleNamespace(
        num_tokens=sum(lengths),
        num_requests=len(lengths),
        input_ids=torch.cat([none, *prompts]),
        positions=torch.cat([none, *[torch.arange(length) for length in lengths]]),
        slot_mapping=torch.tensor([row for own in rows for row in own], dtype=torch.int64),
        cu_seqlens=torch.tensor([0, *accumulate(lengths)], dtype=torch.int32),
        seq_lens=torch.tensor(lengths, dtype=torch.int32),
    )


def decode_step(tokens: list[int], rows: list[list[int]]) -> SimpleNamespace:
    """One more token a request; its cache row is the last of ``rows``."""
    table = torch.zeros(len(rows), CONTEXT, dtype=torch.int64)
    for request, own in enumerate(rows):
        table[request, : len(own)] = torch.tensor(own)
    return SimpleNamespace(
        num_requests=len(rows),
        input_ids=tokens,
        positions=[len(own) - 1 for own in rows],
        slot_mapping=[own[-1] for own in rows],
        slot_table=table,
        seq_lens=torch.tensor([len(own) for own in rows], dtype=torch.int32),
    )


def consecutive(lengths: list[int], first: int = 1) -> list[list[int]]:
    """Cache rows one after another, from ``first`` on."""
    starts = accumulate([first, *lengths])
    return [list(range(start, start + n)) for start, n in zip(starts, lengths, strict=False)]


def unsplit(model: Any, prompts: list[Tensor]) -> Tensor:
    """Logits of every token by transformers' own unsplit model, prompt by prompt."""
    return torch.cat([model(prompt[None]).logits[0] for prompt in prompts])
