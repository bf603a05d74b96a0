# ppcgc: generated from specs/sglang_decode.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:c4a62b50f35e2c9ca438a2bfdd47451d633610f72adfbedfcccc3d09e8502cf3
"""Sizes, state and layer ranges: what every runner of the family is built from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from ppcgc import runtime as rt
from torch import Tensor

rt.require_abi(4, __name__)

FINGERPRINT = "sha256:c4a62b50f35e2c9ca438a2bfdd47451d633610f72adfbedfcccc3d09e8502cf3"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Choices of a build."""

    mrope: bool = False  # sglang_decode.yaml:11
    mamba_track: bool = False  # sglang_decode.yaml:12
    encoder_decoder: bool = False  # sglang_decode.yaml:13
    expert_parallel: bool = False  # sglang_decode.yaml:14
    sequence_sharded: bool = False  # sglang_decode.yaml:15
    gathered_buffer: bool = False  # sglang_decode.yaml:16
    mlp_tp_gather: bool = False  # sglang_decode.yaml:17
    ngram_embedding: bool = False  # sglang_decode.yaml:18
    canary: bool = False  # sglang_decode.yaml:19
    topk_handed_on: bool = False  # sglang_decode.yaml:20


DEFAULTS = Options()


@dataclass(frozen=True, slots=True, kw_only=True)
class Dims:
    """Sizes that are known when a runner is built."""

    hidden: int  # config.hidden_size, sglang_decode.yaml:23
    vocab: int  # config.vocab_size, sglang_decode.yaml:24
    max_position: int  # config.max_position_embeddings, sglang_decode.yaml:25
    kv_rows: int  # given at build, sglang_decode.yaml:26
    mamba_rows: int  # given at build, sglang_decode.yaml:27
    request_rows: int  # given at build, sglang_decode.yaml:28
    seq_len_fill: int  # given at build, sglang_decode.yaml:29
    encoder_len_fill: int  # given at build, sglang_decode.yaml:30
    topk: int  # given at build, sglang_decode.yaml:31
    layer_count: int  # config.num_hidden_layers, sglang_decode.yaml:44
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
        request_rows: int,
        seq_len_fill: int,
        encoder_len_fill: int,
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
        request_rows = rt.build_int("request_rows", request_rows)
        seq_len_fill = rt.build_int("seq_len_fill", seq_len_fill)
        encoder_len_fill = rt.build_int("encoder_len_fill", encoder_len_fill)
        topk = rt.build_int("topk", topk)
        layer_count = rt.config_int(config, "num_hidden_layers")
        return cls(
            hidden=hidden,
            vocab=vocab,
            max_position=max_position,
            kv_rows=kv_rows,
            mamba_rows=mamba_rows,
            request_rows=request_rows,
            seq_len_fill=seq_len_fill,
            encoder_len_fill=encoder_len_fill,
            topk=topk,
            layer_count=layer_count,
            options=options,
            dp=dp,
            tp=tp,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class State:
    """Tensors that the graphs write in place. Their rows stand in dimension 0."""

    kv: Sequence[Tensor]  # rows 0 belong to padding, sglang_decode.yaml:40
    mamba: Sequence[Tensor]  # rows 0 belong to padding, sglang_decode.yaml:41

    def check(self, dims: Dims, device: torch.device) -> None:
        """Raises StateError for a tensor with other rows or on another device."""
        rt.check_state("kv", self.kv, dims.kv_rows, device, "sglang_decode.yaml:40")
        rt.check_state("mamba", self.mamba, dims.mamba_rows, device, "sglang_decode.yaml:41")


def stage_layers(dims: Dims, *, stage: int, of: int) -> rt.LayerRange:
    """The layers of stage number ``stage`` out of ``of``. Raises LayerError."""
    ranges = rt.even_ranges(dims.layer_count, of)  # sglang_decode.yaml:44
    return rt.stage_of(ranges, stage, of)
