"""Planted: steps that show what an earlier one left behind."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from probe_family import build, caught, slot_line, subject
from probe_model import ToyDecode, ToyPrefill
from torch import Tensor


def load_that(runner: Any, change: Any) -> None:
    inputs = type(runner.inputs)

    class Spoilt(inputs):  # type: ignore[misc, valid-type]  # generated in this process
        def load(self, slots: Any, host: Any, batch: Any, live: Any, padded: Any) -> None:
            change(super().load, slots, host, batch, live, padded)

    runner.inputs.__class__ = Spoilt


def keeps_noise(load: Any, slots: Any, host: Any, batch: Any, live: Any, padded: Any) -> None:
    old = slots.noise.clone()
    load(slots, host, batch, live, padded)
    slots.noise.copy_(old)


def keeps_absent_bias(load: Any, slots: Any, host: Any, batch: Any, live: Any, padded: Any) -> None:
    old = slots.bias.clone()
    load(slots, host, batch, live, padded)
    if batch.bias is None:
        slots.bias.copy_(old)


def skips_absent_weights(
    load: Any, slots: Any, host: Any, batch: Any, live: Any, padded: Any
) -> None:
    if batch.weights is None:
        kept = slots.weights[: live.tokens].clone()
        values = {**vars_of(batch), "weights": kept}
        batch = SimpleNamespace(**values)
    load(slots, host, batch, live, padded)


def vars_of(batch: Any) -> dict[str, Any]:
    names = ("input_ids", "positions", "slot_mapping", "cu_seqlens", "seq_lens", "bias", "kept")
    found = {name: getattr(batch, name) for name in (*names, "noise")}
    return {**found, "num_tokens": batch.num_tokens, "num_requests": batch.num_requests}


@pytest.mark.parametrize(
    ("change", "texts"),
    [
        (keeps_noise, ["output hidden_states", "after other batches of the bucket"]),
        (keeps_absent_bias, [slot_line("bias"), "absent after a batch that had it", "fill: 0.5"]),
        (skips_absent_weights, [slot_line("weights"), "None was taken without a word"]),
    ],
)
def test_a_load_that_leaves_old_rows(change: Any, texts: list[str]) -> None:
    runners = build()
    load_that(runners[0], change)
    caught(subject(runners), "staleness", "prefill first", *texts)


class Accumulates(ToyPrefill):
    """Adds up over steps in a buffer, which nothing resets."""

    total: Tensor

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.register_buffer("total", torch.zeros(8))

    def extra(self, hidden: Tensor, view: Any) -> Any:
        self.total.add_(hidden[0])
        return hidden + self.total


def test_a_running_total() -> None:
    caught(
        subject(build(models=(Accumulates,))), "staleness", "output hidden_states", "after other"
    )


class PreviousRows(ToyDecode):
    """Reads, then overwrites, what the last step of any bucket left."""

    previous: Tensor

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.register_buffer("previous", torch.zeros(4, 8))

    def extra(self, hidden: Tensor, view: Any) -> Any:
        rows = hidden.shape[0]
        mixed = hidden + self.previous[:rows]
        self.previous[:rows] = hidden
        return mixed


def test_the_rows_of_another_bucket() -> None:
    faulty = subject(build("decode", models=(ToyDecode, PreviousRows)))
    caught(faulty, "staleness", "decode last", "output hidden", "batches of")


class SizedByTheFirst(ToyPrefill):
    """Makes room by the bucket that happens to be warmed up first."""

    room: Tensor | None = None

    def extra(self, hidden: Tensor, view: Any) -> Any:
        if self.room is None:
            self.room = torch.zeros_like(hidden)
        room = self.room[: hidden.shape[0]]
        room.copy_(hidden)
        return room * 1.0


class ScaledByTheFirst(ToyPrefill):
    """Keeps a number of the bucket that happens to be warmed up first."""

    scale: float | None = None

    def extra(self, hidden: Tensor, view: Any) -> Any:
        if self.scale is None:
            self.scale = 1.0 / hidden.shape[0]
        return hidden * self.scale


@pytest.mark.parametrize(
    ("model", "texts"),
    [
        (SizedByTheFirst, ["capture in the order 4", "size nothing by the bucket"]),
        (ScaledByTheFirst, ["output hidden_states", "captured in the order 4"]),
    ],
)
def test_a_capture_order_that_matters(model: type[Any], texts: list[str]) -> None:
    caught(subject(build(models=(model,))), "staleness", *texts)
