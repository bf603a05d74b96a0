"""SmolLM2-135M as a pipeline of processes, each with its own layers, against the unsplit model.

    torchrun --nproc-per-node 2 -m examples.two_ranks [--device cuda] [--random]

Any number of ranks will do. Without ``--device cuda`` they hand over by gloo on the CPU, with it
by NCCL, a GPU each. A prompt of 47 tokens goes through the bucket of 64 on all ranks, then tokens
are decoded greedily. Exits with 1 when the tokens differ from ``model.generate``. The weights are
those that ``python -m examples.smollm2`` keeps in ``.cache``; without them, or with ``--random``,
a tiny model with random weights.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from safetensors import safe_open
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM, LlamaConfig

from examples.pipeline import DECODE, PREFILL, place
from examples.serving import PAGE, Pages, Sequence, pack_decode, pack_prefill
from generated import llama_hf
from ppcgc.hf.loading import SAVED
from ppcgc.hf.runners import HFDecode, prefill_module
from ppcgc.hf.stage import build_stage, stage_tensor_names
from ppcgc.runtime import open_backend
from ppcgc.runtime.pipeline import Pipeline

PROMPT_TOKENS, CONTEXT, KV_ROWS = 47, 128, 64 * PAGE
WAIT = timedelta(minutes=2)
TINY: dict[str, Any] = {
    "vocab_size": 512,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 5,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "bos_token_id": None,
    "eos_token_id": None,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Where a model's tensors come from. ``folder`` None stands for seeded random ones."""

    config: Any
    folder: Path | None

    @classmethod
    def find(cls, cache: Path, *, random: bool) -> Weights:
        saved = cache / SAVED
        if random or not saved.is_dir():
            return cls(config=LlamaConfig(**TINY), folder=None)
        return cls(config=AutoConfig.from_pretrained(saved), folder=saved)

    def names(self) -> frozenset[str]:
        """Of all tensors of the model."""
        if self.folder is None:
            return frozenset(self.whole().state_dict())
        with safe_open(self.folder / "model.safetensors", framework="pt") as file:
            return frozenset(file.keys())

    def some(self, names: list[str]) -> Mapping[str, Tensor]:
        """The named tensors of the model, and no others."""
        if self.folder is None:
            tensors = self.whole().state_dict()
            return {name: tensors[name] for name in names}
        with safe_open(self.folder / "model.safetensors", framework="pt") as file:
            return {name: file.get_tensor(name) for name in names}

    def whole(self) -> Any:
        """The unsplit model, to compare with."""
        if self.folder is not None:
            return AutoModelForCausalLM.from_pretrained(self.folder, dtype=torch.float32).eval()
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(self.config, dtype=torch.float32).eval()
        for parameter in model.parameters():
            parameter.data.mul_(8)  # so large that a mistake would show in the tokens
        return model


def open_stage(weights: Weights, device: torch.device, transport: str | None) -> Pipeline:
    """This rank's layers, its runners, and their place among the ranks."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    dims = llama_hf.Dims.from_config(weights.config, kv_rows=KV_ROWS, context=CONTEXT)
    layers = llama_hf.stage_layers(dims, stage=rank, of=ranks)
    names = stage_tensor_names(weights.config, layers.start, layers.end, weights.names())
    stage = build_stage(
        weights.config,
        layers.start,
        layers.end,
        weights.some(names),
        dtype=torch.float32,
        device=device,
        longest=CONTEXT,
    )
    pool = stage.new_pool(KV_ROWS)
    common: dict[str, Any] = {
        "layers": layers,
        "dims": dims,
        "state": llama_hf.State(kv=pool.tensors()),
        "dtype": torch.float32,
        "backend": open_backend(device),
    }
    kind = place(rank, ranks)
    prefill = PREFILL[kind](model=prefill_module(stage, pool), **common)
    decode = DECODE[kind](model=HFDecode(stage, pool), **common)
    return Pipeline([prefill, decode], transport=transport)


def generate(pipeline: Pipeline, prompt: list[int], tokens: int, device: torch.device) -> list[int]:
    """Greedy tokens. Every rank keeps the same sequence, so all build the same batches."""
    sequence, pages = Sequence(ids=list(prompt)), Pages(KV_ROWS)
    newest = torch.zeros(1, dtype=torch.int64, device=device)
    for step in range(tokens):
        pages.fit(sequence)
        if step == 0:
            made = pipeline.run("prefill", pack_prefill([sequence]))
        else:
            made = pipeline.run("decode", pack_decode([sequence], context=CONTEXT))
        if made is not None:
            newest.copy_(made.logits.argmax(-1))
        dist.broadcast(newest, src=dist.get_world_size() - 1)
        sequence.ids.append(int(newest))
    return sequence.ids[len(prompt) :]


def unsplit(model: Any, prompt: list[int], tokens: int) -> list[int]:
    """Greedy tokens of the model as transformers runs it, in this process alone."""
    ids = torch.tensor([prompt], device=model.device)
    made = model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        do_sample=False,
        max_new_tokens=tokens,
        min_new_tokens=tokens,
    )
    kept: list[int] = made[0, len(prompt) :].tolist()
    return kept


def main(argv: list[str] | None = None) -> int:
    """Run this rank; the exit code."""
    arguments = parse(argv)
    device = torch.device("cpu")
    if arguments.device == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    kind = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(kind, timeout=WAIT)  # for the tokens; the pipeline has its own
    try:
        return serve(arguments, device)
    finally:
        dist.destroy_process_group()


def serve(arguments: argparse.Namespace, device: torch.device) -> int:
    rank = dist.get_rank()
    weights = Weights.find(arguments.cache, random=arguments.random)
    generator = torch.Generator().manual_seed(1)
    vocab = weights.config.vocab_size
    prompt = torch.randint(3, vocab, (PROMPT_TOKENS,), generator=generator).tolist()
    with open_stage(weights, device, arguments.transport) as pipeline:
        pipeline.capture()
        tokens = generate(pipeline, prompt, arguments.tokens, device)
        report = str(pipeline.report())
    for turn in range(dist.get_world_size()):
        if turn == rank:
            print(f"{report}\n", flush=True)
        dist.barrier()
    if rank != 0:
        return 0
    print(f"tokens: {tokens}")
    equal = tokens == unsplit(weights.whole().to(device), prompt, arguments.tokens)
    print(f"against the unsplit model in one process: {'EQUAL' if equal else 'DIFFERENT'}")
    return 0 if equal else 1


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--transport", choices=["eager", "captured", "symmetric"])
    parser.add_argument("--tokens", type=int, default=24)
    parser.add_argument("--random", action="store_true", help="a tiny model with random weights")
    parser.add_argument("--cache", type=Path, default=Path(".cache"), help="folder of the weights")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
