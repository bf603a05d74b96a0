"""The model of ``specs/toy.yaml``: exact integer sums, in which a padded or stale row would show.

Every layer mixes all rows of every slot into every token, so a row past live that is not reset
changes the numbers of live rows. Values stay small integers, so float32 sums are exact and a
replay equals an eager step of any shape bit by bit.
"""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from ppcgc import runtime as rt

HIDDEN = 3
VOCAB = 7
POOL_ROWS = 40
RESERVED = (2, 5)
LAYERS = 3
EMPTY = -1000.0  # what a row of the pool holds before anybody writes it


class ToyStage(nn.Module):
    """Layers ``[start_layer, end_layer)``; writes its tokens to the pool, then mixes requests."""

    def __init__(self, start: int, end: int) -> None:
        super().__init__()
        self.start_layer, self.end_layer = start, end
        self.pool = torch.full((POOL_ROWS, HIDDEN), EMPTY)
        self.seen: list[dict[str, Any]] = []  # keywords of every call of the Python
        self.table = torch.arange(VOCAB * HIDDEN).view(VOCAB, HIDDEN).float()

    def forward(
        self,
        *,
        ids: Tensor | None,
        view: Any,
        boundary: Any = None,
        padded: int,
        mode: str,
    ) -> Any:
        self.seen.append({"ids": ids, "boundary": boundary, "padded": padded, "mode": mode})
        hidden_TH = self._start(ids) if boundary is None else boundary.hidden_states
        residual_TH = torch.zeros_like(hidden_TH) if boundary is None else boundary["residual"].T
        everything = hidden_TH.sum(0) + residual_TH.sum(0) if boundary is not None else 0
        everything = everything + view.positions.sum() + view.scale.sum() + view.count
        request = torch.bucketize(
            torch.arange(padded), view.offsets[1:].long(), right=True
        )  # padding rows are of a request of their own
        requests = view.offsets.shape[0] - 1
        member = torch.stack([request == number for number in range(requests)]).float()
        for layer in range(self.start_layer, self.end_layer):
            residual_TH = residual_TH + hidden_TH
            sums_RH = member @ hidden_TH
            hidden_TH = hidden_TH + member.T @ sums_RH + everything + layer
        self.pool.index_copy_(0, view.mapping, hidden_TH)
        if self.end_layer == LAYERS:
            hidden_TH = hidden_TH + residual_TH
            return hidden_TH, member @ hidden_TH, hidden_TH
        return {"residual": residual_TH.T, "hidden_states": hidden_TH}

    def _start(self, ids: Tensor | None) -> Tensor:
        assert ids is not None
        # id 0 is padding and also a word: its row is as loud as any other
        return self.table[ids] + 1


def toy_batch(*lengths: int, seed: int = 0) -> SimpleNamespace:
    """Packed requests of these lengths; every integer is small and none looks like padding."""
    make = torch.Generator().manual_seed(seed)
    tokens = sum(lengths)
    offsets = [0]
    for length in lengths:
        offsets.append(offsets[-1] + length)
    free = [row for row in range(POOL_ROWS) if row not in RESERVED]
    order = torch.randperm(len(free), generator=make)[:tokens]
    return SimpleNamespace(
        num_tokens=tokens,
        num_requests=len(lengths),
        ids=torch.randint(1, VOCAB, (tokens,), generator=make),
        positions=torch.tensor([p + 1 for n in lengths for p in range(n)], dtype=torch.int64),
        mapping=torch.tensor([free[i] for i in order.tolist()], dtype=torch.int64),
        offsets=torch.tensor(offsets, dtype=torch.int32),
        scale=torch.randint(1, 5, (tokens,), generator=make).float(),
    )


CLASSES = {
    rt.Place.ONLY: "Only",
    rt.Place.FIRST: "First",
    rt.Place.MIDDLE: "Middle",
    rt.Place.LAST: "Last",
}


def place_of(stage: int, of: int) -> rt.Place:
    if of == 1:
        return rt.Place.ONLY
    if stage in (0, of - 1):
        return rt.Place.LAST if stage else rt.Place.FIRST
    return rt.Place.MIDDLE


def toy_stages(
    toy: Any, of: int, *, runner: str = "Prefill", backend: Any = None, fed: bool = False
) -> list[Any]:
    """The runners of a pipeline of ``of`` stages, not captured yet."""
    backend = backend or rt.open_backend("cpu")
    dims = toy.Dims.from_config({"hidden": HIDDEN, "vocab": VOCAB}, pool_rows=POOL_ROWS)
    runners = []
    for stage in range(of):
        owned = toy.stage_layers(dims, stage=stage, of=of) if of < 3 else one_layer(stage)
        model = ToyStage(owned.start, owned.end)
        made = getattr(toy, runner + CLASSES[place_of(stage, of)])(
            model=model,
            layers=owned,
            dims=dims,
            state=toy.State(pool=[model.pool]),
            dtype=torch.float32,
            backend=backend,
        )
        runners.append(made)
    if fed:
        for sender, receiver in pairwise(runners):
            sender.feed(receiver)
    return runners


def one_layer(stage: int) -> rt.LayerRange:
    return rt.LayerRange(stage, stage + 1, LAYERS)


def through(runners: list[Any], batch: Any, how: str = "run") -> Any:
    """One step through all stages: ``run`` or ``eager``."""
    first, *later = runners
    handed = getattr(first, how)(batch)
    for runner in later:
        handed = getattr(runner, how)(batch, handed)
    return handed
