"""Planted: loads that break a slot's policy, forwards that write others' rows or read them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from probe_family import build, captured, caught, slot_line, subject
from probe_model import ToyDecode, ToyPrefill
from torch import Tensor

from ppcgc.runtime import verify
from ppcgc.runtime.verification.neighbours import neighbour_findings
from ppcgc.runtime.verification.session import Session, holds_numbers


def loading_as(runner: Any, after: Callable[[Any, Any, Any, Any], None]) -> None:
    """Let ``after(slots, batch, live, bucket)`` spoil what the runner's load did."""
    inputs = type(runner.inputs)

    class Spoilt(inputs):  # type: ignore[misc, valid-type]  # generated in this process
        def load(self, slots: Any, host: Any, batch: Any, live: Any, padded: Any) -> None:
            super().load(slots, host, batch, live, padded)
            after(slots, batch, live, host)

    runner.inputs.__class__ = Spoilt


def with_stale_tail(runner: Any, slot: str, rows: Callable[[Any], int]) -> None:
    """The rows past live keep what they held before the load."""
    inputs = type(runner.inputs)

    class Stale(inputs):  # type: ignore[misc, valid-type]  # generated in this process
        def load(self, slots: Any, host: Any, batch: Any, live: Any, padded: Any) -> None:
            old = getattr(slots, slot)[rows(live) :].clone()
            super().load(slots, host, batch, live, padded)
            getattr(slots, slot)[rows(live) :] = old

    runner.inputs.__class__ = Stale


@pytest.mark.parametrize("slot", ["input_ids", "positions", "slot_mapping", "weights", "noise"])
def test_a_stale_tail(slot: str) -> None:
    runners = build()
    with_stale_tail(runners[0], slot, lambda live: int(live.tokens))
    caught(subject(runners), "loading", slot_line(slot), "rows past live")


@pytest.mark.parametrize(("slot", "more"), [("cu_seqlens", 1), ("seq_lens", 0)])
def test_a_stale_tail_of_requests(slot: str, more: int) -> None:
    runners = build()
    with_stale_tail(runners[1], slot, lambda live: int(live.requests) + more)
    caught(subject(runners), "loading", "prefill last", slot_line(slot), "rows past live")


@pytest.mark.parametrize("slot", ["input_ids", "slot_mapping", "slot_table", "seq_lens"])
def test_a_stale_tail_in_decode(slot: str) -> None:
    runners = build("decode")
    with_stale_tail(runners[0], slot, lambda live: int(live.requests))
    # a bucket of 4 with 3 live requests
    caught(subject(runners), "loading", "tokens=4", slot_line(slot, "decode"), "past live")


def zero_offsets(slots: Any, batch: Any, live: Any, host: Any) -> None:
    slots.cu_seqlens[live.requests + 1 :] = 0


def zero_write_index(slots: Any, batch: Any, live: Any, host: Any) -> None:
    slots.slot_mapping[live.tokens :] = 0


def turned_positions(slots: Any, batch: Any, live: Any, host: Any) -> None:
    slots.positions[: live.tokens] = batch.positions.flip(0)


def one_row_short(slots: Any, batch: Any, live: Any, host: Any) -> None:
    slots.weights[live.tokens - 1] = 0


def padded_count(slots: Any, batch: Any, live: Any, host: Any) -> None:
    slots.num_tokens.fill_(slots.positions.shape[0])


def computed_by_row(slots: Any, batch: Any, live: Any, host: Any) -> None:
    slots.number[1:] -= 1


def written_const(slots: Any, batch: Any, live: Any, host: Any) -> None:
    slots.gain[0] = 1.0


def wrong_fill(slots: Any, batch: Any, live: Any, host: Any) -> None:
    slots.weights[live.tokens :] = 0


def other_bias(slots: Any, batch: Any, live: Any, host: Any) -> None:
    slots.bias.mul_(2)


def wrong_counts(slots: Any, batch: Any, live: Any, host: Any) -> None:
    host.device_views[0][0] += 1


