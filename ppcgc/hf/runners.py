"""What a generated runner calls: a stage with one kind of attention.

A runner's view is one class for each place in the pipeline, and the attention for it is known
when the runner is built. So there is one thin module for each kind, all sharing the stage's
weights, and none of them asks what it was given.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from torch import Tensor

from ppcgc.hf.attention import (
    Attention,
    DecodeAttention,
    DecodeView,
    PrefillAttention,
    PrefillLastView,
    PrefillView,
)
from ppcgc.hf.base import OverPool, StageT
from ppcgc.hf.kv import KVPool
from ppcgc.hf.stage import HFStage
from ppcgc.runtime.errors import BuildError

ViewT = TypeVar("ViewT")


class Runnable(OverPool[StageT], ABC, Generic[StageT, ViewT]):
    """One kind of attention over a stage. ``ViewT``: what that attention reads of a runner's view.

    Raises LayerError for a pool that lacks a layer of the stage.
    """

    @abstractmethod
    def attention(self, batch: ViewT) -> Attention:
        """The attention of one forward."""

    def logit_rows(self, batch: ViewT) -> Tensor | None:
        """int64 [rows]: which tokens the last stage gives logits for; None for all of them."""
        return None

    def forward(
        self,
        *,
        input_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        positions: Tensor,
        batch: ViewT,
    ) -> Tensor:
        """Hidden states [tokens, hidden]; on the last stage logits [tokens or rows, vocab]."""
        result: Tensor = self.stage(
            input_ids=input_ids,
            inputs_embeds=inputs_embeds,
            positions=positions,
            attention=self.attention(batch),
            logit_rows=self.logit_rows(batch),
        )
        return result


def check_last(stage: HFStage, *, last: bool, module: str, other: str) -> None:
    """Raise BuildError for a module of the last stage on another one, or the other way round."""
    if stage.is_last is not last:
        raise BuildError(
            f"{module}: stage [{stage.start_layer}, {stage.end_layer}) of {stage.layer_count} "
            f"layers is {'not ' if last else ''}the last: use {other}"
        )


class HFPrefill(Runnable[HFStage, PrefillView]):
    """Prefill on a stage that is not the last: hidden states [tokens, hidden]."""

    def __init__(self, stage: HFStage, pool: KVPool) -> None:
        super().__init__(stage, pool)
        check_last(stage, last=False, module="HFPrefill", other="HFPrefillLast")

    def attention(self, batch: PrefillView) -> Attention:
        return PrefillAttention(batch, self.pool)


class HFPrefillLast(Runnable[HFStage, PrefillLastView]):
    """Prefill on the last stage: logits [requests, vocab] of each prompt's last token."""

    def __init__(self, stage: HFStage, pool: KVPool) -> None:
        super().__init__(stage, pool)
        check_last(stage, last=True, module="HFPrefillLast", other="HFPrefill")

    def attention(self, batch: PrefillLastView) -> Attention:
        return PrefillAttention(batch, self.pool)

    def logit_rows(self, batch: PrefillLastView) -> Tensor:
        return batch.last_token


class Decode(Runnable[StageT, DecodeView]):
    """A decode step on any stage: [requests, hidden], on the last stage [requests, vocab]."""

    def attention(self, batch: DecodeView) -> Attention:
        return DecodeAttention(batch, self.pool)


class HFDecode(Decode[HFStage]):
    """A decode step of a model with a pipeline plan."""


def prefill_module(stage: HFStage, pool: KVPool) -> HFPrefill | HFPrefillLast:
    """The prefill module for the stage's place."""
    return HFPrefillLast(stage, pool) if stage.is_last else HFPrefill(stage, pool)
