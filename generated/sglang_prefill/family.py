# ppcgc: generated from specs/sglang_prefill.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:f8d530ac0644a20edd50ef335b38862d75a55fac961252e19282bd1619178667
"""Sizes, state and layer ranges: what every runner of the family is built from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from ppcgc import runtime as rt
from torch import Tensor

rt.require_abi(4, __name__)

FINGERPRINT = "sha256:f8d530ac0644a20edd50ef335b38862d75a55fac961252e19282bd1619178667"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Choices of a build."""

    multimodal: bool = False  # sglang_prefill.yaml:10
    mamba_track: bool = False  # sglang_prefill.yaml:11
    expert_parallel: bool = False  # sglang_prefill.yaml:12
    sequence_sharded: bool = False  # sglang_prefill.yaml:13
    topk_handed_on: bool = False  # sglang_prefill.yaml:14


DEFAULTS = Options()


@dataclass(frozen=True, slots=True, kw_only=True)
class Dims:
    """Sizes that are known when a runner is built."""

    hidden: int  # config.hidden_size, sglang_prefill.yaml:17
    vocab: int  # config.vocab_size, sglang_prefill.yaml:18
    max_position: int  # config.max_position_embeddings, sglang_prefill.yaml:19
    kv_rows: int  # given at build, sglang_prefill.yaml:20
    mamba_rows: int  # given at build, sglang_prefill.yaml:21
    topk: int  # given at build, sglang_prefill.yaml:22
    layer_count: int  # config.num_hidden_layers, sglang_prefill.yaml:38
    options: Options  # given at build
    dp: rt.Ranks  # given at build
    tp: rt.Ranks  # given at build

    @classmethod
    def from_config(
        cls,
        config: object,
        *,
        kv_rows: int,
        mamba_rows: int,
        topk: int,
        options: Options = DEFAULTS,
        dp: rt.Ranks = rt.ALONE,
        tp: rt.Ranks = rt.ALONE,
    ) -> Dims:
        """Read the sizes from a model's config. Raises DimError for one that is not there."""
        rt.check_options(options, Options)
        hidden = rt.config_int(config, "hidden_size")
        vocab = rt.config_int(config, "vocab_size")
        max_position = rt.config_int(config, "max_position_embeddings")
        kv_rows = rt.build_int("kv_rows", kv_rows)
        mamba_rows = rt.build_int("mamba_rows", mamba_rows)
        topk = rt.build_int("topk", topk)
        layer_count = rt.config_int(config, "num_hidden_layers")
        return cls(
            hidden=hidden,
            vocab=vocab,
            max_position=max_position,
            kv_rows=kv_rows,
            mamba_rows=mamba_rows,
            topk=topk,
            layer_count=layer_count,
            options=options,
            dp=dp,
            tp=tp,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class State:
    """Tensors that the graphs write in place. Their rows stand in dimension 0."""

    kv: Sequence[Tensor]  # rows 0 belong to padding, sglang_prefill.yaml:34
    mamba: Sequence[Tensor]  # rows 0 belong to padding, sglang_prefill.yaml:35

    def check(self, dims: Dims, device: torch.device) -> None:
        """Raises StateError for a tensor with other rows or on another device."""
        rt.check_state("kv", self.kv, dims.kv_rows, device, "sglang_prefill.yaml:34")
        rt.check_state("mamba", self.mamba, dims.mamba_rows, device, "sglang_prefill.yaml:35")


def stage_layers(dims: Dims, *, stage: int, of: int) -> rt.LayerRange:
    """The layers of stage number ``stage`` out of ``of``. Raises LayerError."""
    ranges = rt.even_ranges(dims.layer_count, of)  # sglang_prefill.yaml:38
    return rt.stage_of(ranges, stage, of)
