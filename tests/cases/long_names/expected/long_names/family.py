# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:1e4305ee185251b0d581b9816b805fe79e4b5279f68fcee4c8dec058a34ec0b5
"""Sizes, state and layer ranges: what every runner of the family is built from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from ppcgc import runtime as rt
from torch import Tensor

rt.require_abi(4, __name__)

FINGERPRINT = "sha256:1e4305ee185251b0d581b9816b805fe79e4b5279f68fcee4c8dec058a34ec0b5"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dims:
    """Sizes that are known when a runner is built."""

    # config.abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcde.abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcde, spec.yaml:4
    dim_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_: int
    kv_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_: int  # given at build, spec.yaml:4
    # config.layers_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcde, spec.yaml:11
    layer_count: int

    @classmethod
    def from_config(
        cls,
        config: object,
        *,
        kv_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_: int,
    ) -> Dims:
        """Read the sizes from a model's config. Raises DimError for one that is not there."""
        dim_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ = rt.config_int(
            config,
            "abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcde.abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcde",
        )
        kv_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_ = rt.build_int(
            "kv_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
            kv_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
        )
        layer_count = rt.config_int(
            config,
            "layers_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcde",
        )
        return cls(
            dim_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_=dim_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            kv_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_=kv_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            layer_count=layer_count,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class State:
    """Tensors that the graphs write in place. Their rows stand in dimension 0."""

    # rows 0 belong to padding, spec.yaml:9
    st_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_: Sequence[Tensor]

    def check(self, dims: Dims, device: torch.device) -> None:
        """Raises StateError for a tensor with other rows or on another device."""
        rt.check_state(
            "st_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_",
            self.st_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            dims.kv_abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_,
            device,
            "spec.yaml:9",
        )


def stage_layers(dims: Dims, *, stage: int, of: int) -> rt.LayerRange:
    """The layers of stage number ``stage`` out of ``of``. Raises LayerError."""
    ranges = rt.even_ranges(dims.layer_count, of)  # spec.yaml:11
    return rt.stage_of(ranges, stage, of)
