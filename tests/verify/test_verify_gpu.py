"""On a CUDA device: clean runners pass, and planted faults are caught as on a CPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from probe_family import build, caught, slot_line, subject
from probe_model import ToyDecode, ToyPrefill
from test_verify_loading import with_stale_tail
from torch import Tensor

from ppcgc.runtime import verify

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


@pytest.mark.parametrize("runner", ["prefill", "decode"])
def test_a_clean_runner_passes(runner: str) -> None:
    found = verify(subject(build(runner, device="cuda")))
    assert [str(finding) for finding in found.findings] == []


class PlainAttribute(ToyPrefill):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.table = torch.ones(8, device="cuda")

    def extra(self, hidden: Tensor, view: Any) -> Any:
        return hidden + self.table


class Item(ToyPrefill):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        return hidden * view.num_tokens.item()


class PinnedTemporary(ToyPrefill):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        host = torch.full((8,), 0.5).pin_memory()
        return hidden + host.to(hidden.device, non_blocking=True)


class ClampsASlot(ToyPrefill):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        view.positions.clamp_(max=2)
        return hidden


class Dropout(ToyPrefill):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        return F.dropout(hidden, 0.5, training=True)


class MeanOverRows(ToyPrefill):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        return hidden + hidden.mean(0, keepdim=True)


class SeesOtherRequests(ToyPrefill):
    def mask(self, view: Any) -> Any:
        rows = torch.arange(view.positions.shape[0], device="cuda")
        return rows[:, None] >= rows[None]


class WritesByPosition(ToyPrefill):
    def write(self, hidden: Tensor, view: Any) -> None:
        self.kv[: hidden.shape[0]] = hidden


class PaddedMean(ToyPrefill):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        return hidden / hidden.shape[0]


class Accumulates(ToyPrefill):
    total: Tensor

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.register_buffer("total", torch.zeros(8))

    def extra(self, hidden: Tensor, view: Any) -> Any:
        self.total.add_(hidden[0])
        return hidden + self.total


class NoLengths(ToyDecode):
    def mask(self, view: Any) -> Any:
        return torch.ones(view.slot_table.shape, dtype=torch.bool, device="cuda")


@pytest.mark.parametrize(
    ("model", "check", "texts"),
    [
        (PlainAttribute, "inputs", ["return hidden + self.table"]),
        (Item, "host", ["view.num_tokens.item()"]),
        (PinnedTemporary, "host", ["host.to(hidden.device, non_blocking=True)"]),
        (ClampsASlot, "purity", [slot_line("positions"), "view.positions.clamp_(max=2)"]),
        (Dropout, "purity", ["random numbers", "F.dropout(hidden, 0.5, training=True)"]),
        (MeanOverRows, "padding", ["hidden + hidden.mean(0, keepdim=True)"]),
        (SeesOtherRequests, "loading", ["of other requests"]),
        (WritesByPosition, "loading", ["state kv[0]", "neither live rows nor padding own"]),
        (PaddedMean, "parity", ["the padded step is not the live one"]),
        (Accumulates, "staleness", ["after other batches"]),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_a_fault_of_the_model(model: type[Any], check: str, texts: list[str]) -> None:
    caught(subject(build(models=(model,), device="cuda")), check, "prefill first", *texts)


def test_a_decode_without_lengths() -> None:
    faulty = subject(build("decode", models=(NoLengths,), device="cuda"))
    caught(faulty, "padding", "rows that no live request owns")


def test_a_stale_tail() -> None:
    runners = build(device="cuda")
    with_stale_tail(runners[0], "positions", lambda live: int(live.tokens))
    caught(subject(runners), "loading", slot_line("positions"), "rows past live")


def test_a_load_that_waits_for_the_device() -> None:
    runners = build(device="cuda")
    inputs = type(runners[0].inputs)

    class Reads(inputs):  # type: ignore[misc, valid-type]  # generated in this process
        def load(self, slots: Any, *rest: Any) -> None:
            super().load(slots, *rest)
            if float(slots.weights[0]) < 0:
                raise ValueError

    runners[0].inputs.__class__ = Reads
    caught(subject(runners), "host", "prefill first", "if float(slots.weights[0]) < 0")
