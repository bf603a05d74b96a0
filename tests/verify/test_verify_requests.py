"""Planted: what reaches a request from others by its counts, and what is kept by counts alone."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple

import pytest
import torch
from demo_specs import import_spec
from models.demos import Adapted, DemoConfig
from probe_family import build, caught, subject
from probe_model import ToyDecode, ToyPrefill
from torch import Tensor, nn

from ppcgc.runtime import LayerRange, Subject, open_backend, verify
from ppcgc.runtime.verification import Verdict
from ppcgc.runtime.verification.cases import cases_of

ONE_LAYER = LayerRange(0, 1, 1)


# ---------------------------------------------------------------- requests in another order


class ShortestOfTwo(ToyDecode):
    """A row sees as much as its own length and the first request's allow."""

    def mask(self, view: Any) -> Any:
        places = torch.arange(view.slot_table.shape[1])
        return places[None] < torch.minimum(view.seq_lens[:1], view.seq_lens)[:, None]


class AddsRowNumber(ToyDecode):
    def extra(self, hidden: Tensor, view: Any) -> Tensor:
        return hidden + torch.arange(hidden.shape[0])[:, None]


@pytest.mark.parametrize("model", [ShortestOfTwo, AddsRowNumber])
def test_what_another_request_s_counts_decide(model: type[ToyDecode]) -> None:
    caught(
        subject(build("decode", models=(ToyDecode, model))),
        "loading",
        "decode last",
        "output hidden",
        "with the requests of the batch in reverse",
    )


def test_an_order_that_means_something_is_left_alone() -> None:
    runners = build("decode", models=(ToyDecode, AddsRowNumber))
    found = verify(subject(runners, ordered=True), checks=["loading"])["loading"]
    assert found.verdict is Verdict.PASSED
    assert "left in their order, which means something" in found.evidence


def test_numbers_of_rows_keep_a_batch_in_its_order() -> None:
    """``number`` of the prefill is computed from ``row.tokens``."""
    evidence = verify(subject(build()), checks=["loading"])["loading"].evidence
    assert "left in their order: slot number is computed from numbers of rows" in evidence


# ---------------------------------------------------------------- what was received


class DoublesInPlace(ToyPrefill):
    def enter(self, input_ids: Tensor | None, handed: Any) -> Any:
        hidden = super().enter(input_ids, handed)
        return hidden if handed is None else hidden.mul_(2)


def test_a_boundary_that_is_written_in_place() -> None:
    faulty = build(models=(ToyPrefill, DoublesInPlace))
    texts = ["boundary.hidden_states", "changed rows 0, 1, 2", "aten.mul_", "hidden.mul_(2)"]
    caught(subject(faulty), "purity", "prefill last", *texts)
    fused = subject(build(models=(ToyPrefill, DoublesInPlace)), boundary_in_place=True)
    assert verify(fused).ok


# ---------------------------------------------------------------- tensors of the state


def test_a_layer_s_tensor_that_no_step_writes() -> None:
    faulty = subject(build("decode", stages=1, spare=1))  # two layers, two tensors
    caught(faulty, "loading", "state kv[1]", "no step wrote it; state kv[0] were written")


@pytest.mark.parametrize("spare", [0, 2])
def test_a_state_that_is_not_one_tensor_a_layer_does_not_tell(spare: int) -> None:
    assert verify(subject(build("decode", stages=1, spare=spare)), checks=["loading"]).ok


# ---------------------------------------------------------------- hooks


class Table:
    """Fills its slot from the batch of each step."""

    def load(self, slots: Any, batch: Any, live: Any) -> None:
        slots.table[: live.requests] = self.rows(batch, live)

    def rows(self, batch: Any, live: Any) -> Tensor:
        return torch.as_tensor(batch.scale)[:, None].expand(-1, 2)


class KeptByCount(Table):
    def __init__(self) -> None:
        self.kept: dict[int, Tensor] = {}

    def rows(self, batch: Any, live: Any) -> Tensor:
        return self.kept.setdefault(live.requests, super().rows(batch, live))


