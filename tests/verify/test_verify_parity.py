"""Planted: replays that are not what the model computes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from probe_family import build, caught, subject
from probe_model import ToyDecode, ToyPrefill
from torch import Tensor


class Switched(ToyPrefill):
    """What its caller sets after the capture has no effect on a replay."""

    loud = False

    def extra(self, hidden: Tensor, view: Any) -> Any:
        if self.loud:
            return torch.tanh(hidden)
        return hidden


class SwitchedState(Switched):
    def write(self, hidden: Tensor, view: Any) -> None:
        super().write(hidden, view)
        if self.loud:
            self.kv.index_add_(0, view.slot_mapping, hidden)

    def extra(self, hidden: Tensor, view: Any) -> Any:
        return hidden


def switch(runner: Any, step: Any, batch: Any) -> None:
    runner.model.loud = True


@pytest.mark.parametrize("model", [Switched, SwitchedState])
def test_a_branch_frozen_at_capture(model: type[Switched]) -> None:
    faulty = subject(build(models=(model,)), before_finish=switch)
    line = "return torch.tanh(hidden)" if model is Switched else "self.kv.index_add_"
    caught(faulty, "parity", "the replay is not what the model computes", line)


class PaddedMean(ToyPrefill):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        return hidden / hidden.shape[0]


class BranchOnSize(ToyPrefill):
    """From 5 to 6 rows alone is the bucket of 8 on another branch than the rows themselves."""

    def extra(self, hidden: Tensor, view: Any) -> Any:
        return torch.tanh(hidden) if hidden.shape[0] > 6 else hidden


class PaddedCount(ToyDecode):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        return hidden * view.seq_lens.numel()


class PaddedWrite(ToyPrefill):
    def write(self, hidden: Tensor, view: Any) -> None:
        self.kv.index_copy_(0, view.slot_mapping, hidden * hidden.shape[0])


@pytest.mark.parametrize(
    ("runner", "model", "what"),
    [
        ("prefill", PaddedMean, "output hidden"),
        ("prefill", BranchOnSize, "output hidden"),
        ("decode", PaddedCount, "output hidden"),
        ("prefill", PaddedWrite, "state kv[0], rows of live tokens"),
    ],
)
def test_a_padded_size_in_live_rows(runner: str, model: type[Any], what: str) -> None:
    models = ({"prefill": ToyPrefill, "decode": ToyDecode}[runner], model)
    faulty = subject(build(runner, models=models))
    caught(faulty, "parity", f"{runner} last", what, "the padded step is not the live one")


def test_a_boundary_that_is_not_received() -> None:
    runners = build()
    runners[1].incoming.receive = lambda into, source, live, host: None
    caught(subject(runners), "parity", "prefill last", "output hidden")


def test_a_boundary_received_one_row_short() -> None:
    runners = build()
    receive = runners[1].incoming.receive

    def short(into: Any, source: Any, live: Any, host: Any) -> None:
        receive(into, source, live, host)
        into.hidden_states[live.tokens - 1] = 0

    runners[1].incoming.receive = short
    caught(subject(runners), "parity", "prefill last", "output hidden")


class Masked(ToyPrefill):
    """The last word's logit stands for none; the others may be divided by the padded rows."""

    sentinel = float("-inf")
    faulty = True

    def leave(self, hidden: Tensor, handed: Any, *, is_last: bool) -> Any:
        if self.faulty:
            hidden = hidden / hidden.shape[0]
        return torch.cat([hidden[:, :-1], torch.full_like(hidden[:, -1:], self.sentinel)], 1)


class MaskedByNumber(Masked):
    sentinel = -1e9


class NoNumber(Masked):
    sentinel = float("nan")
    faulty = False


@pytest.mark.parametrize("model", [Masked, MaskedByNumber])
def test_a_masked_word_hides_no_wrong_logit(model: type[Masked]) -> None:
    faulty = subject(build(models=(model,), stages=1))
    caught(faulty, "parity", "the padded step is not the live one")


def test_a_live_row_that_holds_nan_is_named_as_such() -> None:
    faulty = subject(build(models=(NoNumber,), stages=1))
    caught(faulty, "parity", "live rows 0, 1, 2 hold NaN, eagerly at their own shape too")
