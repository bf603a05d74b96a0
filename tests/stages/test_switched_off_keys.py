"""A runner that does not hand a key over needs nothing of it, its axis least of all."""

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
family: memories
dims: {wide: config.wide}
axes:
  tokens: {max: 4, live: batch.num_tokens}
  source: {max: 8, live: batch.num_source}
pipeline:
  layers: {count: 2}
  stages: even
  boundary:
    - {name: hidden, axis: tokens, shape: [tokens, wide], dtype: model, padding: zero}
    - {name: memory, axis: source, shape: [source, wide], dtype: model, padding: zero}
runners:
  cross:
    buckets: {tokens: [2, 4], source: [4, 8]}
    slots:
      - {name: ids, axis: tokens, dtype: int64, padding: zero, source: batch.ids, stages: first}
      - {name: frames, axis: source, dtype: int64, padding: zero, source: batch.frames,
         stages: first}
    forward:
      first: {ids: slot.ids, frames: slot.frames}
      later: {given: boundary}
    outputs: {last: [{name: out, axis: tokens, shape: [tokens, wide], dtype: model, from: result}]}
  plain:
    buckets: {tokens: [2, 4]}
    boundary: [{name: memory, when: false}]
    slots:
      - {name: ids, axis: tokens, dtype: int64, padding: zero, source: batch.ids, stages: first}
    forward:
      first: {ids: slot.ids}
      later: {given: boundary}
    outputs: {last: [{name: out, axis: tokens, shape: [tokens, wide], dtype: model, from: result}]}
"""
WIDE = 3


def embedded(ids: Tensor) -> Tensor:
    return ids[:, None] * torch.arange(1.0, WIDE + 1)


def forward(*, ids: Any, given: Any, frames: Any = None) -> Any:
    if given is None:
        made = {"hidden": embedded(ids)}
        return made if frames is None else made | {"memory": embedded(frames)}
    out = 2 * given.hidden
    return out if given.memory is None else out + given.memory.sum(0)


def stages(package: Any, runner: str) -> list[Any]:
    dims = package.Dims.from_config({"wide": WIDE})
    backend = rt.open_backend("cpu")
    made = [
        getattr(package, f"{runner}{place}")(
            model=forward,
            layers=package.stage_layers(dims, stage=number, of=2),
            dims=dims,
            dtype=torch.float32,
            backend=backend,
        )
        for number, place in enumerate(("First", "Last"))
    ]
    rt.capture(made)
    return made


@pytest.mark.parametrize("count", [4, 1, 3])
def test_a_runner_without_the_key(count: int, tmp_path: Path) -> None:
    first, last = stages(import_text(SPEC, tmp_path), "Plain")
    ids = torch.arange(1, count + 1)
    batch = SimpleNamespace(num_tokens=count, ids=ids)  # which counts no source
    handed = first.run(batch)
    assert list(handed) == ["hidden"] and handed.memory is None
    assert torch.equal(last.run(batch, handed).out, 2 * embedded(ids))


def test_the_runner_with_it(tmp_path: Path) -> None:
    first, last = stages(import_text(SPEC, tmp_path), "Cross")
    ids, frames = torch.arange(1, 4), torch.arange(5, 10)
    batch = SimpleNamespace(num_tokens=3, num_source=5, ids=ids, frames=frames)
    expected = 2 * embedded(ids) + embedded(frames).sum(0)
    assert torch.equal(last.run(batch, first.run(batch)).out, expected)


@pytest.mark.parametrize("memory", [torch.zeros(4, WIDE), torch.zeros(0)])
@pytest.mark.parametrize("path", ["run", "eager", "begin"])
def test_a_key_that_does_not_cross_is_not_given(memory: Tensor, path: str, tmp_path: Path) -> None:
    package = import_text(SPEC, tmp_path)
    first, last = stages(package, "Plain")
    rt.capture([first, last])
    batch = SimpleNamespace(num_tokens=2, ids=torch.tensor([1, 2]))
    hidden = first.run(batch).hidden
    given = SimpleNamespace(hidden=hidden, memory=memory)
    with pytest.raises(SourceError, match=r"PlainLast .*: boundary.memory does not cross the cut"):
        getattr(last, path)(batch, given)
    given = SimpleNamespace(hidden=hidden, memory=None)
    assert torch.equal(last.run(batch, given).out, 2 * embedded(batch.ids))
