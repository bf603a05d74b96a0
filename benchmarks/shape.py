"""Sizes of the measured stage."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A stage of a Llama: ``layers`` are its own, out of ``hidden_layers`` of the model.

    Field names that a model's config has too are spelled as there.
    """

    name: str
    layers: int
    num_hidden_layers: int
    hidden_size: int
    heads: int
    kv_heads: int
    inner: int
    max_position_embeddings: int
    kv_rows: int
    dtype: torch.dtype

    @property
    def head_dim(self) -> int:
        return self.hidden_size // self.heads

    @property
    def start(self) -> int:
        """The first layer: the stage stands in the middle of its pipeline."""
        return (self.num_hidden_layers - self.layers) // 2


LLAMA_8B = Shape(
    name="16 layers of Llama-3.1-8B",
    layers=16,
    num_hidden_layers=32,
    hidden_size=4096,
    heads=32,
    kv_heads=8,
    inner=14336,
    max_position_embeddings=131072,
    kv_rows=8192,
    dtype=torch.bfloat16,
)
TINY = Shape(
    name="2 layers, hidden 32",
    layers=2,
    num_hidden_layers=4,
    hidden_size=32,
    heads=4,
    kv_heads=2,
    inner=64,
    max_position_embeddings=131072,
    kv_rows=4096,
    dtype=torch.float32,
)
