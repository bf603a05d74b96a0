"""Every word of a slot: its contents after a load, against a second reading by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from spec_tools import import_spec
from torch import Tensor
from words_model import BUCKETS, HIDDEN, REQUESTS, WordsModel, words_batch

from ppcgc import runtime as rt
from ppcgc.runtime.errors import AbsentSourceError

POOL_ROWS = 32
STALE = 77  # no padding and no live value


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return import_spec("words", tmp_path_factory.mktemp("words"))


@pytest.fixture(scope="module")
def stages(words: Any) -> tuple[Any, Any]:
    """One captured pipeline for the tests that leave it as they found it."""
    return pipeline(words)


def pipeline(words: Any, *, fed: bool = False, captured: bool = True) -> tuple[Any, Any]:
    """Both stages of the toy, on one CPU backend."""
    backend = rt.open_backend("cpu")
    dims = words.Dims.from_config({"hidden": HIDDEN}, pool_rows=POOL_ROWS)
    made = []
    for stage, kind in enumerate((words.StepFirst, words.StepLast)):
        pool = torch.full((POOL_ROWS,), -1.0)
        made.append(
            kind(
                model=WordsModel(pool),
                layers=words.stage_layers(dims, stage=stage, of=2),
                dims=dims,
                state=words.State(pool=[pool]),
                dtype=torch.float32,
                backend=backend,
            )
        )
    first, last = made
    if fed:
        first.feed(last)
    if captured:
        rt.capture(made)
    return first, last


def padded_like(rows: Tensor, padded: int, value: float, dim: int = 0) -> Tensor:
    """``rows`` with ``value`` behind them, by torch's own padding."""
    behind = [0, 0] * rows.dim()
    behind[2 * (rows.dim() - 1 - dim) + 1] = padded - rows.shape[dim]
    return F.pad(rows, behind, value=value)


def repeated(rows: Tensor, padded: int, dim: int = 0) -> Tensor:
    """``rows`` with the last one again behind them; zeros where there is none."""
    if rows.shape[dim] == 0:
        return padded_like(rows, padded, 0, dim)
    last = rows.narrow(dim, rows.shape[dim] - 1, 1)
    return torch.cat([rows, *[last] * (padded - rows.shape[dim])], dim)


def expected(batch: Any, live: int, requests: int, tokens: int) -> dict[str, Tensor]:
    """What each slot of the bucket of ``tokens`` holds, read from the spec by a person."""
    return {
        "ids": padded_like(batch.ids, tokens, 0),
        "weights": padded_like(batch.weights, tokens, 0.5),
        "starts": padded_like(batch.starts, REQUESTS, live),
        "ends": repeated(batch.ends, REQUESTS + 1),
        "lengths": padded_like(batch.lengths, REQUESTS, 0),
        "places": padded_like(batch.places, tokens, HIDDEN, dim=1),
        "corners": repeated(batch.corners, tokens, dim=1),
        "pairs": padded_like(batch.pairs, 2 * tokens + 1, -1),
        "seen": torch.arange(tokens) >= live,
        "wide_ids": padded_like(batch.ids, tokens, 3).int(),
        "extra": padded_like(batch.mm.extra, tokens, 5),
        "scales": batch.mm.scales,
        "written": padded_like(batch.written, tokens, 0),
        "number": torch.tensor([[2 * row + requests] * 3 for row in range(tokens)]).int(),
        "unused": torch.tensor([tokens - live]).int(),
        "is_live": torch.tensor([1] * live + [0] * (tokens - live)).int(),
        "mask": padded_like(batch.mask, tokens, -1.5),
        "positions": repeated(batch.positions, tokens, dim=1),
        "tail": repeated(batch.tail, REQUESTS + 1),
        "spread": padded_like(batch.spread, tokens, 10 * live + tokens),
        "narrow": padded_like(batch.spread, tokens, 0).int(),
        "noise": padded_like(batch.noise, tokens, 0),
        "host_noise": batch.host_noise,
        "bias": batch.bias,
        "gain": torch.tensor([2.5] * tokens),
        "width": torch.tensor([2 * HIDDEN + 1]).int(),
        "rare": padded_like(batch.rare, tokens, 0),
        "mm.grid": padded_like(batch.mm.grid, tokens, 0),
        "mm.bias": padded_like(batch.mm.bias, tokens, 1),
        "handed.hidden_states": batch.handed,
        "output.first": batch.output,
    }


