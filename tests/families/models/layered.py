"""A range of decoder layers with what stands before or after them, taken from a whole model.

The families here hand over more than hidden states, or need more of a batch than ``HFStage``
knows. Each one's stage runs its own layers one by one; what they share is here.

Shape letters: T tokens, R requests, E hidden, V vocabulary.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from ppcgc.hf.hook import ATTENTION_NAME


class LayeredStage(nn.Module):
    """Layers ``[start_layer, end_layer)`` of a transformers model, copied with their weights.

    The copy has a config of its own, so that the whole model keeps its attention.
    """

    start_layer: int
    end_layer: int

    def __init__(self, model: Any, start: int, end: int) -> None:
        super().__init__()
        model = self.copy_of(model)
        model.config._attn_implementation = ATTENTION_NAME
        self.config = model.config
        self.start_layer, self.end_layer = start, end
        self.layer_count = len(model.model.layers)
        self.is_first, self.is_last = start == 0, end == self.layer_count
        self.layers = nn.ModuleDict({str(i): model.model.layers[i] for i in range(start, end)})
        self.rotary_emb = model.model.rotary_emb
        if self.is_first:
            self.embed_tokens = model.model.embed_tokens
        if self.is_last:
            self.norm, self.lm_head = model.model.norm, model.lm_head

    @staticmethod
    def copy_of(module: Any) -> Any:
        """A copy for inference, with weights and config of its own."""
        return copy.deepcopy(module).requires_grad_(False).eval()

    def owned(self) -> Iterator[tuple[int, Any]]:
        """Global layer ids and layers."""
        return ((int(name), layer) for name, layer in self.layers.items())

    def logits(self, hidden_TE: Tensor, rows: Tensor | None) -> Tensor:
        """[T, V], or [R, V] for ``rows`` (int64 [R])."""
        if rows is not None:
            hidden_TE = hidden_TE.index_select(0, rows)
        out: Tensor = self.lm_head(self.norm(hidden_TE))
        return out

    @property
    def weight(self) -> Tensor:
        """Any weight: what new tensors take their dtype and device from."""
        return next(self.parameters())


def logit_rows(batch: Any, is_last: bool) -> Tensor | None:
    """The rows of a prefill whose logits are wanted: on the last stage only."""
    rows: Tensor | None = batch.last_token if is_last else None
    return rows


@torch.no_grad()
def alone(model: Any, ids: list[int]) -> Tensor:
    """Logits [V] of the last token by the unsplit model, one sequence without any cache."""
    device = next(model.parameters()).device
    ids_1T = torch.tensor([ids], device=device)
    logits: Tensor = model(input_ids=ids_1T, use_cache=False).logits[0, -1]
    return logits
