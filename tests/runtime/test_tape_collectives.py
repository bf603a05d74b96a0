"""Collectives are steps of the tape, waited for at replay."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from tape_checks import assert_replays_as_eager
from torch import Tensor


@pytest.fixture
def group(tmp_path: Path) -> Iterator[dist.ProcessGroup]:
    """A gloo group of this process alone."""
    if not dist.is_available() or dist.is_initialized():
        pytest.skip("needs a torch.distributed that nothing else has set up")
    rendezvous = f"file://{tmp_path / 'store'}"
    dist.init_process_group("gloo", init_method=rendezvous, rank=0, world_size=1)
    world = dist.group.WORLD
    assert world is not None
    yield world
    dist.destroy_process_group()


def test_collectives_in_place(group: dist.ProcessGroup) -> None:
    x = torch.randn(4)

    def compute() -> tuple[Tensor, ...]:
        y = x * 2
        dist.all_reduce(y)
        gathered = [torch.empty(4)]
        dist.all_gather(gathered, y)
        return y, gathered[0] + 1

    graph = assert_replays_as_eager(compute, [x])
    assert any("c10d.allreduce_" in line for line in graph.listing())


def test_functional_collectives(group: dist.ProcessGroup) -> None:
    from torch.distributed import _functional_collectives as functional

    x = torch.randn(4)

    def compute() -> tuple[Tensor, ...]:
        summed = functional.all_reduce(x * 2, "sum", group)
        return (summed + 1,)

    graph = assert_replays_as_eager(compute, [x])
    assert any("_c10d_functional.all_reduce" in line for line in graph.listing())
