"""A run of a model's layers as a stage of a pipeline, wherever in it."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.batches import Given
from benchmarks.model import HandedOver, Stage, View
from benchmarks.shape import Shape

KINDS_OF_ROWS = 64  # of the table that stands for the embeddings


class Part(Stage):
    """``shape.layers`` layers from ``start`` on.

    The first stage begins with rows of a table, by position; the last ends with the sum of the
    hidden states and the residual stream.
    """

    table: Tensor

    def __init__(self, shape: Shape, start: int) -> None:
        super().__init__(shape)
        self.start_layer, self.end_layer = start, start + shape.layers
        if start == 0:
            rows = torch.randn(KINDS_OF_ROWS, shape.hidden_size)
            self.register_buffer("table", rows, persistent=False)

    @property
    def last(self) -> bool:
        return self.end_layer == self.shape.num_hidden_layers

    def forward(  # type: ignore[override]  # the last gives a tensor, the first takes none
        self, *, positions: Tensor, batch: View, pp_proxy_tensors: HandedOver | None
    ) -> dict[str, Tensor] | Tensor:
        given = pp_proxy_tensors
        if given is None:
            rows = self.table[positions.remainder(KINDS_OF_ROWS)]
            given = Given(hidden_states=rows, residual=torch.zeros_like(rows))
        made = super().forward(positions=positions, batch=batch, pp_proxy_tensors=given)
        return made["hidden_states"] + made["residual"] if self.last else made
