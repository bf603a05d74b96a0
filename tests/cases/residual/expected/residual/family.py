# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:576fa7013ef35090361e995f229ce7b930a807defcec26456618bc12251e8df0
"""Sizes, state and layer ranges: what every runner of the family is built from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from ppcgc import runtime as rt
from torch import Tensor

rt.require_abi(4, __name__)

FINGERPRINT = "sha256:576fa7013ef35090361e995f229ce7b930a807defcec26456618bc12251e8df0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dims:
    """Sizes that are known when a runner is built."""

    hidden: int  # config.hidden_size, spec.yaml:5
    context: int  # given at build, spec.yaml:6
    pages: int  # given at build, spec.yaml:7
    page: int  # computed, spec.yaml:8
    layer_count: int  # config.num_hidden_layers, spec.yaml:15

    @classmethod
    def from_config(cls, config: object, *, context: int, pages: int) -> Dims:
        """Read the sizes from a model's config. Raises DimError for one that is not there."""
        hidden = rt.config_int(config, "hidden_size")
        context = rt.build_int("context", context)
        pages = rt.build_int("pages", pages)
        page = 4
        layer_count = rt.config_int(config, "num_hidden_layers")
        return cls(hidden=hidden, context=context, pages=pages, page=page, layer_count=layer_count)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class State:
    """Tensors that the graphs write in place. Their rows stand in dimension 0."""

    kv: Sequence[Tensor]  # rows 0, 1 belong to padding, spec.yaml:13

    def check(self, dims: Dims, device: torch.device) -> None:
        """Raises StateError for a tensor with other rows or on another device."""
        rt.check_state("kv", self.kv, dims.pages * dims.page, device, "spec.yaml:13")


def stage_layers(dims: Dims, *, stage: int, of: int) -> rt.LayerRange:
    """The layers of stage number ``stage`` out of ``of``. Raises LayerError."""
    ranges = rt.even_ranges(dims.layer_count, of)  # spec.yaml:15
    return rt.stage_of(ranges, stage, of)
