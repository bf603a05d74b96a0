"""``repeat_last`` of rows written after the load, computed cells, rows of a hook at capture."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from spec_tools import import_spec
from torch import Tensor

from ppcgc import runtime as rt
from ppcgc.runtime.errors import BuildError, DimError, SourceError
from ppcgc.runtime.hooks import HookInfo, HookState


class Filler:
    """Writes the live rows of two slots: 7, 8, … and the cells 1."""

    def load(self, slots: Any, batch: Any, live: Any) -> None:
        slots.filled[: live.requests] = torch.arange(7, 7 + live.requests)
        cells = slots.grid[: live.requests, : live.pages]
        cells[...] = 1 + torch.arange(live.requests, dtype=torch.int32)[:, None]


class Giver:
    """Rows while capturing; ``wrong`` replaces those of a slot."""

    def __init__(self, **wrong: Any) -> None:
        self.asked: list[tuple[str, tuple[int, ...]]] = []
        self.wrong = wrong

    def capture(self, slot: str, live: Any) -> object:
        self.asked.append((slot, tuple(live)))
        if slot in self.wrong:
            return self.wrong[slot]
        if slot == "lens":
            lens = [1] * live.requests
            lens[-1] = live.pages - live.requests + 1  # a batch of uneven requests
            return lens if live.pages >= live.requests else [live.pages, *[0] * (live.requests - 1)]
        if slot == "scores":
            return torch.full((live.requests, 3), 0.5)
        return torch.full((3, 2 * live.requests), 9.0)


class Model:
    """Keeps copies of the slots that it sees while its Python runs: at warm-up and at capture."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Tensor]] = []

    def forward(self, *, batch: Any) -> Tensor:
        self.seen.append({name: getattr(batch, name).clone() for name in NAMES})
        heads = batch.embeds.view(3, -1, 2).sum((0, 2))
        total: Tensor = batch.scores.sum(-1) + batch.filled + batch.grid.sum(-1) + heads
        return total


NAMES = ("lens", "scores", "embeds", "filled", "grid", "cells")


