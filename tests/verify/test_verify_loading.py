"""Planted: loads that break a slot's policy, forwards that write others' rows or read them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from probe_family import build, caught, slot_line, subject
from probe_model import ToyDecode, ToyPrefill
from torch import Tensor

from ppcgc.runtime import verify

Load = Callable[[Any, Any, Any, Any, Any], None]


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
