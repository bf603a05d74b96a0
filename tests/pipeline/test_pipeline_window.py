"""Slots that the caller writes, on the ranks of a pipeline: the window between load and replay."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from rank_processes import run_ranks, values

from ppcgc import runtime as rt
from ppcgc.driver import Source, compile_sources
from ppcgc.runtime.pipeline import Pipeline

SPEC = """
version: 1
family: window
doc: Two stages that add what the caller writes.
axes:
  tokens: {max: 8, live: batch.num_tokens}
pipeline:
  layers: {count: 2}
  boundary:
    - {name: hidden, axis: tokens, dtype: float32, padding: zero}
runners:
  step:
    buckets: {tokens: [4, 8]}
    dispatch: {over_capacity: eager}
    slots:
      - {name: ids, axis: tokens, dtype: int64, padding: zero, source: batch.ids, residency: host}
      - {name: bias, axis: tokens, dtype: float32, padding: zero, source: caller}
    forward:
      first: {view: view}
      later: {view: view, boundary: boundary}
    outputs:
      last: [{name: total, axis: tokens, dtype: float32, from: result}]
"""
STEPS = (3, 8, 11, 1)  # the third is above capacity, and eager on all ranks


class Adds:
    """One stage: the ids, or what it received, and the bias of the caller."""

    def __init__(self, rank: int) -> None:
        self.rank = rank

    def forward(self, *, view: Any, boundary: Any = None) -> Any:
        if self.rank == 0:
            return {"hidden": view.ids.float() + view.bias}
        return boundary.hidden * 10 + view.bias


def built(rank: int, folder: str) -> Any:
    sys.path.insert(0, folder)
    import window  # type: ignore[import-not-found]  # generated below ``folder``

    kind = window.StepFirst if rank == 0 else window.StepLast
    return kind(
        model=Adds(rank).forward,
        layers=rt.LayerRange(rank, rank + 1, 2),
        dims=window.Dims.from_config({}),
        dtype=torch.float32,
        backend=rt.open_backend("cpu"),
    )


def served(rank: int, folder: str) -> list[Any]:
    runner = built(rank, folder)
    outputs = []
    with Pipeline([runner], timeout=5) as pipeline:
        pipeline.capture()
        for live in STEPS:

            def write(step: Any, live: int = live) -> None:
                step.slots.bias[:live] = rank + 0.5

            batch = SimpleNamespace(num_tokens=live, ids=torch.arange(live))
            made = pipeline.run("step", batch, write)
            path = runner.last_step.path
            outputs.append((path, None if made is None else made.total.tolist()))
    return outputs


def without(rank: int, folder: str) -> str:
    runner = built(rank, folder)
    try:
        with Pipeline([runner], timeout=5) as pipeline:
            pipeline.capture()
            pipeline.run("step", SimpleNamespace(num_tokens=2, ids=torch.arange(2)))
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"
    return "served"


@pytest.fixture
def folder(tmp_path: Path) -> str:
    compiled = compile_sources([Source(file="window.yaml", data=SPEC.encode())])
    assert compiled.files, compiled
    for name, text in compiled.files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return str(tmp_path)


def test_each_rank_writes_its_own_slots_between_load_and_replay(
    folder: str, tmp_path: Path
) -> None:
    first, last = values(run_ranks(2, served, tmp_path, folder))
    assert [path for path, _ in first] == ["replay", "replay", "eager", "replay"]
    for live, (path, made), (other, _) in zip(STEPS, last, first, strict=True):
        assert path == other
        assert made == [(token + 0.5) * 10 + 1.5 for token in range(live)]


def test_slots_that_nobody_writes_are_refused(folder: str, tmp_path: Path) -> None:
    for said in values(run_ranks(2, without, tmp_path, folder)):
        assert "step 0: step has slots that the caller writes (bias)" in said
        assert "give run(..., write=...)" in said
