# ppcgc: generated from specs/llama_parallel.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:1cf0528eed60b8101cfce9227076c03f5629733e8a71887231aa7eea6de44354
"""Sizes, state and layer ranges: what every runner of the family is built from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from ppcgc import runtime as rt
from torch import Tensor

rt.require_abi(4, __name__)

FINGERPRINT = "sha256:1cf0528eed60b8101cfce9227076c03f5629733e8a71887231aa7eea6de44354"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dims:
    """Sizes that are known when a runner is built."""

    hidden: int  # config.hidden_size, llama.yaml:7
    vocab: int  # config.vocab_size, llama.yaml:8
    max_position: int  # config.max_position_embeddings, llama.yaml:9
    kv_rows: int  # given at build, llama.yaml:10
    context: int  # given at build, llama.yaml:11
    layer_count: int  # config.num_hidden_layers, llama_parallel.yaml:17
    dp: rt.Ranks  # given at build
    tp: rt.Ranks  # given at build

    @classmethod
    def from_config(
        cls,
        config: object,
        *,
        kv_rows: int,
        context: int,
        dp: rt.Ranks = rt.ALONE,
        tp: rt.Ranks = rt.ALONE,
    ) -> Dims:
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
            dp=dp,
            tp=tp,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class State:
    """Tensors that the graphs write in place. Their rows stand in dimension 0."""

    kv: Sequence[Tensor]  # rows 0 belong to padding, llama.yaml:18

    def check(self, dims: Dims, device: torch.device) -> None:
        """Raises StateError for a tensor with other rows or on another device."""
        rt.check_state("kv", self.kv, dims.kv_rows, device, "llama.yaml:18")


def stage_layers(dims: Dims, *, stage: int, of: int) -> rt.LayerRange:
    """The layers of stage number ``stage`` out of ``of``. Raises LayerError."""
    ranges = rt.even_ranges(dims.layer_count, of)  # llama_parallel.yaml:17
    return rt.stage_of(ranges, stage, of)
