"""A toy stage whose parts are methods, so that a test can replace one by a faulty one."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class ToyStage(nn.Module):
    """One attention layer. ``kv`` [rows, hidden] holds what the layer writes for each token."""

    slope: Tensor

    def __init__(self, dims: Any, kv: Tensor, *, first: bool) -> None:
        super().__init__()
        torch.manual_seed(3 + first)
        self.kv = kv
        if first:
            self.embed = nn.Embedding(dims.vocab, dims.hidden)
        self.position = nn.Embedding(dims.longest, dims.hidden)
        self.mix = nn.Linear(dims.hidden, dims.hidden)
        self.register_buffer("slope", torch.linspace(0.5, 1.5, dims.hidden))
        self.requires_grad_(False)

    def enter(self, input_ids: Tensor | None, handed: Any) -> Any:
        return self.embed(input_ids) if handed is None else handed["hidden_states"]

    def leave(self, hidden: Tensor, handed: Any, *, is_last: bool) -> Any:
        return hidden if is_last else {"hidden_states": hidden}

    def write(self, hidden: Tensor, view: Any) -> None:
        self.kv.index_copy_(0, view.slot_mapping, torch.tanh(hidden))


class ToyPrefill(ToyStage):
    is_last = False

    def forward(self, *, input_ids: Tensor | None = None, view: Any, handed: Any = None) -> Any:
        hidden = self.enter(input_ids, handed) + self.position(view.positions)
        hidden = self.scaled(hidden, view)
        hidden = self.extra(hidden, view)
        self.write(hidden, view)
        hidden = hidden + self.attend(hidden, self.mask(view))
        return self.leave(hidden, handed, is_last=self.is_last)

    def scaled(self, hidden: Tensor, view: Any) -> Any:
        view.noise.add_(1)
        by_row = view.weights * view.gain + view.kept + view.noise + view.number
        return hidden * self.slope + by_row[:, None] * 0.01 + view.bias

    def extra(self, hidden: Tensor, view: Any) -> Any:
        """Where tests plant faults of the forward."""
        return hidden

    def requests(self, view: Any) -> Any:
        """The request of each row; rows past live are of none."""
        rows = torch.arange(view.positions.shape[0], device=view.positions.device)
        return torch.searchsorted(view.cu_seqlens[1:].long(), rows, right=True)

    def mask(self, view: Any) -> Any:
        request = self.requests(view)
        rows = torch.arange(request.shape[0], device=request.device)
        return (request[:, None] == request[None]) & (rows[:, None] >= rows[None])

    def attend(self, hidden: Tensor, mask: Tensor) -> Any:
        keys = self.mix(hidden)
        scores = (hidden @ keys.T).masked_fill(~mask, -1e9)
        attended: Tensor = scores.softmax(-1) @ keys
        return attended


class ToyDecode(ToyStage):
    is_last = False

    def forward(self, *, input_ids: Tensor | None = None, view: Any, handed: Any = None) -> Any:
        hidden = self.enter(input_ids, handed) * self.slope
        hidden = self.extra(hidden, view)
        self.write(hidden, view)
        hidden = hidden + self.attend(hidden, view)
        return self.leave(hidden, handed, is_last=self.is_last)

    def extra(self, hidden: Tensor, view: Any) -> Any:
        return hidden

    def mask(self, view: Any) -> Any:
        places = torch.arange(view.slot_table.shape[1], device=view.seq_lens.device)
        return places[None] < view.seq_lens[:, None]

    def attend(self, hidden: Tensor, view: Any) -> Any:
        keys = self.mix(self.kv[view.slot_table])
        scores = (keys @ hidden[:, :, None]).squeeze(-1).masked_fill(~self.mask(view), -1e9)
        attended: Tensor = (scores.softmax(-1)[:, None] @ keys).squeeze(1)
        return attended
