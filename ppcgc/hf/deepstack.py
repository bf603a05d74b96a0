"""The text decoder of Qwen3-VL as a pipeline stage.

Three things set it apart. Rotary positions have three rows (time, height, width). What a prompt
means is decided before the first stage: its input embeddings are composed of token embeddings
and image features by the caller. And features of the vision tower's inner layers are added to
the hidden states after the first decoder layers, to layer ``i`` the ``i``-th of them
("deepstack"): a stage gets the rows from its first layer on, and hands the rest to the next one.

transformers picks the rows of images by a boolean mask, whose size only the device knows. Here
the features stand in a row for every token, zero where there is no image: a plain sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from ppcgc.hf.attention import Attention, PrefillAttention, PrefillLastView, PrefillView
from ppcgc.hf.base import LayerStage, OverPool
from ppcgc.hf.hook import attending
from ppcgc.hf.kv import KVPool, KVShape, allocate
from ppcgc.hf.plan import PassThrough, check_ranges
from ppcgc.hf.runners import Decode
from ppcgc.hf.sharing import attending_copy
from ppcgc.runtime.errors import BuildError


class _Deepstacked(nn.Module):
    """A decoder layer whose output takes its rows of the features, where there are any.

    The decoder hands every keyword that it does not know on to its layers: so ``deepstack``
    (``[layers, tokens, hidden]``) gets here.
    """

    def __init__(self, layer: nn.Module, place: int) -> None:
        super().__init__()
        self.layer, self.place = layer, place

    def forward(
        self, hidden_states: Tensor, *, deepstack: Tensor | None = None, **given: Any
    ) -> Tensor:
        hidden: Tensor = self.layer(hidden_states, **given)
        if deepstack is None or self.place >= deepstack.shape[0]:
            return hidden
        return hidden + deepstack[self.place]


class DeepstackStage(LayerStage):
    """Layers ``[start_layer, end_layer)`` of a Qwen3-VL; weights are the model's own."""

    def __init__(self, model: Any, start: int, end: int) -> None:
        text = attending_copy(model.model.language_model)
        super().__init__(start, end, len(text.layers))
        for i in range(self.layer_count):
            owned = start <= i < end
            text.layers[i] = _Deepstacked(text.layers[i], i - start) if owned else PassThrough()
        if not self.is_first:
            text.embed_tokens = PassThrough()
        if not self.is_last:
            text.norm = PassThrough()
        self.text = text
        self.head = attending_copy(model.lm_head) if self.is_last else None
        config = text.config
        self._kv = KVShape(
            heads=config.num_key_value_heads, key_dim=config.head_dim, value_dim=config.head_dim
        )

    def forward(
        self,
        *,
        input_ids: Tensor | None,
        inputs_embeds: Tensor | None,
        positions: Tensor,
        attention: Attention,
        deepstack: Tensor | None = None,
        logit_rows: Tensor | None = None,
    ) -> Tensor:
        """Run the stage over flat rows.

        ``input_ids`` int64 [tokens] or ``inputs_embeds`` [tokens, hidden], ``positions`` int64
        [3, tokens], ``deepstack`` [layers, tokens, hidden]: features for the stage's first layers.
        Returns hidden states [tokens, hidden]; on the last stage logits [tokens or rows, vocab].
        """
        inputs: dict[str, Any]
        if inputs_embeds is not None:
            inputs = {"inputs_embeds": inputs_embeds[None]}
        elif input_ids is not None and self.is_first:
            inputs = {"input_ids": input_ids[None]}
        else:
            raise BuildError(
                f"stage [{self.start_layer}, {self.end_layer}) of {self.layer_count} layers got "
                "no inputs_embeds: bind them under `forward` in the spec"
            )
        with attending(attention):
            output = self.text(
                **inputs, position_ids=positions[:, None], use_cache=False, deepstack=deepstack
            )
        hidden: Tensor = output.last_hidden_state[0]
        if self.head is None:
            return hidden
        rows = hidden if logit_rows is None else hidden.index_select(0, logit_rows)
        logits: Tensor = self.head(rows)
        return logits

    def new_pool(self, rows: int) -> KVPool:
        """A KV cache of ``rows`` rows for this stage, in its dtype and on its device."""
        weight = next(self.parameters())
        return allocate(
            dict.fromkeys(range(self.start_layer, self.end_layer), self._kv),
            layers=self.layer_count,
            rows=rows,
            dtype=weight.dtype,
            device=weight.device,
        )


def split_text_decoder(model: Any, ranges: Sequence[tuple[int, int]]) -> list[DeepstackStage]:
    """Stages of a ``Qwen3VLForConditionalGeneration``'s text decoder, sharing its weights.

    Raises LayerError where the ranges do not cover its layers in order.
    """
    check_ranges(ranges, len(model.model.language_model.layers))
    return [DeepstackStage(model, start, end) for start, end in ranges]


# ---------------------------------------------------------------- what runners call


class DeepstackPrefill(OverPool[DeepstackStage]):
    """Prompts with images, on a stage that is not the last."""

    def forward(
        self,
        *,
        inputs_embeds: Tensor,
        positions: Tensor,
        deepstack: Tensor | None,
        batch: PrefillView,
    ) -> dict[str, Tensor]:
        """The boundary: hidden states, and the features that later layers take, if any are left.

        ``deepstack`` [layers, tokens, hidden] is None on a stage behind the last layer that
        takes features.
        """
        hidden = self.stage(
            input_ids=None,
            inputs_embeds=inputs_embeds,
            positions=positions,
            attention=PrefillAttention(batch, self.pool),
            deepstack=deepstack,
        )
        owned = self.end_layer - self.start_layer
        if deepstack is None or deepstack.shape[0] <= owned:
            return {"hidden_states": hidden}
        return {"hidden_states": hidden, "deepstack": deepstack[owned:]}


class DeepstackPrefillLast(OverPool[DeepstackStage]):
    """Prompts with images on the last stage: logits [requests, vocab] of each last token."""

    def forward(
        self,
        *,
        inputs_embeds: Tensor,
        positions: Tensor,
        deepstack: Tensor | None,
        batch: PrefillLastView,
    ) -> Tensor:
        logits: Tensor = self.stage(
            input_ids=None,
            inputs_embeds=inputs_embeds,
            positions=positions,
            attention=PrefillAttention(batch, self.pool),
            deepstack=deepstack,
            logit_rows=batch.last_token,
        )
        return logits


class DeepstackDecode(Decode[DeepstackStage]):
    """A decode step on any stage, of text alone."""


def deepstack_prefill_module(
    stage: DeepstackStage, pool: KVPool
) -> DeepstackPrefill | DeepstackPrefillLast:
    """The prefill module for the stage's place."""
    return (DeepstackPrefillLast if stage.is_last else DeepstackPrefill)(stage, pool)
