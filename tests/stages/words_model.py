"""A model of one multiplication that reads and writes the slots of ``specs/words.yaml``."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

HIDDEN = 6
REQUESTS = 4
BUCKETS = (4, 8, 16)


class WordsModel(nn.Module):
    """The first stage spreads ids over hidden columns, the last one gives four outputs."""

    def __init__(self, pool: Tensor) -> None:
        super().__init__()
        self.pool = pool

    def forward(
        self,
        *,
        view: Any,
        rare: Tensor | None,
        hidden_states: Tensor | None,
        count: Tensor | None,
        starts: Tensor | None,
    ) -> dict[str, Tensor]:
        view.scratch.copy_(view.weights[:, None].expand(-1, HIDDEN))
        view.noise.mul_(2)
        added = torch.zeros_like(view.mask) if rare is None else rare
        self.pool.index_copy_(0, view.written, view.ids.float())
        if hidden_states is None:
            return {
                "hidden_states": view.ids[:, None] * view.scratch,
                "turned": torch.stack([view.ids.float(), -view.ids.float()]),
                "count": view.scales.int() + view.host_noise.sum().int(),
                "starts": view.ends + 1,
            }
        assert count is not None
        assert starts is not None
        lengths = view.lengths.float()
        return {
            "first": hidden_states + view.width,
            "second": view.turned[1] + view.drafted + view.gain + added + view.noise,
            "third": lengths[None] * torch.arange(1, HIDDEN + 1)[:, None],
            "fourth": (count.sum() + view.bias.sum()).float().expand(REQUESTS),
        }


def words_batch(tokens: int, requests: int, seed: int = 0, **changed: Any) -> SimpleNamespace:
    """A batch whose live values are all different from every padding of the spec."""
    make = torch.Generator().manual_seed(seed)

    def integers(*shape: int, dtype: torch.dtype = torch.int64) -> Tensor:
        return torch.randint(20, 90, shape, generator=make, dtype=dtype)

    def floats(*shape: int) -> Tensor:
        return torch.rand(shape, generator=make) + 20

    lengths = [tokens // requests] * requests if requests else []
    if requests:
        lengths[0] += tokens - sum(lengths)
    ends = torch.tensor([0, *lengths], dtype=torch.int32).cumsum(0, dtype=torch.int32)
    batch = SimpleNamespace(
        counts=SimpleNamespace(requests=requests),
        ids=integers(tokens),
        weights=floats(tokens),
        starts=ends[:requests],
        ends=ends,
        lengths=torch.tensor(lengths, dtype=torch.int32),
        places=integers(3, tokens),
        corners=integers(2, tokens, dtype=torch.int32),
        pairs=integers(2 * tokens + 1, HIDDEN, dtype=torch.int16),
        seen=torch.zeros(tokens, dtype=torch.bool),
        mm=SimpleNamespace(
            extra=integers(tokens),
            scales=integers(3),
            grid=integers(tokens),
            bias=floats(tokens),
        ),
        written=torch.arange(1, tokens + 1),
        mask=floats(tokens),
        positions=integers(3, tokens),
        tail=floats(requests + 1, HIDDEN),
        spread=integers(tokens),
        kept=floats(tokens),
        kept_here=integers(tokens, dtype=torch.int32),
        noise=floats(tokens),
        host_noise=integers(2),
        bias=floats(3),
        rare=floats(tokens),
        handed=floats(1),
        output=floats(1),
    )
    for name, value in changed.items():
        setattr(batch, name, value)
    return batch