def slot(slots: Any, name: str) -> Tensor:
    for step in name.split("."):
        slots = getattr(slots, step)
    assert isinstance(slots, Tensor)
    return slots


def assert_slots(slots: Any, wanted: dict[str, Tensor]) -> None:
    for name, rows in wanted.items():
        found = slot(slots, name)
        assert found.dtype == rows.dtype, name
        assert torch.equal(found, rows), f"{name}: {found.tolist()}, not {rows.tolist()}"


LIVE = [
    (live, tokens)
    for low, tokens in zip((0, *BUCKETS), BUCKETS, strict=False)
    for live in sorted({low, low + 1, tokens - 1, tokens} - ({low} if low else set()))
]


@pytest.mark.parametrize(("live", "tokens"), LIVE)
def test_slots_after_a_load_over_a_fuller_batch(
    stages: tuple[Any, Any], live: int, tokens: int
) -> None:
    first, _ = stages
    requests = min(live, 2)
    first.run(words_batch(tokens, REQUESTS, seed=1))  # stale contents in every row
    batch = words_batch(live, requests, seed=2)
    step = first.begin(batch)
    assert step.choice.padded == (tokens, REQUESTS)
    wanted = expected(batch, live, requests, tokens)
    assert_slots(step.slots, wanted)
    first.finish(step)


def test_poisoned_memory_is_gone_after_a_load(stages: tuple[Any, Any]) -> None:
    first, _ = stages
    batch = words_batch(5, 2)
    wanted = expected(batch, 5, 2, 8)
    slots = first.table[(8, REQUESTS)].slots
    constant = {"gain", "width"}
    for name in wanted.keys() - constant:
        slot(slots, name).fill_(STALE)
    step = first.begin(batch)
    assert_slots(step.slots, wanted)


def test_every_slot_of_the_spec_is_looked_at(stages: tuple[Any, Any]) -> None:
    first, last = stages
    names = {info.name for info in first.inputs.table()}
    elsewhere = {"kept", "kept_here", "drafted", "scratch"}
    assert names == expected(words_batch(3, 1), 3, 1, 4).keys() | elsewhere
    assert {info.name for info in last.inputs.table()} == names | {"turned"}


# ---------------------------------------------------------------- words with a test of their own


def test_keep_holds_initial_at_first_then_what_a_step_left(words: Any) -> None:
    first, _ = pipeline(words, captured=False)
    first.allocate()
    slots = first.table[(8, REQUESTS)].slots
    assert slots.kept.tolist() == [-2.0] * 8
    assert slots.kept_here.tolist() == [4] * 8
    rt.capture([first])
    fuller, batch = words_batch(7, 2, seed=3), words_batch(5, 2, seed=4)
    first.run(fuller)
    slots = first.begin(batch).slots
    assert torch.equal(slots.kept[:7], torch.cat([batch.kept, fuller.kept[5:]]))
    assert torch.equal(slots.kept_here[:7], torch.cat([batch.kept_here, fuller.kept_here[5:]]))


def test_caller_writes_between_begin_and_finish(stages: tuple[Any, Any]) -> None:
    first, last = stages
    batch = words_batch(5, 2)
    handed = first.run(batch)
    step = last.begin(batch, handed)
    assert step.slots.drafted[5:].tolist() == [9.0] * 3
    step.slots.drafted[:5] = torch.arange(5.0)
    out = last.finish(step)
    wanted = -batch.ids.float() + torch.arange(5.0) + 2.5 + batch.rare + 2 * batch.noise
    torch.testing.assert_close(out.copied, wanted)


def test_rows_that_the_caller_leaves_out_are_zero_and_not_an_earlier_step_s(
    stages: tuple[Any, Any],
) -> None:
    first, last = stages
    fuller, batch = words_batch(7, 2, seed=3), words_batch(5, 2, seed=4)
    step = last.begin(fuller, first.run(fuller))
    step.slots.drafted.fill_(100)
    last.finish(step)
    step = last.begin(batch, first.run(batch))
    assert step.choice.padded == (8, REQUESTS)  # the same rows
    assert step.slots.drafted.tolist() == [0.0] * 5 + [9.0] * 3
    out = last.finish(step)
    torch.testing.assert_close(out.copied, -batch.ids.float() + 2.5 + batch.rare + 2 * batch.noise)


