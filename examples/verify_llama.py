"""Subjects for `ppcgc verify`: the runners of llama and llama_hf over tiny random models.

    ppcgc verify examples.verify_llama:llama
    ppcgc verify examples.verify_llama:llama_hf --stages 3 --quick

A factory takes ``device`` and ``stages`` and returns subjects: the stages of one runner in
pipeline order, and a function that makes a batch of given live counts.
"""

from __future__ import annotations

from itertools import accumulate
from types import SimpleNamespace
from typing import Any

import torch
from transformers import AutoModelForCausalLM, LlamaConfig

from examples.models.residual_llama import ResidualLlamaStage
from generated import llama as llama_runners
from generated import llama_hf as llama_hf_runners
from ppcgc.hf.probe import randomize
from ppcgc.hf.runners import HFDecode, prefill_module
from ppcgc.hf.stage import split
from ppcgc.runtime import Subject, open_backend

VOCAB = 96
MAX_POSITION = 2048
CONTEXT = 32
KV_ROWS = 2176  # the rows of the largest batch, and the reserved one


def tiny_model(device: str) -> Any:
    """Four layers of random weights, large enough for mistakes to show."""
    config = LlamaConfig(
        vocab_size=VOCAB,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=4,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        max_position_embeddings=MAX_POSITION,
        pad_token_id=None,
        bos_token_id=None,
        eos_token_id=None,
    )
    model = AutoModelForCausalLM.from_config(
        config, attn_implementation="eager", dtype=torch.float32
    ).eval()
    randomize(model, seed=7)
    return model.to(device)


def llama(*, device: str = "cpu", stages: int = 2) -> list[Subject]:
    """Prefill and decode of a model that hands over its residual stream."""
    return subjects(
        *residual_runners(llama_runners, device, stages),
        unsplit=residual_runners(llama_runners, device, 1),
    )


def residual_runners(package: Any, device: str, stages: int) -> tuple[list[Any], list[Any]]:
    """The prefill and decode stages of that model, of llama or of a family that extends it."""
    model = tiny_model(device)
    dims = package.Dims.from_config(model.config, kv_rows=KV_ROWS, context=CONTEXT)
    backend = open_backend(device)
    prefill, decode = [], []
    for number in range(stages):
        layers = package.stage_layers(dims, stage=number, of=stages)
        part = ResidualLlamaStage.from_hf(
            model.config, model.state_dict(), layers.start, layers.end
        )
        pool = part.new_pool(KV_ROWS)
        common = built_with(package, layers, dims, pool, backend)
        place = place_of(number, stages)
        prefill.append(getattr(package, f"Prefill{place}")(model=part.prefill(pool), **common))
        decode.append(getattr(package, f"Decode{place}")(model=part.decode(pool), **common))
    return prefill, decode


def llama_hf(*, device: str = "cpu", stages: int = 2) -> list[Subject]:
    """Prefill and decode of a Hugging Face model cut into stages."""
    model = tiny_model(device)
    dims = llama_hf_runners.Dims.from_config(model.config, kv_rows=KV_ROWS, context=CONTEXT)
    ranges = [llama_hf_runners.stage_layers(dims, stage=n, of=stages) for n in range(stages)]
    backend = open_backend(device)
    prefill, decode = [], []
    parts = split(model, [(owned.start, owned.end) for owned in ranges])
    for number, (part, layers) in enumerate(zip(parts, ranges, strict=True)):
        pool = part.new_pool(KV_ROWS)
        common = built_with(llama_hf_runners, layers, dims, pool, backend)
        place = place_of(number, stages)
        prefill.append(
            getattr(llama_hf_runners, f"Prefill{place}")(model=prefill_module(part, pool), **common)
        )
        decode.append(
            getattr(llama_hf_runners, f"Decode{place}")(model=HFDecode(part, pool), **common)
        )
    return subjects(prefill, decode)


def built_with(package: Any, layers: Any, dims: Any, pool: Any, backend: Any) -> dict[str, Any]:
    """What the prefill and decode runners of a stage are built with alike."""
    return {
        "layers": layers,
        "dims": dims,
        "state": package.State(kv=pool.tensors()),
        "dtype": torch.float32,
        "backend": backend,
    }


def place_of(stage: int, of: int) -> str:
    if of == 1:
        return "Only"
    return "First" if stage == 0 else "Last" if stage == of - 1 else "Middle"


def subjects(
    prefill: list[Any],
    decode: list[Any],
    unsplit: tuple[list[Any], list[Any]] = ([None], [None]),
) -> list[Subject]:
    """One subject a runner. Feeding is left out: each stage is looked at by itself.

    ``unsplit`` are the same runners of one stage, which all stages together are held against.
    """
    (whole_prefill,), (whole_decode,) = unsplit
    return [
        Subject(runners=prefill, batches=prefill_batch, unsplit=whole_prefill),
        Subject(runners=decode, batches=decode_batch, unsplit=whole_decode),
    ]


def prefill_batch(live: Any, seed: int) -> Any:
    """Prompts that share the tokens as evenly as they can, packed, in shuffled rows of the KV."""
    if live.tokens < live.requests:
        return None
    generator = torch.Generator().manual_seed(seed)
    share, more = divmod(live.tokens, live.requests)
    lengths = [share + (request < more) for request in range(live.requests)]
    ends = list(accumulate(lengths))
    return SimpleNamespace(
        num_tokens=live.tokens,
        num_requests=live.requests,
        input_ids=torch.randint(1, VOCAB, (live.tokens,), generator=generator),
        positions=torch.cat([torch.arange(length) for length in lengths]),
        slot_mapping=free_rows(live.tokens, generator),
        cu_seqlens=torch.tensor([0, *ends], dtype=torch.int32),
        seq_lens=torch.tensor(lengths, dtype=torch.int32),
        last_token=torch.tensor(ends) - 1,
    )


def decode_batch(live: Any, seed: int) -> Any:
    """One token for each request, behind a history of 1 to CONTEXT - 1 tokens."""
    generator = torch.Generator().manual_seed(seed)
    requests = live.requests
    lengths = torch.randint(2, CONTEXT + 1, (requests,), generator=generator)
    rows = free_rows(requests * CONTEXT, generator).view(requests, CONTEXT)
    table = torch.where(torch.arange(CONTEXT) < lengths[:, None], rows, 0)
    return SimpleNamespace(
        num_requests=requests,
        num_tokens=requests,
        input_ids=torch.randint(1, VOCAB, (requests,), generator=generator),
        positions=lengths - 1,
        slot_mapping=rows[torch.arange(requests), lengths - 1],
        slot_table=table,
        seq_lens=lengths.to(torch.int32),
    )


def free_rows(count: int, generator: torch.Generator) -> torch.Tensor:
    """Rows of the KV pool without the reserved one, in no order."""
    return 1 + torch.randperm(KV_ROWS - 1, generator=generator)[:count]
