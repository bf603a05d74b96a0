"""A small tensor-parallel model behind the runners of llama_parallel, and its unsplit twin.

A layer: norm, up (columns split over tp), a look into the cache, down (rows split), residual. In
prefill each rank owns a part of the rows between layers: it gathers them before ``up`` and gets
its part of the sum back from a reduce-scatter. In decode all ranks have all rows, and sum.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed import _functional_collectives as functional
from toy_pipeline import CONFIG, CONTEXT, HIDDEN, KV_ROWS, VOCAB, Built, place_of

from generated import llama_parallel as family
from ppcgc import runtime as rt

INNER = 12
CLASSES: dict[str, dict[str, Any]] = {
    "prefill": {"first": family.PrefillFirst, "last": family.PrefillLast},
    "decode": {"first": family.DecodeFirst, "last": family.DecodeLast},
}
for name, only in (("prefill", "PrefillOnly"), ("decode", "DecodeOnly")):
    CLASSES[name]["only"] = getattr(family, only)

_gather = getattr(dist, "all_gather_single", dist.all_gather_into_tensor)
_scatter = getattr(dist, "reduce_scatter_single", dist.reduce_scatter_tensor)


def weights_of(layers: int) -> tuple[Tensor, Tensor, Tensor]:
    """The table, up and down of all layers, whole."""
    generator = torch.Generator().manual_seed(11)
    table = torch.randn(VOCAB, HIDDEN, generator=generator)
    up = torch.randn(layers, HIDDEN, INNER, generator=generator) / 2
    down = torch.randn(layers, INNER, HIDDEN, generator=generator) / 2
    return table, up, down


def norm(rows: Tensor) -> Tensor:
    return rows * torch.rsqrt(rows.pow(2).mean(-1, keepdim=True) + 1e-6)


def looked_up(inner: Tensor, pool: Tensor, table: Tensor, lengths: Tensor) -> Tensor:
    """Add the mean of each request's first ``lengths`` rows of the cache."""
    there = torch.arange(table.shape[1], device=table.device) < lengths[:, None]
    mean = (pool[table] * there[..., None]).sum(1) / lengths.clamp(min=1)[:, None]
    return inner + mean


