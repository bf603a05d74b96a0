# ppcgc: generated from specs/deepseek_v3.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:4d45f984827946146368753d3fc7aca0831a388d94f88b26f2441ee665fc0495
"""Sizes, state and layer ranges: what every runner of the family is built from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from ppcgc import runtime as rt
from torch import Tensor

rt.require_abi(4, __name__)

FINGERPRINT = "sha256:4d45f984827946146368753d3fc7aca0831a388d94f88b26f2441ee665fc0495"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dims:
    """Sizes that are known when a runner is built."""

    hidden: int  # config.hidden_size, llama_hf.yaml:9
    vocab: int  # config.vocab_size, llama_hf.yaml:10
    max_position: int  # config.max_position_embeddings, llama_hf.yaml:11
    kv_rows: int  # given at build, llama_hf.yaml:12
    context: int  # given at build, llama_hf.yaml:13
    layer_count: int  # config.num_hidden_layers, llama_hf.yaml:23

    @classmethod
    def from_config(cls, config: object, *, kv_rows: int, context: int) -> Dims:
        """Read the sizes from a model's config. Raises DimError for one that is not there."""
        hidden = rt.config_int(config, "hidden_size")
        vocab = rt.config_int(config, "vocab_size")
        max_position = rt.config_int(config, "max_position_embeddings")
        kv_rows = rt.build_int("kv_rows", kv_rows)
        context = rt.build_int("context", context)
        layer_count = rt.config_int(config, "num_hidden_layers")
        return cls(
            hidden=hidden,
            vocab=vocab,
            max_position=max_position,
            kv_rows=kv_rows,
            context=context,
            layer_count=layer_count,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class State:
    """Tensors that the graphs write in place. Their rows stand in dimension 0."""

    kv: Sequence[Tensor]  # rows 0 belong to padding, llama_hf.yaml:20

    def check(self, dims: Dims, device: torch.device) -> None:
        """Raises StateError for a tensor with other rows or on another device."""
        rt.check_state("kv", self.kv, dims.kv_rows, device, "llama_hf.yaml:20")


def stage_layers(dims: Dims, *, stage: int, of: int) -> rt.LayerRange:
    """The layers of stage number ``stage`` out of ``of``. Raises LayerError."""
    ranges = rt.even_ranges(dims.layer_count, of)  # llama_hf.yaml:23
    return rt.stage_of(ranges, stage, of)
