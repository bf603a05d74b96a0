"""Values of scalars: any that the slots hold, replayed and eagerly alike; others are refused."""

from __future__ import annotations

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
      - {{name: seed, axis: none, shape: [1], dtype: {dtype}, source: {{compute: scalar.seed}}}}
    forward: {{first: {{ids: slot.ids, seed: slot.seed}}}}
    outputs: {{last: [{{name: out, axis: tokens, dtype: int64, from: result}}]}}
"""


def forward(*, ids: Tensor, seed: Tensor) -> Tensor:
    return ids * 0 + seed.to(torch.int64)


@pytest.fixture(params=["int64", "int32"])
def seeded(request: Any, tmp_path: Path) -> tuple[Any, torch.dtype]:
    package = import_text(SPEC.format(dtype=request.param), tmp_path)
    runner = package.StepOnly(
        model=forward,
        layers=rt.LayerRange(0, 1, 1),
        dims=package.Dims.from_config({}),
        dtype=torch.float32,
        backend=rt.open_backend("cpu"),
    )
    rt.capture([runner])
    return runner, getattr(torch, request.param)


def batch_with(seed: int) -> Any:
    return SimpleNamespace(num_tokens=2, ids=torch.tensor([1, 2]), seed=seed)


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
