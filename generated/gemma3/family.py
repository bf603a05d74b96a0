# ppcgc: generated from specs/gemma3.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:1a34668af6465bf8ef450a33f5b98707f5688b70eb68ae8f5afcd4e2b7154ca1
"""Sizes, state and layer ranges: what every runner of the family is built from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from ppcgc import runtime as rt
from torch import Tensor

rt.require_abi(4, __name__)

FINGERPRINT = "sha256:1a34668af6465bf8ef450a33f5b98707f5688b70eb68ae8f5afcd4e2b7154ca1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kinds:
    """Kinds of layers, as global ids."""

    full: rt.KindIds  # gemma3.yaml:23
    sliding: rt.KindIds  # gemma3.yaml:24


@dataclass(frozen=True, slots=True, kw_only=True)
class Dims:
    """Sizes that are known when a runner is built."""

    hidden: int  # config.hidden_size, llama_hf.yaml:9
    vocab: int  # config.vocab_size, llama_hf.yaml:10
    max_position: int  # config.max_position_embeddings, llama_hf.yaml:11
    kv_rows: int  # given at build, llama_hf.yaml:12
    context: int  # given at build, llama_hf.yaml:13
    window: int  # config.sliding_window, gemma3.yaml:10
    swa_rows: int  # given at build, gemma3.yaml:11
    layer_count: int  # config.num_hidden_layers, gemma3.yaml:21
    kinds: Kinds  # layers of each kind

    @classmethod
    def from_config(cls, config: object, *, kv_rows: int, context: int, swa_rows: int) -> Dims:
        """Read the sizes from a model's config. Raises DimError for one that is not there."""
        hidden = rt.config_int(config, "hidden_size")
        vocab = rt.config_int(config, "vocab_size")
        max_position = rt.config_int(config, "max_position_embeddings")
        kv_rows = rt.build_int("kv_rows", kv_rows)
        context = rt.build_int("context", context)
        window = rt.config_int(config, "sliding_window")
        swa_rows = rt.build_int("swa_rows", swa_rows)
        layer_count = rt.config_int(config, "num_hidden_layers")
        kinds = Kinds(
            full=rt.kind_where("full", config, "layer_types", "full_attention", layer_count),
            sliding=rt.kind_where(
                "sliding",
                config,
                "layer_types",
                "sliding_attention",
                layer_count,
            ),
        )
        return cls(
            hidden=hidden,
            vocab=vocab,
            max_position=max_position,
            kv_rows=kv_rows,
            context=context,
            window=window,
            swa_rows=swa_rows,
            layer_count=layer_count,
            kinds=kinds,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class State:
    """Tensors that the graphs write in place. Their rows stand in dimension 0."""

    kv: Sequence[Tensor]  # rows 0 belong to padding, llama_hf.yaml:20
    swa_kv: Sequence[Tensor]  # rows 0 belong to padding, gemma3.yaml:18

    def check(self, dims: Dims, device: torch.device) -> None:
        """Raises StateError for a tensor with other rows or on another device."""
        rt.check_state("kv", self.kv, dims.kv_rows, device, "llama_hf.yaml:20")
        rt.check_state("swa_kv", self.swa_kv, dims.swa_rows, device, "gemma3.yaml:18")


def stage_layers(dims: Dims, *, stage: int, of: int) -> rt.LayerRange:
    """The layers of stage number ``stage`` out of ``of``. Raises LayerError."""
    ranges = rt.even_ranges(dims.layer_count, of)  # gemma3.yaml:21
    return rt.stage_of(ranges, stage, of)