def test_caller_may_write_in_an_eager_step_too(stages: tuple[Any, Any]) -> None:
    first, last = stages
    batch = words_batch(17, 2, seed=5)  # over capacity
    step = last.begin(batch, first.run(batch))
    assert step.choice.reason is rt.Reason.OVER_CAPACITY
    step.slots.drafted.add_(100)
    out = last.finish(step)
    wanted = -batch.ids.float() + 100 + 2.5 + batch.rare + 2 * batch.noise
    torch.testing.assert_close(out.copied, wanted)


def test_caller_may_write_in_an_eager_step_that_was_asked_for(stages: tuple[Any, Any]) -> None:
    first, last = stages
    batch = words_batch(5, 2, seed=5)
    begun = first.begin_eager(batch)
    assert (begun.choice.padded, begun.choice.reason) == (None, rt.Reason.REQUESTED)
    step = last.begin_eager(batch, first.finish(begun))
    assert step.slots.drafted.tolist() == [0.0] * 5
    step.slots.drafted.add_(100)
    out = last.finish(step)
    wanted = -batch.ids.float() + 100 + 2.5 + batch.rare + 2 * batch.noise
    torch.testing.assert_close(out.copied, wanted)
    assert last.last_step.path == "eager"


def test_an_eager_step_leaves_the_rows_of_the_batch_alone(
    words: Any, stages: tuple[Any, Any]
) -> None:
    first, _ = stages
    batch = words_batch(17, 2, seed=5)
    before = batch.noise.clone()
    first.run(batch)
    assert first.last_step.path == "eager"
    assert torch.equal(batch.noise, before)
    slots = first.inputs.bind(batch, None, words.StepExtents(17, 2))
    assert slots.noise.data_ptr() != batch.noise.data_ptr()  # mutable: a copy
    assert slots.host_noise.data_ptr() != batch.host_noise.data_ptr()
    assert slots.mask.data_ptr() == batch.mask.data_ptr()  # else the batch's own
    assert slots.ids.data_ptr() == batch.ids.data_ptr()


def test_a_mutable_slot_is_loaded_again_at_each_step(stages: tuple[Any, Any]) -> None:
    first, _ = stages
    batch = words_batch(4, 2, seed=6)
    for _ in range(3):
        first.run(batch)
        slots = first.table[(4, REQUESTS)].slots
        torch.testing.assert_close(slots.noise, 2 * batch.noise)  # once, not again and again
    assert torch.equal(slots.scratch, batch.weights[:, None].expand(-1, HIDDEN))


def test_absent_fill_sets_the_live_rows(words: Any, stages: tuple[Any, Any]) -> None:
    first, _ = stages
    batch = words_batch(3, 2, seed=7, bias=None)
    batch.mm.extra = batch.mm.scales = None
    slots = first.begin(batch).slots
    assert slots.extra.tolist() == [7, 7, 7, 5]
    assert slots.scales.tolist() == [6, 6, 6]
    assert slots.bias.tolist() == [0.25] * 3
    slots = first.inputs.bind(batch, None, words.StepExtents(3, 2))
    assert slots.extra.tolist() == [7, 7, 7]
    assert slots.scales.tolist() == [6, 6, 6]
    assert slots.bias.tolist() == [0.25] * 3


def test_none_anywhere_on_a_path_is_absent(stages: tuple[Any, Any]) -> None:
    first, _ = stages
    with pytest.raises(AbsentSourceError, match=r"slot mm\.grid: the source is None"):
        first.begin(words_batch(3, 2, mm=None))
    first.run(words_batch(3, 2))


def test_absent_eager_runs_the_model_with_none(stages: tuple[Any, Any]) -> None:
    first, last = stages
    batch = words_batch(3, 2, seed=8)
    handed = first.run(batch)
    batch.rare = None
    step = last.begin(batch, handed)
    assert step.slots.rare is None
    out = last.finish(step)
    assert str(last.last_step) == "eager 3 (source absent)"
    torch.testing.assert_close(out.copied, -batch.ids.float() + 2.5 + 2 * batch.noise)
    batch.rare = torch.ones(3)
    step = last.begin(batch, first.run(batch))
    step.slots.drafted[:3] = 0
    torch.testing.assert_close(last.finish(step).copied, out.copied + 1)


# ---------------------------------------------------------------- boundary and outputs


