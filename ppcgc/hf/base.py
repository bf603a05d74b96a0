"""What stages of all kinds have in common, and the modules that runners call."""

from __future__ import annotations

from typing import Generic, TypeVar

from torch import nn

from ppcgc.hf.kv import KVPool


class LayerStage(nn.Module):
    """Layers ``[start_layer, end_layer)`` of a decoder with ``layer_count`` of them."""

    start_layer: int
    end_layer: int

    def __init__(self, start: int, end: int, layer_count: int) -> None:
        super().__init__()
        self.start_layer, self.end_layer, self.layer_count = start, end, layer_count
        self.is_first, self.is_last = start == 0, end == layer_count


StageT = TypeVar("StageT", bound=LayerStage)


class OverPool(nn.Module, Generic[StageT]):
    """A stage over one pool of keys and values: what a runner is built with.

    Raises LayerError for a pool that lacks a layer of the stage.
    """

    start_layer: int
    end_layer: int

    def __init__(self, stage: StageT, pool: KVPool) -> None:
        super().__init__()
        self.start_layer, self.end_layer = stage.start_layer, stage.end_layer
        self.stage, self.pool = stage, pool
        for layer_id in range(stage.start_layer, stage.end_layer):
            pool.layer(layer_id)  # a pool of another stage is refused here, not in a graph