@pytest.mark.parametrize(
    ("spoil", "texts"),
    [
        (zero_offsets, [slot_line("cu_seqlens"), "padding: repeat_last"]),
        (zero_write_index, ["slot slot_mapping", "padding: fill", "expected 3, found 0"]),
        (turned_positions, ["slot positions", "live rows are not the source's"]),
        (one_row_short, ["slot weights", "live rows are not the source's"]),
        (padded_count, [slot_line("num_tokens"), "live rows"]),
        (computed_by_row, [slot_line("number"), "rows 1, 2, 3"]),
        (written_const, [slot_line("gain"), "rows 0 of"]),
        (wrong_fill, ["slot weights", "expected 1.0, found 0.0"]),
        (other_bias, [slot_line("bias"), "live rows"]),
        (wrong_counts, ["live counts", "the device holds"]),
    ],
)
def test_a_slot_that_is_not_as_declared(spoil: Any, texts: list[str]) -> None:
    runners = build()
    loading_as(runners[0], spoil)
    caught(subject(runners), "loading", "prefill first", *texts)


def test_a_boundary_reset_that_starts_a_row_late() -> None:
    """Of several rows past live all but one are reset."""
    runners = build()
    reset = runners[1].incoming.reset
    runners[1].incoming.reset = lambda rows, live, axes: reset(rows, live + 1, axes)
    caught(subject(runners), "loading", "boundary.hidden_states", "old bytes")


def test_a_slot_that_stops_the_first_steps_is_named() -> None:
    """A stale index ends the step in some op; what it was loaded with says why."""
    runners = build()
    with_stale_tail(runners[0], "positions", lambda live: int(live.tokens))
    found = verify(subject(runners))
    assert slot_line("positions") in str(found)


def test_a_boundary_reset_that_is_left_out() -> None:
    runners = build()
    runners[1].incoming.reset = lambda rows, live, axes: None
    caught(subject(runners), "loading", "prefill last", "boundary.hidden_states", "left out")


class WritesByPosition(ToyPrefill):
    def write(self, hidden: Tensor, view: Any) -> None:
        self.kv[: hidden.shape[0]] = hidden


class WritesPaddingToRowZero(ToyPrefill):
    def write(self, hidden: Tensor, view: Any) -> None:
        rows = torch.where(view.slot_mapping == 3, 0, view.slot_mapping)
        self.kv.index_copy_(0, rows, hidden)


class SkipsItsLastRow(ToyPrefill):
    def write(self, hidden: Tensor, view: Any) -> None:
        self.kv.index_copy_(0, view.slot_mapping[1:], hidden[1:])


@pytest.mark.parametrize(
    ("model", "texts"),
    [
        (WritesByPosition, ["state kv[0]", "which neither live rows nor padding own"]),
        (WritesPaddingToRowZero, ["state kv[0]", "rows 0 were written", "slot slot_mapping"]),
        (SkipsItsLastRow, ["state kv", "of live tokens were not written"]),
    ],
)
def test_rows_of_the_state(model: type[ToyPrefill], texts: list[str]) -> None:
    caught(subject(build(models=(ToyPrefill, model))), "loading", "prefill last", *texts)


class SeesOtherRequests(ToyPrefill):
    def mask(self, view: Any) -> Any:
        rows = torch.arange(view.positions.shape[0])
        return rows[:, None] >= rows[None]


class MeanOverLiveRows(ToyPrefill):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        live = (torch.arange(hidden.shape[0]) < view.num_tokens)[:, None]
        mean = (hidden * live).sum(0) / view.num_tokens
        return hidden + mean


class MixesRequests(ToyDecode):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        return hidden + hidden[:1]


@pytest.mark.parametrize(
    ("runner", "models", "texts"),
    [
        ("prefill", (SeesOtherRequests,), ["prefill first", "scores.softmax(-1) @ keys"]),
        ("prefill", (ToyPrefill, SeesOtherRequests), ["prefill last", "request 0"]),
        ("prefill", (MeanOverLiveRows,), ["prefill first", "return hidden + mean"]),
        ("decode", (MixesRequests,), ["decode first", "return hidden + hidden[:1]"]),
    ],
)
def test_neighbours(runner: str, models: tuple[Any, ...], texts: list[str]) -> None:
    faulty = subject(build(runner, models=models))
    caught(faulty, "loading", "changed rows", "of other requests", *texts)