@pytest.mark.parametrize("fed", [False, True])
def test_received_rows_are_reset_inside_the_graph(words: Any, fed: bool) -> None:
    first, last = pipeline(words, fed=fed)
    fuller = words_batch(8, REQUESTS, seed=9)
    last.run(fuller, first.run(fuller))
    batch = words_batch(5, 2, seed=10)
    last.run(batch, first.run(batch))
    received = last.table[(8, REQUESTS)].boundary
    spread = batch.ids[:, None] * batch.weights[:, None].expand(-1, HIDDEN)
    turned = torch.stack([batch.ids.float(), -batch.ids.float()])
    assert torch.equal(received.hidden_states, padded_like(spread, 8, 0))
    assert torch.equal(received.turned, repeated(turned, 8, dim=1))
    assert torch.equal(received.starts, padded_like(batch.ends + 1, REQUESTS + 1, HIDDEN))
    assert torch.equal(received.count, (batch.mm.scales + batch.host_noise.sum()).int())
    assert last.table[(8, REQUESTS)].slots.turned.data_ptr() == received.turned.data_ptr()


def test_slots_of_a_later_stage_are_loaded_like_the_first_ones(stages: tuple[Any, Any]) -> None:
    first, last = stages
    fuller = words_batch(16, REQUESTS, seed=11)
    last.run(fuller, first.run(fuller))
    batch = words_batch(9, 3, seed=12)
    step = last.begin(batch, first.run(batch))
    assert_slots(step.slots, expected(batch, 9, 3, 16))


def test_outputs_are_trimmed_along_their_own_axis(stages: tuple[Any, Any]) -> None:
    first, last = stages
    batch = words_batch(6, 3, seed=13)
    out = last.run(batch, first.run(batch))
    assert out.first.shape == (6, HIDDEN)
    assert out.copied.shape == (6,)
    columns = torch.arange(1, HIDDEN + 1)
    assert torch.equal(out.ringed, columns[:, None] * batch.lengths[None].float())
    total = (batch.mm.scales + batch.host_noise.sum()).sum() + batch.bias.sum()
    torch.testing.assert_close(out.whole, torch.full((REQUESTS,), float(total)))


def test_view_is_overwritten_clone_is_not_ring_holds_three(words: Any) -> None:
    first, last = pipeline(words)
    batches = [words_batch(6, 3, seed=seed) for seed in range(20, 26)]
    for turn, batch in enumerate(batches):
        batch.lengths = torch.tensor([6 - turn, turn, 0], dtype=torch.int32)
    outs = [last.run(batch, first.run(batch)) for batch in batches]
    assert len({out.first.data_ptr() for out in outs}) == 1
    assert len({out.copied.data_ptr() for out in outs}) == len(outs)
    addresses = [out.ringed.data_ptr() for out in outs]
    assert len(set(addresses)) == 3
    assert addresses[:3] == addresses[3:]
    for turn in (3, 4, 5):  # the last three are whole
        assert outs[turn].ringed[0].tolist() == [6.0 - turn, float(turn), 0.0]
    assert torch.equal(outs[0].ringed, outs[3].ringed)


def test_bytes_in_the_report_count_the_ring_and_every_buffer_once(stages: tuple[Any, Any]) -> None:
    _, last = stages
    tokens, requests, word = 16, REQUESTS, 4
    slots = sum(
        buffer.nbytes for name, buffer in last.arena.named("slot.")
    )  # measured; the rest is by hand
    received = tokens * HIDDEN * word + 2 * tokens * word + 3 * word + (requests + 1) * word
    outputs = tokens * HIDDEN * word + tokens * word + HIDDEN * requests * word + requests * word
    ring = 3 * HIDDEN * requests * word
    assert last.report().slot_bytes == slots + received + outputs + ring


# ---------------------------------------------------------------- state


def test_capture_writes_the_reserved_row_alone_and_a_step_its_live_rows(words: Any) -> None:
    first, last = pipeline(words)
    for runner in (first, last):
        (pool,) = runner.state.pool
        assert (pool[1:] == -1).all()
        assert pool[0] != -1
    batch = words_batch(5, 2, seed=14)
    batch.written = torch.tensor([3, 9, 30, 4, 31])
    first.run(batch)
    (pool,) = first.state.pool
    untouched = torch.full((POOL_ROWS,), -1.0)
    untouched[batch.written] = batch.ids.float()
    assert torch.equal(pool[1:], untouched[1:])
