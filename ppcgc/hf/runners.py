"""What a generated runner calls: a stage with one kind of attention.

A runner's view is one class for each place in the pipeline, and the attention for it is known
when the runner is built. So there is one thin module for each kind, all sharing the stage's
weights, and none of them asks what it was given.
"""

from __future__ import annotations

from torch import Tensor, nn

from ppcgc.hf.attention import (
    DecodeAttention,
    DecodeView,
    PrefillAttention,
    PrefillLastView,
    PrefillView,
)
from ppcgc.hf.kv import KVPool
from ppcgc.hf.stage import HFStage
from ppcgc.runtime.errors import BuildError


class _Runnable(nn.Module):
    start_layer: int
    end_layer: int

    def __init__(self, stage: HFStage, pool: KVPool) -> None:
        super().__init__()
        self.start_layer, self.end_layer = stage.start_layer, stage.end_layer
        self.stage, self.pool = stage, pool
        for layer_id in range(stage.start_layer, stage.end_layer):
            pool.layer(layer_id)  # a pool of another stage is refused here, not in a graph


class HFPrefill(_Runnable):
    """Prefill on a stage that is not the last: hidden states [tokens, hidden]."""

    def __init__(self, stage: HFStage, pool: KVPool) -> None:
        super().__init__(stage, pool)
        if stage.is_last:
            raise BuildError(
                f"stage [{stage.start_layer}, {stage.end_layer}) is the last: use HFPrefillLast"
            )

    def forward(
        self,
        *,
        input_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        positions: Tensor,
        batch: PrefillView,
    ) -> Tensor:
        hidden: Tensor = self.stage(
            input_ids=input_ids,
            inputs_embeds=inputs_embeds,
            positions=positions,
            attention=PrefillAttention(batch, self.pool),
        )
        return hidden


class HFPrefillLast(_Runnable):
    """Prefill on the last stage: logits [requests, vocab] of each prompt's last token."""

    def __init__(self, stage: HFStage, pool: KVPool) -> None:
        super().__init__(stage, pool)
        if not stage.is_last:
            raise BuildError(
                f"stage [{stage.start_layer}, {stage.end_layer}) is not the last of "
                f"{stage.layer_count} layers: use HFPrefill"
            )

    def forward(
        self,
        *,
        input_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        positions: Tensor,
        batch: PrefillLastView,
    ) -> Tensor:
        logits: Tensor = self.stage(
            input_ids=input_ids,
            inputs_embeds=inputs_embeds,
            positions=positions,
            attention=PrefillAttention(batch, self.pool),
            logit_rows=batch.last_token,
        )
        return logits


class HFDecode(_Runnable):
    """A decode step on any stage: [requests, hidden], on the last stage [requests, vocab]."""

    def forward(
        self,
        *,
        input_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        positions: Tensor,
        batch: DecodeView,
    ) -> Tensor:
        result: Tensor = self.stage(
            input_ids=input_ids,
            inputs_embeds=inputs_embeds,
            positions=positions,
            attention=DecodeAttention(batch, self.pool),
        )
        return result


def prefill_module(stage: HFStage, pool: KVPool) -> HFPrefill | HFPrefillLast:
    """The prefill module for the stage's place."""
    return HFPrefillLast(stage, pool) if stage.is_last else HFPrefill(stage, pool)