class ScalesByTheFirst(ToyPrefill):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        return hidden * view.weights[0]


class SeesTheNextRequest(ToyPrefill):
    def mask(self, view: Any) -> Any:
        request = self.requests(view)
        later = (request[:, None] + 1 == request[None]) & (request[None] < view.seq_lens.shape[0])
        return super().mask(view) | later


class ReadsTheFirstTable(ToyDecode):
    def attend(self, hidden: Tensor, view: Any) -> Any:
        return super().attend(hidden, view) + self.kv[view.slot_table[:1, 0]]


@pytest.mark.parametrize(
    ("runner", "model", "texts"),
    [
        ("prefill", ScalesByTheFirst, ["other content in request 0", "hidden * view.weights[0]"]),
        ("prefill", SeesTheNextRequest, ["in request", "mask by request"]),
        ("decode", ReadsTheFirstTable, ["other state in request 0", "each row's own index"]),
    ],
)
def test_neighbours_by_any_row_of_a_request(
    runner: str, model: type[Any], texts: list[str]
) -> None:
    faulty = subject(build(runner, models=(model,)))
    caught(faulty, "loading", f"{runner} first", "changed rows", "of other requests", *texts)


class WritesToTheNeighbour(ToyDecode):
    def write(self, hidden: Tensor, view: Any) -> None:
        rows = view.slot_mapping
        swapped = torch.cat([rows[1:2], rows[:1], rows[2:]])
        self.kv.index_copy_(0, swapped, torch.tanh(hidden))


def test_a_row_of_the_state_that_another_request_names() -> None:
    faulty = subject(build("decode", models=(ToyDecode, WritesToTheNeighbour)))
    texts = ["state kv[0]", "other content in request 0 changed rows", "which it does not name"]
    caught(faulty, "loading", "decode last", *texts)


def test_a_step_that_does_not_repeat_itself_is_no_neighbour() -> None:
    """What is found is named as it is: some object keeps something from one step to the next."""
    runners = captured(build())
    load, seen = type(runners[0].inputs).load, []

    class Drifting(type(runners[0].inputs)):  # type: ignore[misc]  # generated in this process
        def load(self, slots: Any, host: Any, batch: Any, live: Any, padded: Any) -> None:
            load(self, slots, host, batch, live, padded)
            seen.append(live)
            slots.weights[: live.tokens] *= 1 + len(seen) / 100

    runners[0].inputs.__class__ = Drifting
    session = Session(subject(runners), quick=True, say=lambda text: None)
    session.prepare()
    found, _ = neighbour_findings(session)
    assert found
    assert all("gives other numbers when it is run again" in one.what for one in found)


class SoftmaxOverNothing(ToyPrefill):
    def write(self, hidden: Tensor, view: Any) -> None:
        nothing = view.cu_seqlens[-1] <= torch.arange(hidden.shape[0])
        self.kv.index_copy_(0, view.slot_mapping, torch.tanh(hidden) / (~nothing)[:, None])


def test_reserved_rows_stay_finite() -> None:
    faulty = subject(build(models=(ToyPrefill, SoftmaxOverNothing)))
    caught(faulty, "loading", "prefill last", "state kv[0]", "NaN in the reserved rows 3")


def test_only_what_may_be_any_number_is_filled_and_flooded() -> None:
    """Bytes are quantized numbers; wider integers may be indices."""
    kinds = (torch.float32, torch.bfloat16, torch.float8_e4m3fn, torch.int8, torch.uint8)
    assert all(holds_numbers(torch.zeros(1, dtype=dtype)) for dtype in kinds)
    others = (torch.int16, torch.int32, torch.int64, torch.bool)
    assert not any(holds_numbers(torch.zeros(1, dtype=dtype)) for dtype in others)
