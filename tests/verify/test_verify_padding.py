"""Planted: rows beyond live that reach live ones."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from probe_family import build, caught, slot_line, subject
from probe_model import ToyDecode, ToyPrefill
from torch import Tensor

from ppcgc.runtime import assert_verified, verify
from ppcgc.runtime.verification import Verdict


class MeanOverRows(ToyPrefill):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        return hidden + hidden.mean(0, keepdim=True)


class MostOfRows(ToyPrefill):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        return hidden + hidden.amax(0, keepdim=True)


class SumsFromTheEnd(ToyPrefill):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        return hidden + hidden.flip(0).cumsum(0).flip(0)


class NextRow(ToyPrefill):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        return hidden + hidden.roll(-1, 0)


class NoMask(ToyPrefill):
    def mask(self, view: Any) -> Any:
        rows = view.positions.shape[0]
        return torch.ones(rows, rows, dtype=torch.bool)


class NeedsKeptRows(ToyPrefill):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        return hidden + view.kept.sum() * 0.1


class NeedsWeights(ToyPrefill):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        return hidden * view.weights.sum()


class LastPosition(ToyPrefill):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        return hidden + self.position(view.positions[-1:])


class Unfilled(ToyPrefill):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        room = torch.empty_like(hidden)
        room[1:] = hidden[1:]
        return room


class NoLengths(ToyDecode):
    def mask(self, view: Any) -> Any:
        return torch.ones(view.slot_table.shape, dtype=torch.bool)


class WholePool(ToyDecode):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        return hidden + self.kv[40:].mean(0)


@pytest.mark.parametrize(
    ("model", "texts"),
    [
        (MeanOverRows, ["hidden + hidden.mean(0, keepdim=True)"]),
        (MostOfRows, ["hidden + hidden.amax(0, keepdim=True)"]),
        (SumsFromTheEnd, ["hidden.flip(0).cumsum(0)"]),
        (NextRow, ["hidden.roll(-1, 0)"]),
        (NoMask, [slot_line("positions"), "scores.softmax(-1)"]),
        (NeedsKeptRows, [slot_line("kept"), "view.kept.sum()", "padding: zero"]),
        (NeedsWeights, [slot_line("weights"), "view.weights.sum()"]),
        (LastPosition, [slot_line("positions"), "view.positions[-1:]"]),
        (Unfilled, ["memory that was never written", "room = torch.empty_like(hidden)"]),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
@pytest.mark.parametrize("stage", [0, 1])
def test_a_forward_that_reads_padded_rows(
    model: type[ToyPrefill], texts: list[str], stage: int
) -> None:
    models = (model,) if stage == 0 else (ToyPrefill, model)
    place = ["prefill first", "prefill last"][stage]
    caught(subject(build(models=models)), "padding", place, *texts)


@pytest.mark.parametrize(
    ("model", "texts"),
    [
        (NoLengths, ["state kv[0], rows that no live request owns", "self.kv[view.slot_table]"]),
        (WholePool, ["state kv[0], rows that no live request owns", "self.kv[40:].mean(0)"]),
    ],
)
def test_a_decode_that_reads_others_rows(model: type[ToyDecode], texts: list[str]) -> None:
    caught(subject(build("decode", models=(model,))), "padding", "decode first", *texts)


def test_a_reset_left_out_before_a_forward_that_mixes_rows() -> None:
    class Mixes(ToyPrefill):
        def enter(self, input_ids: Tensor | None, handed: Any) -> Any:
            hidden = handed["hidden_states"]
            return hidden + hidden.sum(0)

    runners = build(models=(ToyPrefill, Mixes))
    runners[1].incoming.reset = lambda rows, live, axes: None
    caught(subject(runners), "padding", "prefill last", "boundary.hidden_states", "inside the")


def test_kernels_that_group_rows_may_have_a_tolerance() -> None:
    class Grouped(ToyPrefill):
        def extra(self, hidden: Tensor, view: Any) -> Any:
            return hidden + self.position(view.positions).sum() * 1e-9

    caught(subject(build(models=(Grouped,))), "padding", "prefill first")
    plain = subject(build(models=(Grouped,)))
    assert_verified(plain.runners, plain.batches, checks=["padding"], padding_tolerance=1e-5)


def test_rows_that_the_subject_says_are_read() -> None:
    class ReadsRowTwo(ToyDecode):
        def extra(self, hidden: Tensor, view: Any) -> Any:
            return hidden + self.kv[2]

    told = subject(build("decode", models=(ReadsRowTwo,)), owned=rows_read)
    found = verify(told, checks=["padding"])
    assert found.ok, found
    caught(subject(build("decode", models=(ReadsRowTwo,))), "padding", "return hidden + self.kv[2]")


def rows_read(batch: Any, state: str) -> list[int]:
    assert state == "kv"
    return [2, *batch.slot_table.flatten().tolist()]


class Remembers(ToyPrefill):
    """Adds what the last step had: whatever a probe changes, the step differs."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.kept_by_size: dict[int, Tensor] = {}

    def extra(self, hidden: Tensor, view: Any) -> Any:
        last = self.kept_by_size.setdefault(hidden.shape[0], torch.zeros_like(hidden))
        before = last.clone()
        last.copy_(hidden)
        return hidden + before


def test_a_step_that_does_not_repeat_itself_is_named_and_no_slot() -> None:
    result = verify(subject(build(models=(Remembers,))), checks=["padding"])["padding"]
    assert result.verdict is Verdict.FAILED
    assert {finding.subject for finding in result.findings} == {"the step itself"}
    assert "gives other numbers when it is run again" in str(result.findings[0])


class ReadsOldMemory(ToyPrefill):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        room = torch.empty(5000, hidden.shape[1])  # more than this replay writes elsewhere
        room[: hidden.shape[0]] = hidden
        return room[: hidden.shape[0]] + room[-1] * 0


def test_old_memory_among_the_intermediates_is_named_and_no_slot() -> None:
    """What one probe leaves there is not what the next one sees."""
    result = verify(subject(build(models=(ReadsOldMemory,))), checks=["padding"])["padding"]
    named = {finding.subject for finding in result.findings}
    assert named == {"shared pool of intermediates", "memory that was never written"}
