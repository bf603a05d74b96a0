"""Small unsplit models of the families whose stages are made here, and how each is cut.

A family is a :class:`Layered`: what the tests need to run its stages bare or behind runners.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import transformers
from hf_family import COMMON, POISON, VOCAB, small_model
from models.block_residuals import BlockConfig, BlockDecode, BlockModel, BlockPrefill, BlockStage
from models.gated_delta import HybridDecode, HybridPrefill, HybridStage
from models.hyper_connections import HyperDecode, HyperPrefill, HyperStage
from models.sparse_attention import SparseDecode, SparsePrefill, SparseStage
from torch import Tensor, nn

from ppcgc.hf.probe import randomize

KV_ROWS, CONTEXT = 20 * 16, 32
SSM_ROWS = 12
TOPK = 6

SPARSE: dict[str, Any] = COMMON | {
    "num_key_value_heads": 4,
    "head_dim": 8,
    "q_lora_rank": 24,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 16,
    "v_head_dim": 12,
    "first_k_dense_replace": 4,
    "index_topk": TOPK,
    "index_head_dim": 16,
    # the score of a position is 0 where every head's is negative: many heads, no ties
    "index_n_heads": 16,
}


# a module for each runner, and the tensors of each state, by the names that the spec gives
Parts = tuple[Mapping[str, nn.Module], Mapping[str, list[Tensor]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layered:
    """Stages of a family, and what their runners are built from."""

    stage: Callable[[Any, int, int], Any]
    parts: Callable[[Any], Parts]

    def cut(self, model: Any, ranges: Sequence[tuple[int, int]]) -> list[Any]:
        return [self.stage(model, start, end) for start, end in ranges]


def parts_of(modules: Mapping[str, nn.Module], **state: list[Tensor]) -> Parts:
    """The parts, with every state full of a large number: reading an unwritten row shows."""
    for tensors in state.values():
        for tensor in tensors:
            tensor.fill_(POISON)
    return modules, state


def config_of(name: str, needs: str, **words: Any) -> Any:
    """A config of transformers. Skips the test where this version's family is another one."""
    made = getattr(transformers, name, None)
    if made is None or not hasattr(config := made(**words), needs):
        pytest.skip(f"transformers {transformers.__version__} has no {name} with {needs}")
    return config


# ---------------------------------------------------------------- sparse attention


def sparse_model(device: str, indexer_types: Sequence[str]) -> Any:
    """GLM's model: ``full`` layers have an indexer, ``shared`` ones reuse the one before."""
    config = config_of(
        "GlmMoeDsaConfig", "indexer_types", **SPARSE, indexer_types=list(indexer_types)
    )
    return small_model(config, device)


def scheduled_model(device: str, *, freq: int, offset: int) -> Any:
    """The same with its indexers by DeepSeek's two numbers."""
    words = {"index_topk_freq": freq, "index_skip_topk_offset": offset}
    return small_model(config_of("GlmMoeDsaConfig", "indexer_types", **SPARSE, **words), device)


def indexed_model(device: str) -> Any:
    """DeepSeek-V3.2's own model: an indexer on every layer."""
    words = {"index_topk_freq": 1, "index_skip_topk_offset": 2}
    return small_model(config_of("DeepseekV32Config", "index_topk", **SPARSE, **words), device)


def _sparse_parts(stage: Any) -> Parts:
    caches = stage.new_caches(KV_ROWS)
    modules = {"prefill": SparsePrefill(stage, caches), "decode": SparseDecode(stage, caches)}
    return parts_of(modules, kv=[t for cache in caches.values() for t in cache.tensors()])


SPARSE_FAMILY = Layered(stage=SparseStage, parts=_sparse_parts)


# ---------------------------------------------------------------- hyper-connections


def hyper_model(device: str, kinds: str) -> Any:
    """One letter a layer: ``h`` chooses experts by the token's hash, ``r`` by a router."""
    config = config_of(
        "DeepseekV4Config",
        "mlp_layer_types",
        **{key: value for key, value in COMMON.items() if key != "intermediate_size"}
        | {"num_key_value_heads": 1},
        moe_intermediate_size=32,
        q_lora_rank=24,
        n_routed_experts=4,
        num_experts_per_tok=2,
        layer_types=["sliding_attention"] * len(kinds),
        mlp_layer_types=[{"h": "hash_moe", "r": "moe"}[kind] for kind in kinds],
        sliding_window=6,
        hc_mult=2,
        hc_sinkhorn_iters=2,
        o_groups=2,
        o_lora_rank=16,
        partial_rotary_factor=0.5,
    )
    model = small_model(config, device, experts=True)
    generator = torch.Generator().manual_seed(5)
    for layer, kind in zip(model.model.layers, kinds, strict=True):
        if kind == "h":  # the table comes with a checkpoint; here two experts drawn for each id
            table = torch.rand(VOCAB, 4, generator=generator).argsort(-1)[:, :2]
            layer.mlp.gate.tid2eid.copy_(table)
    return model


def _hyper_parts(stage: Any) -> Parts:
    pool = stage.new_pool(KV_ROWS)
    modules = {"prefill": HyperPrefill(stage, pool), "decode": HyperDecode(stage, pool)}
    return parts_of(modules, kv=pool.tensors())


HYPER_FAMILY = Layered(stage=HyperStage, parts=_hyper_parts)


# ---------------------------------------------------------------- recurrent state


def hybrid_model(device: str, kinds: str) -> Any:
    """One letter a layer: ``r`` is recurrent, ``a`` has attention."""
    config = config_of(
        "Qwen3NextConfig",
        "layer_types",
        **COMMON,
        num_experts=0,
        linear_num_key_heads=2,
        linear_num_value_heads=4,
        linear_key_head_dim=8,
        linear_value_head_dim=12,
        layer_types=[{"r": "linear_attention", "a": "full_attention"}[kind] for kind in kinds],
    )
    model = small_model(config, device)
    for layer, kind in zip(model.model.layers, kinds, strict=True):
        if kind == "r":  # drawn at random by transformers; here some heads forget and some do not
            layer.linear_attn.A_log.data = torch.tensor([0.05, 0.2, 1.0, 4.0], device=device).log()
    return model


def _hybrid_parts(stage: Any) -> Parts:
    pool, states = stage.new_pool(KV_ROWS), stage.new_states(SSM_ROWS)
    modules = {
        "prefill": HybridPrefill(stage, pool, states),
        "decode": HybridDecode(stage, pool, states),
    }
    ssm = [t for state in states.values() for t in state.tensors()]
    return parts_of(modules, kv=pool.tensors(), ssm=ssm)


HYBRID_FAMILY = Layered(stage=HybridStage, parts=_hybrid_parts)


# ---------------------------------------------------------------- block residuals


def block_model(device: str) -> BlockModel:
    """Five layers in blocks of two: the last block has one."""
    model = BlockModel(BlockConfig()).eval().requires_grad_(False)
    randomize(model, seed=7, std=0.2)
    return model.to(device)


def _block_parts(stage: Any) -> Parts:
    pool = stage.new_pool(KV_ROWS)
    modules = {"prefill": BlockPrefill(stage, pool), "decode": BlockDecode(stage, pool)}
    return parts_of(modules, kv=pool.tensors())


BLOCK_FAMILY = Layered(stage=BlockStage, parts=_block_parts)