class KeptWhileAlike(Table):
    """Skips its work where there are as many requests as in the step before."""

    count = 0

    def load(self, slots: Any, batch: Any, live: Any) -> None:
        if live.requests != self.count:
            self.table = super().rows(batch, live)
        self.count = live.requests
        slots.table[: live.requests] = self.table


def hooked(hook: Table, folder: Path) -> Subject:
    made = import_spec("hooked", folder)

    class Model:
        def forward(self, *, table: Tensor, scale: Tensor) -> Tensor:
            return table.sum(1) + scale

    runner = made.StepOnly(
        model=Model(),
        layers=ONE_LAYER,
        dims=made.Dims.from_config(None),
        hooks=made.StepOnlyHooks(table=hook),
        dtype=torch.float32,
        backend=open_backend("cpu"),
    )

    def batch(live: Any, seed: int) -> Any:
        scale = [seed + request for request in range(live.requests)]
        return SimpleNamespace(num_requests=live.requests, scale=scale)

    return Subject(runners=[runner], batches=batch)


@pytest.mark.parametrize("hook", [KeptByCount, KeptWhileAlike])
def test_what_a_hook_keeps_by_counts(hook: type[Table], tmp_path: Path) -> None:
    faulty = hooked(hook(), tmp_path)
    caught(faulty, "staleness", "slot table", "behind another batch of the same counts")


def test_a_hook_that_works_from_each_batch_passes(tmp_path: Path) -> None:
    assert verify(hooked(Table(), tmp_path)).ok


# ---------------------------------------------------------------- words of the language


class Registered(nn.Module):
    """``Adapted`` with its moves where verification finds them."""

    def __init__(self, config: DemoConfig, device: str) -> None:
        super().__init__()
        self.own = Adapted(config, device)
        self.register_buffer("moves", self.own.moves)

    def forward(self, **given: Any) -> Tensor:
        return self.own.forward(**given)


def test_a_source_whose_absence_is_another_graph(tmp_path: Path) -> None:
    made, config = import_spec("adapters", tmp_path), DemoConfig()
    runner = made.KeyedOnly(
        model=Registered(config, "cpu"),
        layers=ONE_LAYER,
        dims=made.Dims.from_config(config),
        dtype=torch.float32,
        backend=open_backend("cpu"),
    )

    def batch(live: Any, seed: int) -> Any:
        numbers = range(seed, seed + live.requests)
        return SimpleNamespace(
            num_requests=live.requests,
            input_ids=list(numbers),
            lora_ids=[1 + number % 4 for number in numbers] if live[-1] else None,
            seq_lens=torch.tensor([3 + number for number in numbers], dtype=torch.int32),
            seq_lens_cpu=[3 + number for number in numbers],
        )

    found = verify(Subject(runners=[runner], batches=batch))
    assert [str(finding) for finding in found.findings] == []


class Extents(NamedTuple):
    requests: int
    tokens: int


def test_batches_with_fewer_rows_where_an_axis_follows_another() -> None:
    """Four tokens a request: a maker that takes no other counts is asked for these."""
    asked = []

    class Buckets:
        axes, columns = ("requests", "tokens"), ("requests", "tokens")
        buckets: ClassVar = {size: size for size in (Extents(2, 8), Extents(4, 16))}

        def choose(self, live: Any) -> Any:
            rows = 2 if live.requests <= 2 else 4
            return SimpleNamespace(padded=Extents(rows, 4 * rows))

        def decide(self, batch: Any) -> Any:
            return batch, self.choose(batch)

    def batch(live: Any, seed: int) -> Any:
        if live.tokens != 4 * live.requests:
            return None
        asked.append(live)
        return live

    asking: Any = SimpleNamespace(runners=[Buckets()], batches=batch)
    tried = cases_of(asking, quick=False)
    assert {case.live for case in tried} == {(4, 16), (3, 12), (2, 8), (1, 4)}
