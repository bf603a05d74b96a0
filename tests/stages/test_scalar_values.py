"""Values of scalars: any that the slots hold, replayed and eagerly alike; others are refused."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from spec_tools import import_text
from torch import Tensor

from ppcgc import runtime as rt
from ppcgc.runtime.errors import SourceError

SPEC = """\
version: 1
family: seeded
axes: {{tokens: {{max: 4, live: batch.num_tokens}}}}
scalars: {{seed: {{source: batch.seed}}}}
pipeline: {{layers: {{count: 1}}, stages: [[0, 1]]}}
runners:
  step:
    buckets: {{tokens: [4]}}
    slots:
      - {{name: ids, axis: tokens, dtype: int64, padding: zero, source: batch.ids}}
      - {{name: seed, {slot}}}
    forward: {{first: {{ids: slot.ids, seed: slot.seed}}}}
    outputs: {{last: [{{name: out, axis: tokens, dtype: int64, from: result}}]}}
"""


WIDE = 2**31
ONE = "axis: none, shape: [1], dtype: {}, source: {{compute: scalar.seed}}"
# slots in which a scalar of the step decides what rows hold, and a number too large for each
SLOTS = {
    ONE.format("int32"): WIDE,
    ONE.format("float16"): 65505,
    "axis: none, shape: [3], dtype: uint8, source: {compute: scalar.seed}": -1,
    "axis: tokens, dtype: int8, source: {compute: scalar.seed + row.tokens}": 127,
    "axis: tokens, shape: [tokens, 2], dtype: int8,"
    " source: {compute: scalar.seed + row.tokens}": 127,
    "axis: tokens, dtype: int32, padding: {fill: scalar.seed}, source: batch.ids, cast: true": WIDE,
    "axis: tokens, dtype: int32, padding: {fill: scalar.seed}, source: batch.more,"
    " residency: host": WIDE,
}


def forward(*, ids: Tensor, seed: Tensor) -> Tensor:
    return ids * 0 + seed.to(torch.int64).flatten()[0]


@pytest.fixture(params=["int64", "int32"])
def seeded(request: Any, tmp_path: Path) -> tuple[Any, torch.dtype]:
    return built(ONE.format(request.param), tmp_path), getattr(torch, request.param)


def built(slot: str, folder: Path) -> Any:
    package = import_text(SPEC.format(slot=slot), folder)
    runner = package.StepOnly(
        model=forward,
        layers=rt.LayerRange(0, 1, 1),
        dims=package.Dims.from_config({}),
        dtype=torch.float32,
        backend=rt.open_backend("cpu"),
    )
    rt.capture([runner])
    return runner


def batch_with(seed: int) -> Any:
    return SimpleNamespace(num_tokens=2, ids=torch.tensor([1, 2]), more=[1, 2], seed=seed)


@pytest.mark.parametrize("path", ["run", "eager"])
def test_values_that_the_slot_holds(seeded: tuple[Any, torch.dtype], path: str) -> None:
    runner, dtype = seeded
    for value in (0, 7, -1, torch.iinfo(dtype).max, torch.iinfo(dtype).min):
        assert getattr(runner, path)(batch_with(value)).out.tolist() == [value, value]


@pytest.mark.parametrize("path", ["run", "eager"])
@pytest.mark.parametrize("beyond", [1, 2**70])
def test_values_that_no_slot_holds(seeded: tuple[Any, torch.dtype], path: str, beyond: int) -> None:
    runner, dtype = seeded
    value = torch.iinfo(dtype).max + beyond
    what = "slot seed: .* does not fit into torch.int32" if value < 2**63 else "batch.seed is"
    with pytest.raises(SourceError, match=f"{what}.*{value}|{what} {value}; .* 64 bits"):
        getattr(runner, path)(batch_with(value))
    assert getattr(runner, path)(batch_with(3)).out.tolist() == [3, 3]


@pytest.mark.parametrize("path", ["run", "eager"])
@pytest.mark.parametrize("slot", SLOTS)
def test_a_value_too_large_for_its_slot_is_named(slot: str, path: str, tmp_path: Path) -> None:
    runner, value = built(slot, tmp_path), SLOTS[slot]
    getattr(runner, path)(batch_with(3))
    if path == "eager" and "padding" in slot:
        return  # an eager step has no padded rows
    with pytest.raises(SourceError) as caught:
        getattr(runner, path)(batch_with(value))
    what = r"slot seed: a computed value does not fit into torch\.\w+: -?\d+, legal are \S+ to \S+;"
    assert re.match(what, str(caught.value))
    assert f"2 live tokens, seed {value} (batch.seed)" in caught.value.__notes__[0]
