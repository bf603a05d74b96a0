"""Planted: forwards that leave something behind."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from probe_family import build, captured, caught, slot_line, subject
from probe_model import ToyPrefill
from torch import Tensor


class Faulty(ToyPrefill):
    """With something to count in."""

    steps: Tensor

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.calls = 0
        self.seen: list[int] = []
        self.by_size: dict[int, int] = {}
        self.generator = torch.Generator().manual_seed(1)
        self.register_buffer("steps", torch.zeros(1))


class Counter(Faulty):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        self.calls += 1
        return hidden


class ListGrows(Faulty):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        self.seen.append(hidden.shape[0])
        return hidden


class DictGrows(Faulty):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        self.by_size[hidden.shape[0]] = self.by_size.get(hidden.shape[0], 0) + 1
        return hidden


class SetsATensor(Faulty):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        self.last = hidden
        return hidden


class CountsInALayer(Faulty):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        layer: Any = self.mix
        layer.calls = getattr(layer, "calls", 0) + 1
        return hidden


class ClampsASlot(Faulty):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        view.positions.clamp_(max=2)
        return hidden


class ScalesADeviceSlot(Faulty):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        view.weights.mul_(0.5)
        return hidden


class WritesAConst(Faulty):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        view.gain.add_(1.0)
        return hidden


class BufferCountsUp(Faulty):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        self.steps.add_(1)
        return hidden + self.steps


class ParameterDrifts(Faulty):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        self.mix.bias.mul_(0.999)
        return hidden


class AdvancesState(Faulty):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        self.kv[8:12].add_(1)
        return hidden


class Dropout(Faulty):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        return F.dropout(hidden, 0.5, training=True)


class Noise(Faulty):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        return hidden + torch.rand_like(hidden)


class OwnGenerator(Faulty):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        return hidden + torch.randn(8, generator=self.generator)


class RegistersABuffer(Faulty):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        if "scale" not in self._buffers:
            self.register_buffer("scale", view.weights.mean().clone())
        scale: Tensor = self._buffers["scale"]  # type: ignore[assignment]  # it is there
        return hidden * scale


def test_a_buffer_of_the_first_run_is_named() -> None:
    caught(subject(build(models=(ToyPrefill, RegistersABuffer))), "purity", "buffer scale")


class RegistersBySize(Faulty):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        name = f"seen_{len(self._buffers)}"
        self.register_buffer(name, torch.zeros(1))
        return hidden


def test_a_buffer_of_each_run_is_named_of_captured_runners_too() -> None:
    runners = captured(build(models=(ToyPrefill, RegistersBySize)))
    caught(subject(runners), "purity", "prefill last, bucket", "buffer seen_")


@pytest.mark.parametrize(
    ("model", "texts"),
    [
        (Counter, ["attribute calls", "self.calls += 1", ", from "]),
        (ListGrows, ["attribute seen", "items"]),
        (DictGrows, ["attribute by_size"]),
        (SetsATensor, ["attribute last", "self.last = hidden"]),
        (CountsInALayer, ["attribute mix.calls", "layer.calls = getattr"]),
        (ClampsASlot, [slot_line("positions"), "view.positions.clamp_(max=2)"]),
        (ScalesADeviceSlot, [slot_line("weights"), "view.weights.mul_(0.5)"]),
        (WritesAConst, [slot_line("gain"), "view.gain.add_(1.0)"]),
        (BufferCountsUp, ["buffer steps", "self.steps.add_(1)"]),
        (ParameterDrifts, ["parameter mix.bias", "self.mix.bias.mul_(0.999)"]),
        (AdvancesState, ["state kv[0]", "warm-up wrote rows 8, 9, 10, 11"]),
        (Dropout, ["random numbers", "F.dropout(hidden, 0.5, training=True)"]),
        (Noise, ["random numbers", "torch.rand_like(hidden)"]),
        (OwnGenerator, ["random numbers", "torch.randn(8, generator=self.generator)"]),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_what_a_forward_leaves_behind_is_named(model: type[Faulty], texts: list[str]) -> None:
    caught(subject(build(models=(ToyPrefill, model))), "purity", "prefill last", *texts)
