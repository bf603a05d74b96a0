"""Buckets whose sizes follow scalars, options, ranks and the config; limits over them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from demo_specs import Packages
from torch import Tensor

from ppcgc.runtime import LayerRange, Ranks, capture, open_backend
from ppcgc.runtime.errors import CapacityError, DimError, LimitError

ONE_LAYER = LayerRange(0, 1, 1)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    return Packages(tmp_path_factory)


# ---------------------------------------------------------------- scalars


class Sums:
    """The sum of each request's tokens, and how many rows of each kind there were."""

    def forward(self, *, input_ids: Tensor, pages: Tensor, num_draft: int) -> dict[str, Tensor]:
        rows = torch.stack([(input_ids > 0).sum(), (pages > 0).sum()])
        return {"sums": input_ids.view(-1, num_draft + 1).sum(1), "filled": rows}


def verifier(package: Packages, device: str) -> Any:
    widths = package("widths")
    runner = widths.VerifyOnly(
        model=Sums(),
        layers=ONE_LAYER,
        dims=widths.Dims.from_config(SimpleNamespace()),
        dtype=torch.float32,
        backend=open_backend(device),
    )
    capture([runner])
    return runner


def drafts(rows: list[list[int]], num_draft: int, pages: int, longest: int) -> Any:
    flat = [token for row in rows for token in row]
    return SimpleNamespace(
        num_requests=len(rows),
        num_tokens=len(flat),
        num_draft=num_draft,
        longest=longest,
        num_pages=pages,
        input_ids=flat,
        pages=list(range(1, pages + 1)),
    )


def test_each_value_has_graphs_of_its_own_sizes(package: Packages, device: str) -> None:
    runner = verifier(package, device)
    # 1, 2 or 4 requests with 1 draft, 1 or 2 with 4 drafts; 2 or 8 pages with each
    assert sorted({(p.requests, p.tokens, p.num_draft) for p in runner.table}) == [
        (1, 2, 1),
        (1, 5, 4),
        (2, 4, 1),
        (2, 10, 4),
        (4, 8, 1),
    ]
    assert {(p.pages, p.longest) for p in runner.table} == {(2, 8), (8, 32)}
    for padded, live in runner.buckets.items():
        assert live.tokens == live.requests * (live.num_draft + 1)
        assert padded.tokens == padded.requests * (padded.num_draft + 1)
    assert len(runner.table) == 10


def test_a_step_takes_the_size_of_its_own_value(package: Packages, device: str) -> None:
    runner = verifier(package, device)
    out = runner.run(drafts([[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]], 4, 2, 8))
    assert (out.sums.tolist(), out.filled.tolist()) == ([15, 40], [10, 2])
    assert runner.last_step.choice.padded == (2, 10, 2, 4, 8)
    out = runner.run(drafts([[1, 2], [3, 4], [5, 6]], 1, 3, 9))  # behind a fuller batch
    assert (out.sums.tolist(), out.filled.tolist()) == ([3, 7, 11], [6, 3])
    assert runner.last_step.choice.padded == (4, 8, 8, 1, 32)


def test_more_pages_than_the_longest_has_room_for(package: Packages, device: str) -> None:
    """``padded`` follows the scalar's bucket: what does not fit is over capacity."""
    runner = verifier(package, device)
    out = runner.run(drafts([[1, 2]], 1, 5, 8))
    assert (out.sums.tolist(), out.filled.tolist()) == ([3], [2, 5])
    assert str(runner.last_step) == "eager 1 (over capacity)"


@pytest.mark.parametrize("call", ["run", "eager", "begin", "begin_eager"])
def test_limits_over_scalars_hold_on_every_path(package: Packages, device: str, call: str) -> None:
    runner = verifier(package, device)
    rows = [[1, 2, 3, 4, 5]] * 3
    with pytest.raises(LimitError, match=r"num_draft=4.*requests <= 2 or scalar.num_draft == 1"):
        getattr(runner, call)(drafts(rows, 4, 1, 8))
    with pytest.raises(LimitError, match=r"pages <= scalar.longest"):
        getattr(runner, call)(drafts(rows[:1], 4, 3, 2))
    out = runner.eager(drafts(rows[:2], 4, 1, 8))
    assert out.sums.tolist() == [15, 15]


def test_a_value_without_a_graph_is_eager(package: Packages, device: str) -> None:
    runner = verifier(package, device)
    assert runner.run(drafts([[1, 2, 3]], 2, 1, 8)).sums.tolist() == [6]
    assert runner.last_step.choice.padded is None


# ---------------------------------------------------------------- numbers of a build


class Rows:
    def forward(self, *, batch: Any) -> Tensor:
        return torch.stack([batch.input_ids.sum(), batch.parts.sum(), batch.blocks.sum()])


