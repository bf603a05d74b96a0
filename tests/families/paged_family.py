"""The runners of `llama_flashinfer` over a small Llama, in one process, and batches with pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from types import SimpleNamespace
from typing import Any

import torch
from hf_family import runner_class
from torch import Tensor
from transformers import LlamaConfig

from examples.flashinfer_hooks import DecodeHook, Heads, PrefillHook
from examples.models.planned_llama import PlannedLlama
from examples.models.residual_llama import ResidualLlamaStage
from examples.serving import PAGE, Pages
from examples.serving import Sequence as PagedSequence
from generated import llama_flashinfer
from ppcgc.runtime import capture, open_backend

KV_ROWS = 128 * PAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class Paged:
    """The stages of prefill and decode, in order. ``last`` has the head."""

    prefill: list[Any]
    decode: list[Any]
    last: ResidualLlamaStage
    pages: Pages

    def runners(self) -> list[Any]:
        return [*self.prefill, *self.decode]

    def step(self, kind: str, batch: Any, *, eager: bool = False) -> Tensor:
        """Logits [requests, vocab] of each request's last token."""
        line = self.prefill if kind == "prefill" else self.decode
        handed: list[Any] = []
        for runner in line:
            run = runner.eager if eager else runner.run
            handed = [run(batch, *handed)]
        hidden: Tensor = handed[0].hidden_states
        if kind == "prefill":
            hidden = hidden[(batch.cu_seqlens[1:] - 1).long().to(hidden.device)]
        return self.last.logits(hidden)

    def serve(
        self, sequences: Sequence[PagedSequence], kind: str, *, eager: bool = False
    ) -> Tensor:
        """Pages for what the sequences hold, and one step over them."""
        for sequence in sequences:
            self.pages.fit(sequence)
        make = prefill_batch if kind == "prefill" else decode_batch
        return self.step(kind, make(sequences), eager=eager)


def build(
    model: Any,
    library: Any,
    *,
    stages: int,
    device: str,
    plan_bytes: int,
    dtype: torch.dtype = torch.float32,
) -> Paged:
    """Stages with the weights of ``model``, in ``dtype``; every bucket of each is captured."""
    config = model.config
    weights = {name: tensor.to(dtype) for name, tensor in model.state_dict().items()}
    dims = llama_flashinfer.Dims.from_config(config, kv_rows=KV_ROWS, plan_bytes=plan_bytes)
    heads = Heads(
        query=config.num_attention_heads,
        kv=config.num_key_value_heads,
        width=config.head_dim,
        page_size=dims.page_size,
        dtype=dtype,
    )
    backend = open_backend(device)
    lines: dict[str, list[Any]] = {"prefill": [], "decode": []}
    for number in range(stages):
        layers = llama_flashinfer.stage_layers(dims, stage=number, of=stages)
        stage = ResidualLlamaStage.from_hf(config, weights, layers.start, layers.end)
        pool = stage.new_pool(KV_ROWS)
        hooks = {
            "prefill": PrefillHook(pool=pool, heads=heads, library=library),
            "decode": DecodeHook(pool=pool, heads=heads, library=library),
        }
        for kind, line in lines.items():
            side = "First" if number == 0 else "Later"
            hooks_class = getattr(llama_flashinfer, f"{kind.capitalize()}{side}Hooks")
            line.append(
                runner_class(llama_flashinfer, kind, layers)(
                    model=PlannedLlama(stage),
                    layers=layers,
                    dims=dims,
                    state=llama_flashinfer.State(kv=pool.tensors()),
                    dtype=dtype,
                    backend=backend,
                    hooks=hooks_class(attention=hooks[kind]),
                )
            )
    for line in lines.values():
        for sender, receiver in pairwise(line):
            sender.feed(receiver)
    made = Paged(**lines, last=stage, pages=Pages(KV_ROWS))
    capture(made.runners())
    return made


def llama_config(**sizes: int) -> LlamaConfig:
    return LlamaConfig(
        **{
            "vocab_size": 96,
            "num_hidden_layers": 3,
            "max_position_embeddings": 256,
            "pad_token_id": None,
            "bos_token_id": None,
            "eos_token_id": None,
            **sizes,
        }
    )


def sequences_of(lengths: Sequence[int], seed: int, vocab: int = 96) -> list[PagedSequence]:
    random = torch.Generator().manual_seed(seed)
    return [
        PagedSequence(ids=torch.randint(1, vocab, (n,), generator=random).tolist()) for n in lengths
    ]


def prefill_batch(sequences: Sequence[PagedSequence]) -> SimpleNamespace:
    """Whole sequences, packed."""
    lengths = [len(s.ids) for s in sequences]
    return SimpleNamespace(
        num_tokens=sum(lengths),
        input_ids=[i for s in sequences for i in s.ids],
        positions=[p for n in lengths for p in range(n)],
        slot_mapping=[s.row(p) for s in sequences for p in range(len(s.ids))],
        cu_seqlens=torch.tensor([0, *accumulate(lengths)], dtype=torch.int32),
        seq_lens=lengths,
        **_pages(sequences),
    )


def decode_batch(sequences: Sequence[PagedSequence]) -> SimpleNamespace:
    """The newest token of each sequence."""
    newest = [len(s.ids) - 1 for s in sequences]
    return SimpleNamespace(
        num_tokens=len(sequences),
        input_ids=[s.ids[-1] for s in sequences],
        positions=newest,
        slot_mapping=[s.row(p) for s, p in zip(sequences, newest, strict=True)],
        **_pages(sequences),
    )


def _pages(sequences: Sequence[PagedSequence]) -> dict[str, Any]:
    return {
        "num_requests": len(sequences),
        "num_pages": sum(len(s.pages) for s in sequences),
        "page_indptr": [0, *accumulate(len(s.pages) for s in sequences)],
        "page_indices": [page for s in sequences for page in s.pages],
        "last_page_len": [(len(s.ids) - 1) % PAGE + 1 for s in sequences],
    }
