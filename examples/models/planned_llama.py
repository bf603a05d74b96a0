"""The stage of ``residual_llama`` with attention that a hook planned: the same for all runners."""

from __future__ import annotations

from torch import Tensor, nn

from examples.models.residual_llama import HandedOver, ResidualLlamaStage
from ppcgc.hf.attention import Attention


class PlannedLlama(nn.Module):
    """Packed prompts or decode steps, by what was planned for ``attention``."""

    start_layer: int
    end_layer: int

    def __init__(self, stage: ResidualLlamaStage) -> None:
        super().__init__()
        self.start_layer, self.end_layer = stage.start_layer, stage.end_layer
        self.stage = stage

    def forward(
        self,
        *,
        input_ids: Tensor | None = None,
        positions: Tensor,
        batch: object,
        attention: Attention,
        pp_proxy_tensors: HandedOver | None = None,
    ) -> HandedOver | Tensor:
        return self.stage.forward(input_ids, positions, attention, pp_proxy_tensors)
