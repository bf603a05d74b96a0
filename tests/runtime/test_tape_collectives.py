"""Collectives are steps of the tape, waited for at replay."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from tape_checks import assert_replays_as_eager
from torch import Tensor

from ppcgc.runtime.backends.collectives import messages_refused
from ppcgc.runtime.backends.tape import record
from ppcgc.runtime.errors import CaptureError


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


def test_a_reduce_scatter_gives_what_is_reduced_at_the_replay(group: dist.ProcessGroup) -> None:
    """Gloo copies its result out of a buffer while it is waited for: not a step of the tape."""
    x = torch.randn(4)

    def compute() -> tuple[Tensor, ...]:
        part = torch.empty(4)
        scatter = getattr(dist, "reduce_scatter_single", dist.reduce_scatter_tensor)
        scatter(part, x * 3)
        return (part + 1,)

    graph = assert_replays_as_eager(compute, [x])
    assert [line.split()[1] for line in graph.listing()].count("aten.copy_.default") <= 1


def test_a_message_inside_a_stage_is_refused(group: dist.ProcessGroup) -> None:
    def body() -> None:
        dist.isend(torch.ones(2), dst=0)

    with pytest.raises(CaptureError, match="message from rank to rank") as raised:
        record(body)
    assert "test_tape_collectives.py" in str(raised.value)
    with pytest.raises(CaptureError, match="send is a message") as raised, messages_refused():
        dist.batch_isend_irecv([dist.P2POp(dist.isend, torch.ones(2), 0)])
    assert "test_tape_collectives.py" in str(raised.value)
    with pytest.raises(RuntimeError, match=r"no backend|rank|self|peer|connect"):  # torch again
        dist.batch_isend_irecv([dist.P2POp(dist.isend, torch.ones(2), 0)])