def built(package: Packages, device: str, *, block: int = 4, tp: int = 1, **options: Any) -> Any:
    late = package("late")
    dims = late.Dims.from_config(
        SimpleNamespace(blocks=[0] * block),
        options=late.Options(**options),
        tp=Ranks(size=tp, rank=0),
    )
    return late.VerifyOnly(
        model=Rows(),
        layers=ONE_LAYER,
        dims=dims,
        dtype=torch.float32,
        backend=open_backend(device),
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {(1, 4, 4, 4), (2, 8, 8, 16), (4, 16, 16, 16)}),
        ({"drafts": 1}, {(1, 2, 2, 4), (2, 4, 4, 16), (4, 8, 8, 16)}),
        ({"tp": 3}, {(1, 4, 2, 4), (2, 8, 3, 16), (4, 16, 6, 16)}),
        ({"block": 2}, {(1, 4, 4, 4), (2, 8, 8, 4), (4, 16, 16, 16)}),
        # 1, 3 requests have 1, 3 blocks; 4 of them 4: the larger size of blocks has no batch
        ({"block": 1}, {(1, 4, 4, 4), (2, 8, 8, 4), (4, 16, 16, 4)}),
        ({"strict": True}, {(2, 8, 8, 16), (4, 16, 16, 16)}),
    ],
)
def test_buckets_are_those_of_the_build(
    package: Packages, device: str, given: dict[str, Any], expected: set[Any]
) -> None:
    runner = built(package, device, **given)
    assert set(runner.buckets) == expected
    assert list(runner.buckets) == sorted(runner.buckets)
    for padded, live in runner.buckets.items():
        assert runner.choose(live).padded == padded  # what captures it is what chooses it
    capture([runner])


def test_steps_of_a_build(package: Packages, device: str) -> None:
    runner = built(package, device, drafts=1, tp=2)
    capture([runner])
    batch = SimpleNamespace(
        num_requests=3,
        num_tokens=6,
        num_parts=3,
        input_ids=[1] * 6,
        parts=[2] * 3,
        blocks=[3] * 12,
    )
    assert runner.run(batch).totals.tolist() == [6, 6, 36]
    assert runner.last_step.choice.padded == (4, 8, 4, 16)
    batch.num_tokens = 5
    for step in (runner.run, runner.eager):
        with pytest.raises(LimitError, match=r"5 live tokens.*ask for 6"):
            step(batch)
    batch.num_tokens, batch.num_parts = 6, 5
    with pytest.raises(CapacityError, match="5 live parts, the largest bucket has 4"):
        runner.run(batch)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"drafts": 8}, r"requests 4, blocks 4 has 36 rows of tokens; legal are 1 to 32"),
        ({"drafts": -1}, r"has 0 rows of tokens; legal are 1 to 32"),
        ({"block": 17, "strict": True}, r"no batch meets the limits"),
    ],
)
def test_a_build_without_legal_sizes(
    package: Packages, device: str, given: dict[str, Any], words: str
) -> None:
    with pytest.raises(DimError, match=words):
        built(package, device, **given)


# ---------------------------------------------------------------- a bucket for none of them


class Totals:
    def forward(self, *, batch: Any) -> Tensor:
        ends, lengths = batch.cu_seqlens[-1].long(), batch.lengths.sum()
        pages = ends.new_zeros(()) if batch.table is None else batch.table.sum()
        return torch.stack([batch.input_ids.sum(), ends, lengths, pages])


def pages_of(lengths: list[int]) -> Any:
    rows = sum(lengths)
    return SimpleNamespace(
        num_requests=len(lengths),
        num_tokens=rows,
        input_ids=[1] * rows,
        cu_seqlens=[sum(lengths[:at]) for at in range(len(lengths) + 1)],
        lengths=lengths,
        table=[5] * (2 * len(lengths)),
    )


def test_the_bucket_without_requests_has_no_rows_either(package: Packages, device: str) -> None:
    """Pages follow the requests: the graph for none is captured with a batch of nothing."""
    pages = package("pages")
    runner = pages.PrefillOnly(
        model=Totals(),
        layers=ONE_LAYER,
        dims=pages.Dims.from_config(SimpleNamespace()),
        dtype=torch.float32,
        backend=open_backend(device),
    )
    capture([runner])
    empty = {padded: live for padded, live in runner.buckets.items() if padded.pages == 0}
    assert empty == {(4, 4, 0): (0, 0, 0)}
    assert runner.run(pages_of([3, 2])).totals.tolist() == [5, 5, 5, 20]
    assert runner.run(pages_of([])).totals.tolist() == [0, 0, 0, 0]
    assert runner.last_step.choice.padded == (4, 4, 0)
    rows_of_nobody = pages_of([])
    rows_of_nobody.num_tokens, rows_of_nobody.input_ids = 2, [1, 1]
    for step in (runner.run, runner.eager):
        with pytest.raises(LimitError, match="tokens == 0 or requests > 0"):
            step(rows_of_nobody)
    assert runner.run(pages_of([1])).totals.tolist() == [1, 1, 1, 10]
