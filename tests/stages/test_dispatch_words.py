"""Axes that follow others, limits and dispatch: the choice of each step, against one by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fake_backend import FakeBackend
from spec_tools import import_spec

from ppcgc import runtime as rt
from ppcgc.runtime.errors import CapacityError, LimitError, SourceError

HIDDEN = 6


@pytest.fixture(scope="module")
def derived(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return import_spec("derived", tmp_path_factory.mktemp("derived"))


def model(*, view: Any, tokens: int, blocks: int) -> torch.Tensor:
    """[tokens, 4]: each column adds what another axis holds, padded rows and all."""
    columns = [
        view.images.sum() + view.last.sum(),
        view.blocks.sum() + blocks,
        view.pairs.sum() + tokens,
        view.starts.sum(),
    ]
    out: torch.Tensor = view.ids[:, None].float() + torch.stack(columns).float()
    return out


def batch_of(tokens: int, images: int) -> SimpleNamespace:
    blocks = (tokens + 3) // 4
    return SimpleNamespace(
        num_tokens=tokens,
        num_images=images,
        ids=torch.arange(100, 100 + tokens),
        images=torch.full((images,), 11, dtype=torch.int32),
        blocks=torch.full((blocks,), 13, dtype=torch.int32),
        pairs=torch.full((2 * tokens,), 17, dtype=torch.int32),
        last=torch.tensor([tokens % HIDDEN]),
    )


@pytest.fixture(scope="module")
def runner(derived: Any) -> Any:
    made = runner_of(derived)
    rt.capture([made])
    return made


def runner_of(derived: Any, forward: Any = model, backend: Any = None) -> Any:
    dims = derived.Dims.from_config({"hidden": HIDDEN})
    return derived.StepOnly(
        model=forward,
        layers=rt.LayerRange(0, 1, 1),
        dims=dims,
        dtype=torch.float32,
        backend=backend or rt.open_backend("cpu"),
    )


def by_hand(tokens: int, images: int) -> tuple[int, ...] | str:
    """The padded extents, or what the step says instead."""
    if images > tokens:
        return "limit"
    size = next((size for size in (8, 16, 32) if size >= tokens), None)
    if size is None:
        return "capacity of tokens"
    seats = next((seats for seats in (2, 4) if seats >= images), None)
    if seats is None:
        return "capacity of images"
    if tokens >= 4 and size > 1.5 * tokens:
        return "eager"
    return size, seats, size // 4, 2 * size


@pytest.mark.parametrize("images", [0, 1, 2, 3, 4, 5])
def test_every_choice_is_the_one_made_by_hand(runner: Any, derived: Any, images: int) -> None:
    extents = derived.StepExtents
    for tokens in range(35):
        live = extents(tokens, images, (tokens + 3) // 4, 2 * tokens)
        wanted = by_hand(tokens, images)
        if wanted == "limit":
            with pytest.raises(LimitError, match=r"`images <= tokens` \(derived.yaml:\d+\)"):
                runner.choose(live)
        elif isinstance(wanted, str) and wanted.startswith("capacity"):
            with pytest.raises(CapacityError, match=wanted.removeprefix("capacity of ")):
                runner.choose(live)
        elif wanted == "eager":
            choice = runner.choose(live)
            assert (choice.padded, choice.detail) == (None, "tokens")
            assert choice.reason is rt.Reason.MAX_PADDING
        else:
            assert runner.choose(live) == rt.Choice(extents(*wanted), rt.Reason.FITS)
            assert wanted in runner.table


def test_the_buckets_are_the_reachable_ones(runner: Any) -> None:
    assert list(runner.table) == [
        (size, seats, size // 4, 2 * size) for size in (8, 16, 32) for seats in (2, 4)
    ]


@pytest.mark.parametrize(("tokens", "images"), [(3, 0), (6, 2), (8, 3), (13, 1), (16, 4), (32, 2)])
def test_slots_of_derived_axes(runner: Any, tokens: int, images: int) -> None:
    padded = by_hand(tokens, images)
    assert not isinstance(padded, str)
    size, seats, blocks, pairs = padded
    runner.run(batch_of(size, 2))
    step = runner.begin(batch_of(tokens, images))
    assert step.choice.padded == (size, seats, blocks, pairs)
    live_blocks = (tokens + 3) // 4
    slots = step.slots
    assert slots.images.tolist() == [11] * images + [live_blocks] * (seats - images)
    assert slots.blocks.tolist() == [13] * live_blocks + [pairs] * (blocks - live_blocks)
    tail = images if images > 1 else 32
    assert slots.pairs.tolist() == [17] * (2 * tokens) + [tail] * (pairs - 2 * tokens)
    assert slots.starts.tolist() == [min(4 * block, tokens) for block in range(blocks)]
    out = runner.finish(step)
    columns = [
        sum(slots.images.tolist()) + tokens % HIDDEN,
        sum(slots.blocks.tolist()) + blocks,
        sum(slots.pairs.tolist()) + size,
        sum(slots.starts.tolist()),
    ]
    assert out.out.tolist() == [[100 + row + column for column in columns] for row in range(tokens)]


def test_an_eager_step_sees_live_extents(runner: Any) -> None:
    out = runner.run(batch_of(5, 2))  # 8 rows for 5 would be too much padding
    assert str(runner.last_step) == "eager 5 (too much padding)"
    columns = [22 + 5, 26 + 2, 170 + 5, 0 + 4]
    assert out.out.tolist() == [[100 + row + column for column in columns] for row in range(5)]


def test_capture_values_of_the_spec(derived: Any) -> None:
    seen: list[tuple[int, list[int], list[int]]] = []

    def watch(*, view: Any, tokens: int, blocks: int) -> torch.Tensor:
        seen.append((blocks, view.blocks.tolist(), view.last.tolist()))
        return model(view=view, tokens=tokens, blocks=blocks)

    rt.capture([runner_of(derived, watch, FakeBackend())])
    assert len(seen) == 12
    for blocks, values, last in seen:
        assert values == [blocks + HIDDEN] * blocks  # padded.blocks + hidden
        assert last == [1]


def test_an_index_without_an_axis_is_checked(runner: Any) -> None:
    batch = batch_of(8, 2)
    batch.last = torch.tensor([HIDDEN])
    for step in (runner.run, runner.eager):
        with pytest.raises(SourceError, match=f"slot last: .* legal are 0 to {HIDDEN - 1}"):
            step(batch)


def test_rows_of_a_derived_axis_must_be_the_live_ones(runner: Any) -> None:
    batch = batch_of(8, 2)
    batch.pairs = batch.pairs[:-1]
    with pytest.raises(SourceError, match=r"slot pairs: .*\[15\], the live rows need \[16\]"):
        runner.run(batch)


def test_require_graph_lets_nothing_run_eagerly_but_on_request(derived: Any) -> None:
    graphs = derived.GraphsOnly(
        model=lambda *, ids: ids.float(),
        layers=rt.LayerRange(0, 1, 1),
        dims=derived.Dims.from_config({"hidden": HIDDEN}),
        dtype=torch.float32,
        backend=rt.open_backend("cpu"),
    )
    rt.capture([graphs])
    batch = SimpleNamespace(num_tokens=3, ids=torch.tensor([4, 5, 6]))
    assert graphs.run(batch).out.tolist() == [4, 5, 6]
    assert graphs.eager(batch).out.tolist() == [4, 5, 6]
    with pytest.raises(CapacityError, match="33 live tokens, the largest bucket has 32"):
        graphs.run(SimpleNamespace(num_tokens=33, ids=torch.zeros(33, dtype=torch.int64)))
    assert graphs.report().eager_steps == 1