class ParallelStage(nn.Module):
    """One stage of one rank of tp: its columns of ``up``, its rows of ``down``."""

    def __init__(self, layers: rt.LayerRange, kv: list[Tensor], tp: rt.Ranks) -> None:
        super().__init__()
        self.start_layer, self.end_layer = layers.start, layers.end
        self.last = layers.end == layers.count
        self.tp, self.kv, self.calls = tp, kv, 0
        table, up, down = (part.to(kv[0].device) for part in weights_of(layers.count))
        width = INNER // tp.size
        columns = slice(tp.rank * width, (tp.rank + 1) * width)
        self.table = table
        self.up = up[layers.start : layers.end, :, columns].contiguous()
        self.down = down[layers.start : layers.end, columns].contiguous()

    def forward(
        self, *, input_ids: Any, positions: Tensor, batch: Any, pp_proxy_tensors: Any
    ) -> Any:
        split = hasattr(batch, "cu_seqlens")  # prefill: ranks own parts of the rows
        rows = positions.shape[0]
        if pp_proxy_tensors is None:
            hidden = self.table[input_ids]
            residual = positions[:, None].to(hidden.dtype) / 100 + torch.zeros_like(hidden)
            if split:
                hidden, residual = self.own(hidden), self.own(residual)
        else:
            hidden, residual = pp_proxy_tensors["hidden_states"], pp_proxy_tensors["residual"]
        for up, down, pool in zip(self.up, self.down, self.kv, strict=True):
            residual = residual + hidden
            normed = norm(residual)
            inner = (self.gathered(normed, rows) if split else normed) @ up
            pool.index_copy_(0, batch.slot_mapping, inner)
            if not split:
                inner = looked_up(inner, pool, batch.slot_table, batch.seq_lens)
            partial = torch.tanh(inner) @ down
            hidden = self.own_sum(partial) if split else self.summed(partial)
        if not self.last:
            return {"hidden_states": hidden, "residual": residual}
        result = hidden + residual
        return self.gathered(result, rows) if split else result

    def own(self, rows: Tensor) -> Tensor:
        """This rank's part; shorter in eager steps whose rows do not divide."""
        each = -(-rows.shape[0] // self.tp.size)
        return rows[self.tp.rank * each : (self.tp.rank + 1) * each].contiguous()

    def gathered(self, part: Tensor, rows: int) -> Tensor:
        if self.tp.size == 1:
            return part
        each = -(-rows // self.tp.size)
        even = part.new_zeros(each, part.shape[1])
        even[: part.shape[0]] = part
        whole = part.new_empty(each * self.tp.size, part.shape[1])
        _gather(whole, even, group=self.tp.group)
        return whole[:rows]

    def own_sum(self, partial: Tensor) -> Tensor:
        if self.tp.size == 1:
            return partial
        rows = partial.shape[0]
        each = -(-rows // self.tp.size)
        even = partial.new_zeros(each * self.tp.size, partial.shape[1])
        even[:rows] = partial
        part = partial.new_empty(each, partial.shape[1])
        _scatter(part, even, group=self.tp.group)
        return part[: min(max(rows - self.tp.rank * each, 0), each)]

    def summed(self, partial: Tensor) -> Tensor:
        self.calls += 1
        if self.tp.size == 1:
            return partial
        summed: Tensor = functional.all_reduce(partial, "sum", self.tp.group)
        return summed


class Whole:
    """The unsplit model with a cache of its own, in plain torch: live rows alone, no ranks."""

    def __init__(self, layers: int = 4) -> None:
        self.table, self.up, self.down = weights_of(layers)
        self.kv = [torch.zeros(KV_ROWS, INNER) for _ in range(layers)]

    def __call__(self, name: str, batch: Any) -> Tensor:
        ids, positions = batch.input_ids.cpu(), batch.positions.cpu()
        hidden = self.table[ids]
        residual = (positions / 100)[:, None].expand(-1, HIDDEN)
        for up, down, pool in zip(self.up, self.down, self.kv, strict=True):
            residual = residual + hidden
            inner = norm(residual) @ up
            pool[batch.slot_mapping.cpu()] = inner
            if name == "decode":
                means = [
                    pool[slots[:length]].mean(0)
                    for slots, length in zip(
                        batch.slot_table.cpu(), batch.seq_lens.tolist(), strict=True
                    )
                ]
                inner = inner + torch.stack(means) if means else inner
            hidden = torch.tanh(inner) @ down
        given: Tensor = hidden + residual
        return given


def build(
    stage: int,
    of: int,
    *,
    tp: rt.Ranks = rt.ALONE,
    dp: rt.Ranks = rt.ALONE,
    layers: int = 4,
    backend: Any = None,
    names: tuple[str, ...] = ("prefill", "decode"),
    model: type[ParallelStage] = ParallelStage,
    split: rt.Ranks | None = None,
) -> Built:
    """One stage of one rank; its weights are split over ``split``, which is tp if not given."""
    split = split or tp
    backend = backend or rt.open_backend("cpu")
    config = SimpleNamespace(num_hidden_layers=layers, **CONFIG)
    dims = family.Dims.from_config(config, kv_rows=KV_ROWS, context=CONTEXT, tp=tp, dp=dp)
    owned = family.stage_layers(dims, stage=stage, of=of)
    width = INNER // split.size
    kv = [torch.zeros(KV_ROWS, width, device=backend.device) for _ in range(len(owned))]
    made = model(owned, kv, split)
    runners = {
        name: CLASSES[name][place_of(stage, of)](
            model=made,
            layers=owned,
            dims=dims,
            state=family.State(kv=kv),
            dtype=torch.float32,
            backend=backend,
        )
        for name in names
    }
    return Built(runners=runners, kv=kv)


def sequences(lengths: list[int], seed: int, all_tokens: list[int] | None = None) -> Any:
    """A prefill: sequence number n has its rows of the cache from 1 + n * CONTEXT."""
    generator = torch.Generator().manual_seed(seed)
    tokens = sum(lengths)
    slots = [1 + n * CONTEXT + p for n, length in enumerate(lengths) for p in range(length)]
    bounds = torch.tensor([0, *lengths]).cumsum(0)
    return SimpleNamespace(
        num_tokens=tokens,
        num_requests=len(lengths),
        all_tokens=[tokens] if all_tokens is None else all_tokens,
        all_requests=[len(lengths)],
        input_ids=torch.randint(0, VOCAB, (tokens,), generator=generator),
        positions=torch.tensor([p for n in lengths for p in range(n)], dtype=torch.int64),
        slot_mapping=torch.tensor(slots, dtype=torch.int64),
        cu_seqlens=bounds.to(torch.int32),
        seq_lens=torch.tensor(lengths, dtype=torch.int32),
    )


def next_tokens(lengths: list[int], seed: int) -> Any:
    """A decode that continues those sequences: each has ``lengths`` rows, the new one included."""
    generator = torch.Generator().manual_seed(seed)
    count = len(lengths)
    table = torch.zeros(count, CONTEXT, dtype=torch.int64)
    for n, length in enumerate(lengths):
        table[n, :length] = torch.arange(length) + 1 + n * CONTEXT
    return SimpleNamespace(
        num_requests=count,
        all_tokens=[count],
        all_requests=[count],
        input_ids=torch.randint(0, VOCAB, (count,), generator=generator),
        positions=torch.tensor(lengths, dtype=torch.int64) - 1,
        slot_mapping=table[range(count), [length - 1 for length in lengths]],
        slot_table=table,
        seq_lens=torch.tensor(lengths, dtype=torch.int32),
    )
