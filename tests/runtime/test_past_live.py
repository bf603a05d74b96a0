"""Resets of received rows: the table of the one launch, its kernel, and what goes one by one."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
import torch
from test_row_moves import CPU, KINDS, needs_gpu, some
from torch import Tensor

from ppcgc.runtime.past_live import FIELDS, PastLive


def by_the_table(table: Tensor, keys: int, programs: int) -> None:
    """What the kernel does, byte by byte, read off the table alone."""
    assert programs > 0
    for row in table.view(-1, FIELDS).tolist()[:keys]:
        rows, live_at, total, words, pattern, repeats, _, width = row
        live = max(0, ctypes.c_int32.from_address(live_at).value) * words
        raw = pattern.to_bytes(8, "little", signed=True)[:width]
        for word in range(live, total):
            data = raw
            if repeats and live:
                last = live - words + (word - live) % words
                data = ctypes.string_at(rows + last * width, width)
            ctypes.memmove(rows + word * width, data, width)


def padded(rows: Tensor, live: int, value: float | None) -> Tensor:
    """What the rows ought to hold after the reset, put together from pieces."""
    last = rows[live - 1 : live] if live else torch.zeros_like(rows[:1])
    tail = last if value is None else torch.full_like(rows[:1], value)
    return torch.cat([rows[:live], tail.expand(len(rows) - live, *rows.shape[1:])])


def reset_all(past: PastLive, keys: list[Tensor], live: Tensor) -> None:
    for rows, (_, _, value) in zip(keys, KINDS, strict=True):
        if value is None:
            past.repeat_last(rows, live)
        else:
            past.fill(rows, live, value)
    past.reset()


def keys_on(device: torch.device, rows: int, seed: int = 1) -> list[Tensor]:
    return [some((rows, *rest), dtype, seed, device) for dtype, rest, _ in KINDS]


def wanted(keys: list[Tensor], live: int) -> list[Tensor]:
    return [padded(rows, live, kind[2]) for rows, kind in zip(keys, KINDS, strict=True)]


def same(keys: list[Tensor], others: list[Tensor]) -> bool:
    return all(torch.equal(a.cpu(), b.cpu()) for a, b in zip(keys, others, strict=True))


SIZES = [(0, 1), (1, 1), (0, 5), (3, 7), (47, 64), (64, 64)]


@pytest.fixture(params=["one by one", "by the table"])
def past(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> PastLive:
    kernel = None if request.param == "one by one" else by_the_table
    monkeypatch.setattr("ppcgc.runtime.past_live.open_resetter", lambda device: kernel)
    monkeypatch.setattr("torch.cuda.is_current_stream_capturing", lambda: False)
    return PastLive(CPU)


@pytest.mark.parametrize(("live", "rows"), SIZES)
def test_rows_past_live_are_reset(past: PastLive, live: int, rows: int) -> None:
    keys = keys_on(CPU, rows)
    expected = wanted(keys, live)
    reset_all(past, keys, torch.tensor([live], dtype=torch.int32))
    assert same(keys, expected)


def test_the_count_is_read_when_the_reset_runs(past: PastLive) -> None:
    live = torch.tensor([7], dtype=torch.int32)
    for count in (7, 2, 5):
        keys = keys_on(CPU, 7, seed=count)
        expected = wanted(keys, count)
        live.fill_(count)
        reset_all(past, keys, live)
        assert same(keys, expected)


def test_another_dimension_is_reset_by_itself(past: PastLive) -> None:
    rows, turned = torch.ones(3, 4), torch.ones(3, 4)
    live = torch.tensor([1], dtype=torch.int32)
    past.fill(rows, live, 5.0)
    past.fill(turned, live * 2, 2.0, dim=1)
    past.reset()
    assert rows.tolist() == [[1.0] * 4, [5.0] * 4, [5.0] * 4]
    assert turned.tolist() == [[1.0, 1.0, 2.0, 2.0]] * 3


def test_a_count_below_zero_leaves_no_row_and_touches_nothing_before(past: PastLive) -> None:
    block = torch.full((6, 2), 7.0)
    past.fill(block[2:], torch.tensor([-2], dtype=torch.int32), 0)
    past.reset()
    assert block.tolist() == [[7.0] * 2] * 2 + [[0.0] * 2] * 4


def test_a_table_is_never_made_while_a_graph_is_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    """A warm-up has made the one of the bucket; what is new goes one by one."""
    launches: list[int] = []

    def kernel(table: Tensor, keys: int, programs: int) -> None:
        launches.append(keys)
        by_the_table(table, keys, programs)

    monkeypatch.setattr("ppcgc.runtime.past_live.open_resetter", lambda device: kernel)
    past, live = PastLive(CPU), torch.tensor([1], dtype=torch.int32)
    known, new = torch.ones(3), torch.ones(3)
    for capturing, rows in ((False, known), (True, known), (True, new)):
        monkeypatch.setattr("torch.cuda.is_current_stream_capturing", lambda now=capturing: now)
        past.fill(rows.fill_(1), live, 4.0)
        past.reset()
        assert rows.tolist() == [1, 4, 4]
    assert launches == [1, 1]


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize(("live", "rows"), [*SIZES, (1500, 2048)])
def test_the_kernel_leaves_the_same_bytes(live: int, rows: int) -> None:
    device = torch.device("cuda", torch.cuda.current_device())
    past = PastLive(device)
    assert past._kernel is not None, "this torch has no Triton"
    keys = keys_on(device, rows)
    expected = wanted([key.clone() for key in keys], live)
    reset_all(past, keys, torch.tensor([live], dtype=torch.int32, device=device))
    assert same(keys, expected)


@pytest.mark.gpu
@needs_gpu
def test_a_graph_of_resets_follows_the_count() -> None:
    device = torch.device("cuda", torch.cuda.current_device())
    past, live = PastLive(device), torch.tensor([3], dtype=torch.int32, device=device)
    keys: Any = keys_on(device, 64)
    before = [key.clone() for key in keys]
    reset_all(past, keys, live)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        reset_all(past, keys, live)
    for count in (64, 5, 0):
        for key, old in zip(keys, before, strict=True):
            key.copy_(old)
        live.fill_(count)
        graph.replay()
        assert same(keys, wanted(before, count))
