"""Models of a few exact sums and comparisons, one for each demonstration of the language.

Shape letters: T tokens, R requests, E hidden, N chunks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

ROWS = 4  # rows of tokens of a request under verification; rows of a chunk of a prefix
VOCAB = 32
FINE = 1 / 1024  # what bfloat16 cannot hold beside an integer


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoConfig:
    """Sizes by the names that the specs read."""

    hidden_size: int = 3
    vocab_size: int = VOCAB
    num_hidden_layers: int = 3
    num_adapters: int = 5


def spread(ids: Tensor, width: int, dtype: torch.dtype) -> Tensor:
    """[rows, width]: an id, once, twice, three times."""
    factors = torch.arange(1, width + 1, device=ids.device)
    return (ids[:, None] * factors).to(dtype)


def next_token(ids: Tensor) -> Tensor:
    """What the model says after each token."""
    return (ids * 3 + 1).remainder(VOCAB)


class Verifier:
    """One layer of three: adds its number. The tapped layer 1 also gives float32 states."""

    def __init__(self, layer: int, config: DemoConfig) -> None:
        self.layer, self.config = layer, config
        self.is_last = layer == config.num_hidden_layers - 1

    def forward(
        self,
        *,
        input_ids: Tensor | None,
        drafts: Tensor | None,
        num_draft: int,
        boundary: Mapping[str, Tensor] | None,
    ) -> Mapping[str, Tensor]:
        if boundary is None:
            assert input_ids is not None
            hidden_TE = spread(input_ids, self.config.hidden_size, torch.bfloat16)
        else:
            hidden_TE = boundary["hidden_states"]
        hidden_TE = hidden_TE + self.layer
        if self.layer == 1:
            return {"hidden_states": hidden_TE, "aux": hidden_TE.float() + FINE}
        if not self.is_last:
            return {"hidden_states": hidden_TE}
        assert drafts is not None and boundary is not None
        return {"accepted": accepted_drafts(drafts, num_draft), "aux": boundary["aux"] * 1}


def accepted_drafts(ids_T: Tensor, num_draft: int) -> Tensor:
    """int64 [R]: how many of the first ``num_draft`` drafts are what the model says, in a row."""
    ids_RN = ids_T.view(-1, ROWS)
    right = ids_RN[:, 1 : num_draft + 1] == next_token(ids_RN)[:, :num_draft]
    return right.long().cumprod(dim=1).sum(dim=1)


class Drafter:
    """The state of each request's last accepted token: the large model's and its own."""

    def forward(self, *, input_ids: Tensor, aux: Tensor, accepted: Tensor) -> Tensor:
        last = (accepted.cumsum(0) - 1).clamp(min=0)
        states = aux + spread(input_ids, aux.shape[1], torch.float32)
        return states.index_select(0, last)


class PrefixSums:
    """Sums of a request's cached prefix and of its new tokens, which join the cache."""

    def __init__(self, cache: Tensor) -> None:
        self.cache = cache  # [rows, E]

    def forward(
        self, *, batch: Any, chunk_starts: Tensor | None, chunk_lens: Tensor | None
    ) -> Tensor:
        new_TE = spread(batch.input_ids, self.cache.shape[1], self.cache.dtype)
        self.cache.index_copy_(0, batch.slot_mapping, new_TE)
        ends = batch.cu_seqlens
        request = torch.bucketize(
            torch.arange(len(new_TE), device=ends.device, dtype=ends.dtype), ends[1:], right=True
        )
        sums = new_TE.new_zeros(len(ends), new_TE.shape[1])  # a row more, for padding
        sums = sums.index_add(0, request, new_TE)[:-1]
        if chunk_starts is None or chunk_lens is None:
            return sums
        offset = torch.arange(ROWS, device=ends.device)
        rows = (chunk_starts[..., None] + offset).clamp(max=len(self.cache) - 1)  # [N, R, 4]
        inside = offset < chunk_lens[..., None]
        read = self.cache[rows].masked_fill(~inside[..., None], 0)
        return sums + read.sum(dim=(0, 2))


class Adapted:
    """A token's state, moved by its request's adapter; adapter 0 moves nothing."""

    def __init__(self, config: DemoConfig, device: str) -> None:
        self.config = config
        self.moves = torch.arange(config.num_adapters, device=device) * 100.0

    def forward(self, *, input_ids: Tensor, lora_ids: Tensor | None, seq_lens: Tensor) -> Tensor:
        states = spread(input_ids, self.config.hidden_size, torch.float32) + seq_lens[:, None]
        return states if lora_ids is None else states + self.moves[lora_ids][:, None]
