"""Planted: tensors that the forward reads and nobody declared."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from probe_family import build, caught, subject
from probe_model import ToyPrefill
from torch import Tensor

CONSTANT = torch.full((8,), 0.25)


class PlainAttribute(ToyPrefill):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.table = torch.ones(8)

    def extra(self, hidden: Tensor, view: Any) -> Any:
        return hidden + self.table


class InAList(PlainAttribute):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.tables = [torch.ones(8), torch.full((8,), 2.0)]

    def extra(self, hidden: Tensor, view: Any) -> Any:
        return hidden + self.tables[1]


class InADict(PlainAttribute):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        tables = {"ones": self.table}
        return hidden - tables["ones"]


class InAClosure(ToyPrefill):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        shift = torch.full((8,), 0.5)
        self.shifted: Any = lambda hidden: hidden + shift

    def extra(self, hidden: Tensor, view: Any) -> Any:
        return self.shifted(hidden)


class Global(ToyPrefill):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        return hidden * CONSTANT


class DefaultArgument(ToyPrefill):
    def extra(self, hidden: Tensor, view: Any, scale: Tensor = CONSTANT) -> Any:
        return torch.mul(hidden, scale)


class MadeInForward(ToyPrefill):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        return hidden * torch.tensor([0.5, 2.0]).repeat(4)


class EnginesOwn(ToyPrefill):
    engine_positions = torch.arange(16)

    def extra(self, hidden: Tensor, view: Any) -> Any:
        rows = self.engine_positions[: hidden.shape[0]]
        return hidden + self.position(rows)


class LazyCache(ToyPrefill):
    cached: Tensor | None = None

    def extra(self, hidden: Tensor, view: Any) -> Any:
        if self.cached is None:
            self.cached = torch.arange(8.0)
        return hidden + self.cached


class KeepsItsLast(ToyPrefill):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        self.last = hidden * 2
        return hidden


class ReadsPastItsSlot(ToyPrefill):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        rows = hidden.shape[0]
        beyond = view.positions.as_strided((rows + 8,), (1,))
        return hidden + beyond[rows:].sum() % 2


@pytest.mark.parametrize(
    ("model", "texts"),
    [
        (PlainAttribute, ["torch.float32 [8]", "return hidden + self.table"]),
        (InAList, ["torch.float32 [8]", "return hidden + self.tables[1]"]),
        (InADict, ["torch.float32 [8]", 'return hidden - tables["ones"]']),
        (InAClosure, ["self.shifted: Any = lambda hidden: hidden + shift"]),
        (Global, ["return hidden * CONSTANT"]),
        (DefaultArgument, ["return torch.mul(hidden, scale)"]),
        (MadeInForward, ["torch.tensor([0.5, 2.0])"]),
        (EnginesOwn, ["torch.int64", "return hidden + self.position(rows)"]),
        (LazyCache, ["torch.float32 [8]", "return hidden + self.cached"]),
        (KeepsItsLast, ["kept from the capture", "self.last = hidden * 2"]),
        (ReadsPastItsSlot, ["host block", "beyond[rows:].sum()"]),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
@pytest.mark.parametrize("stage", [0, 1])
def test_an_undeclared_tensor_is_named_with_its_line(
    model: type[ToyPrefill], texts: list[str], stage: int
) -> None:
    models = (ToyPrefill, ToyPrefill)
    models = (model, ToyPrefill) if stage == 0 else (ToyPrefill, model)
    place = ["toy_probe.prefill first", "toy_probe.prefill last"][stage]
    caught(subject(build(models=models)), "inputs", place, "test_verify_inputs.py:", *texts)
