# ppcgc: generated from specs/bench_llama.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:1a9996329bccfba3693523ddf7406001fb97911900169b5cb732c52ddb53c35b
"""Sizes, state and layer ranges: what every runner of the family is built from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from ppcgc import runtime as rt
from torch import Tensor

rt.require_abi(4, __name__)

FINGERPRINT = "sha256:1a9996329bccfba3693523ddf7406001fb97911900169b5cb732c52ddb53c35b"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dims:
    """Sizes that are known when a runner is built."""

    hidden: int  # config.hidden_size, bench_llama.yaml:9
    max_position: int  # config.max_position_embeddings, bench_llama.yaml:10
    kv_rows: int  # given at build, bench_llama.yaml:11
    layer_count: int  # config.num_hidden_layers, bench_llama.yaml:21

    @classmethod
    def from_config(cls, config: object, *, kv_rows: int) -> Dims:
        """Read the sizes from a model's config. Raises DimError for one that is not there."""
        hidden = rt.config_int(config, "hidden_size")
        max_position = rt.config_int(config, "max_position_embeddings")
        kv_rows = rt.build_int("kv_rows", kv_rows)
        layer_count = rt.config_int(config, "num_hidden_layers")
        return cls(
            hidden=hidden,
            max_position=max_position,
            kv_rows=kv_rows,
            layer_count=layer_count,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class State:
    """Tensors that the graphs write in place. Their rows stand in dimension 0."""

    kv: Sequence[Tensor]  # rows 0 belong to padding, bench_llama.yaml:18

    def check(self, dims: Dims, device: torch.device) -> None:
        """Raises StateError for a tensor with other rows or on another device."""
        rt.check_state("kv", self.kv, dims.kv_rows, device, "bench_llama.yaml:18")


def stage_layers(dims: Dims, *, stage: int, of: int) -> rt.LayerRange:
    """The layers of stage number ``stage`` out of ``of``. Raises LayerError."""
    ranges = rt.even_ranges(dims.layer_count, of)  # bench_llama.yaml:21
    return rt.stage_of(ranges, stage, of)
