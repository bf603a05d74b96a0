"""Planted: a host that waits, copies from a temporary, or reads the device's memory."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from probe_family import build, caught, family, subject
from probe_model import ToyPrefill
from torch import Tensor


class Item(ToyPrefill):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        return hidden * view.num_tokens.item()


class ToCpu(ToyPrefill):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        return hidden + view.positions.cpu().float().mean()


class ToList(ToyPrefill):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        return hidden * len(view.cu_seqlens.tolist())


class MaskAsIndex(ToyPrefill):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        return hidden + hidden[view.positions > 0].mean()


class Nonzero(ToyPrefill):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        return hidden + torch.nonzero(view.positions).sum()


class Branch(ToyPrefill):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        return hidden if view.positions.sum() > 0 else -hidden


class Printed(ToyPrefill):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        self.text = f"{hidden}"
        return hidden


class AsNumpy(ToyPrefill):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        return hidden * float(view.weights.numpy()[0])


class Temporary(ToyPrefill):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        return hidden + torch.tensor([1.0, 2.0]).to(hidden.device).repeat(4)


@pytest.mark.parametrize(
    ("model", "texts"),
    [
        (Item, ["Tensor.item()", "view.num_tokens.item()"]),
        (ToCpu, ["Tensor.cpu()", "view.positions.cpu()"]),
        (ToList, ["Tensor.tolist()", "view.cu_seqlens.tolist()"]),
        (MaskAsIndex, ["aten.index.Tensor", "hidden[view.positions > 0]"]),
        (Nonzero, ["aten.nonzero", "torch.nonzero(view.positions)"]),
        (Branch, ["Tensor.__bool__()", "if view.positions.sum() > 0"]),
        (Printed, ["Tensor.__format__()", 'f"{hidden}"']),
        (AsNumpy, ["Tensor.numpy()", "view.weights.numpy()"]),
        (Temporary, ["copies from a temporary", "torch.tensor([1.0, 2.0])"]),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_the_first_offender_is_named(model: type[ToyPrefill], texts: list[str]) -> None:
    caught(subject(build(models=(model,))), "host", "test_verify_host.py:", *texts)


def test_a_load_that_reads_a_slot_on_the_host() -> None:
    runners = build()
    inputs = type(runners[0].inputs)

    class Reads(inputs):  # type: ignore[misc, valid-type]  # generated in this process
        def load(self, slots: Any, *rest: Any) -> None:
            super().load(slots, *rest)
            if float(slots.weights[0]) < 0:
                raise ValueError

    runners[0].inputs.__class__ = Reads
    caught(subject(runners), "host", "Tensor.__float__()", "if float(slots.weights[0]) < 0")


def test_an_error_of_the_model_is_a_finding() -> None:
    class Broken(ToyPrefill):
        def extra(self, hidden: Tensor, view: Any) -> Any:
            return hidden @ hidden

    assert family()
    caught(subject(build(models=(Broken,))), "host", "warm-up of toy_probe.prefill first")