@pytest.fixture(scope="module")
def late(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return import_spec("late", tmp_path_factory.mktemp("late"))


def built(late: Any, giver: Any, filler: Any = None) -> tuple[Any, Model]:
    model = Model()
    runner = late.StepOnly(
        model=model.forward,
        layers=rt.LayerRange(0, 2, 2),
        dims=late.Dims.from_config({}),
        dtype=torch.float32,
        backend=rt.open_backend("cpu"),
        hooks=late.StepOnlyHooks(filler=filler or Filler(), giver=giver),
    )
    return runner, model


def batch_of(requests: int, pages: int) -> SimpleNamespace:
    lens = torch.zeros(requests, dtype=torch.int32)
    if requests:
        lens[0] = pages
    return SimpleNamespace(
        num_requests=requests,
        num_pages=pages,
        lens=lens,
        scores=torch.arange(requests * 3, dtype=torch.float32).view(requests, 3),
    )


@pytest.fixture(scope="module")
def captured(late: Any) -> Any:
    runner, _ = built(late, Giver())
    rt.capture([runner])
    return runner


def fuller(runner: Any) -> None:
    """An earlier step with every row live, the caller's among them."""
    step = runner.begin(batch_of(4, 4))
    step.slots.embeds.fill_(100.0)
    runner.finish(step)


def test_rows_of_the_caller_and_of_a_hook_are_repeated_at_the_replay(captured: Any) -> None:
    fuller(captured)
    step = captured.begin(batch_of(3, 1))
    slots = step.slots
    assert slots.embeds.abs().sum() == 0  # not an earlier step's, neither live nor past live
    slots.embeds[:, :6] = torch.tensor([1.0, 2, 3, 4, 5, 6])
    total = captured.finish(step).total
    assert slots.embeds.tolist() == [[1, 2, 3, 4, 5, 6, 6, 6]] * 3
    assert slots.filled.tolist() == [7, 8, 9, 9]
    # pages 1 live of 2: 2 + 3 live requests past it; the last row of requests once more
    assert slots.grid.tolist() == [[1, 5], [2, 5], [3, 5], [3, 5]]
    # 0+1+2 + 7 + 6 + 3 * 3, ...
    assert total.tolist() == [3 + 7 + 6 + 9, 12 + 8 + 7 + 21, 21 + 9 + 8 + 33]


def test_a_caller_that_writes_nothing_repeats_zeros(captured: Any) -> None:
    fuller(captured)
    captured.run(batch_of(1, 2))
    assert captured.table[captured.last_step.choice.padded].slots.embeds.abs().sum() == 0


def test_no_live_row_repeats_zeros(captured: Any) -> None:
    fuller(captured)
    step = captured.begin(batch_of(0, 0))
    captured.finish(step)
    assert step.slots.filled.tolist() == [0, 0]
    assert step.slots.grid.tolist() == [[0, 0], [0, 0]]
    assert step.slots.embeds.abs().sum() == 0


def test_cells_are_computed_by_both_row_numbers(captured: Any) -> None:
    step = captured.begin(batch_of(3, 1))
    # shape [pages, 2, requests]: a live page has ten times the request, padded requests as well
    assert step.slots.cells.tolist() == [[[0, 10, 20, 30]] * 2, [[-1] * 4] * 2]
    eager = captured.begin_eager(batch_of(3, 2))
    assert eager.slots.cells.tolist() == [[[0, 10, 20]] * 2, [[1, 11, 21]] * 2]


def test_rows_of_a_hook_are_seen_at_warm_up_and_capture(late: Any) -> None:
    giver = Giver()
    runner, model = built(late, giver)
    rt.capture([runner])
    assert {slot for slot, _ in giver.asked} == {"lens", "scores", "embeds"}
    assert len(giver.asked) == 3 * 2 * len(runner.table)
    for seen in model.seen:
        requests = seen["lens"].shape[0]
        assert seen["scores"].eq(0.5).all()
        assert seen["embeds"].eq(9.0).all()
        assert seen["filled"].tolist() == list(range(7, 7 + requests))
    uneven = [seen["lens"].tolist() for seen in model.seen if seen["grid"].shape == (2, 4)]
    assert uneven == [[1, 3]] * 2


@pytest.mark.parametrize(
    ("slot", "rows", "problem"),
    [
        ("lens", torch.ones(4), "source is torch.float32, the slot is torch.int32"),
        ("lens", [1], r"the source has shape \[1\], the live rows need \[4\]"),
        ("lens", None, "the source is None"),
        ("lens", [9, 9, 9, 9], "lens"),  # legal rows of a wrong sum: the load finds them
        ("scores", torch.ones(4, 2), r"source has shape \[4, 2\], the live rows need \[4, 3\]"),
        ("scores", torch.ones(4, 3).double(), "torch.float64, the slot is torch.float32"),
        ("scores", [1.0], "the source is a list, not a tensor"),
        ("embeds", torch.ones(3, 9), r"source has shape \[3, 9\], the live rows need \[3, 8\]"),
        ("embeds", torch.ones(3, 8).to(torch.int32), "torch.int32, the slot is torch.float32"),
    ],
)
def test_wrong_rows_of_a_hook_are_refused_and_leave_the_runner_usable(
    late: Any, slot: str, rows: Any, problem: str
) -> None:
    giver = Giver(**{slot: rows})
    runner, _ = built(late, giver)
    with pytest.raises(SourceError, match=problem) as raised:
        rt.capture([runner])
    assert "bucket requests=4 pages=4" in str(raised.value)
    if rows != [9, 9, 9, 9]:
        assert f"slot {slot}, rows of hook giver at capture" in str(raised.value)
    giver.wrong.clear()
    rt.capture([runner])
    assert runner.run(batch_of(2, 2)).total.shape == (2,)


def test_a_hook_without_the_method_is_refused_at_build(late: Any) -> None:
    with pytest.raises(BuildError, match="hook giver: Filler has no method capture"):
        built(late, Filler())


def test_a_workspace_of_negative_bytes_is_refused_at_build() -> None:
    with pytest.raises(DimError, match="hook plans: a workspace of -8 bytes"):
        HookState.build(HookInfo(name="plans", at=()), object(), -8, torch.device("cpu"))
