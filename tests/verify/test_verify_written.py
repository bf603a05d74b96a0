"""Slots of hooks and the caller: clean whatever they write past live; planted faults are named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from probe_family import caught
from spec_tools import SPECS
from test_verify_loading import loading_as
from torch import Tensor
from written_model import Model, Planner, Reckless, batch_of, built, write_as_caller

from ppcgc.runtime import Subject, verify
from ppcgc.runtime.verification import Verdict


def subject(runner: Any) -> Subject:
    def batch(live: Any, seed: int) -> Any:
        return batch_of(live.requests, live.pages)

    return Subject(runners=[runner], batches=batch, content="ids", before_finish=write_as_caller)


def slot_line(name: str) -> str:
    """``slot bias (written.yaml:26)``."""
    lines = (SPECS / "written.yaml").read_text(encoding="utf-8").splitlines()
    at = next(n for n, line in enumerate(lines, 1) if f"{{name: {name}," in line)
    return f"slot {name} (written.yaml:{at})"


def test_authors_who_write_past_live_pass(tmp_path: Path) -> None:
    found = verify(subject(built(tmp_path)))
    assert [str(finding) for finding in found.findings] == []
    evidence = found["loading"].evidence
    assert "bias (live rows, its source is hook)" in evidence
    assert "drafted (live rows, its source is caller)" in evidence


def old_rows(name: str) -> Callable[..., None]:
    """A load that leaves 5 in the live rows, as an earlier step might have."""

    def spoil(slots: Any, batch: Any, live: Any, host: Any) -> None:
        slot = getattr(slots, name)
        if slot is not None:
            slot.copy_(torch.full_like(slot, 5))

    return spoil


@pytest.mark.parametrize(
    ("name", "author"),
    [("bias", "the hook"), ("codes", "the hook"), ("grid", "the hook"), ("whole", "the hook"),
     ("kept", "the hook"), ("noise", "the hook"), ("drafted", "the caller")],
)  # fmt: skip
def test_live_rows_that_the_load_does_not_zero(tmp_path: Path, name: str, author: str) -> None:
    runner = built(tmp_path)
    loading_as(runner, old_rows(name))
    texts = ["live rows that hold an earlier step's: expected 0", "found 5"]
    caught(subject(runner), "loading", slot_line(name), f"{author} gets", *texts)


def padding_as(runner: Any, pad: Callable[..., None]) -> None:
    """Let ``pad(padded, slots, live)`` stand for the runner's late padding."""
    inputs = type(runner.inputs)

    class Spoilt(inputs):  # type: ignore[misc, valid-type]  # generated in this process
        def pad_late(self, slots: Any, live: Any, padded: Any) -> None:
            pad(lambda: super(Spoilt, self).pad_late(slots, live, padded), slots, live)

    runner.inputs.__class__ = Spoilt


def but_for(name: str) -> Callable[..., None]:
    """All padded late but one slot."""

    def pad(padded: Callable[[], None], slots: Any, live: Any) -> None:
        slot = getattr(slots, name)
        kept = None if slot is None else slot.clone()
        padded()
        if kept is not None:
            slot.copy_(kept)

    return pad


@pytest.mark.parametrize(
    ("name", "padding"),
    [("bias", "zero`"), ("codes", "fill`"), ("depth", "fill`"), ("again", "repeat_last`"),
     ("ends", "repeat_last`"), ("noise", "zero`"), ("table", "fill`"), ("grid", "zero,fill`"),
     ("embeds", "zero`"), ("drafted", "fill`")],
)  # fmt: skip
def test_a_slot_that_is_not_padded_late(tmp_path: Path, name: str, padding: str) -> None:
    runner = built(tmp_path)
    padding_as(runner, but_for(name))
    caught(subject(runner), "loading", slot_line(name), f"not `padding: {padding} at the replay")


class PlansPastLive(Planner):
    def plan(self, made: object, slots: Any, batch: Any, live: Any) -> None:
        slots.depth[live.requests :] = 4


def test_a_plan_that_writes_past_live(tmp_path: Path) -> None:
    faulty = subject(built(tmp_path, planner=PlansPastLive()))
    caught(faulty, "loading", slot_line("depth"), "expected 10, found 4")


class SumsBias(Model):
    def extra(self, total: Tensor, view: Any) -> Tensor:
        summed: Tensor = view.bias.sum()
        return total + summed


class SumsEmbeds(Model):
    def extra(self, total: Tensor, view: Any) -> Tensor:
        most: Tensor = view.embeds.amax()
        return total + most


@pytest.mark.parametrize(("model", "name"), [(SumsBias, "bias"), (SumsEmbeds, "embeds")])
def test_padded_rows_of_a_written_slot_that_reach_live_ones(
    tmp_path: Path, model: type[Model], name: str
) -> None:
    faulty = subject(built(tmp_path, model=model()))
    caught(faulty, "padding", slot_line(name), "a live row sees padded ones", "view.")
    assert verify(faulty, checks=["loading"])["loading"].verdict is Verdict.PASSED


@pytest.mark.parametrize("rows", [slice(0, 1), slice(-1, None)], ids=["live", "past live"])
def test_a_plan_that_writes_what_was_loaded(tmp_path: Path, rows: slice) -> None:
    class Overwriting(Planner):
        def plan(self, made: object, slots: Any, batch: Any, live: Any) -> None:
            super().plan(made, slots, batch, live)
            slots.ids[rows] = 77

    found = "when the replay begins"
    caught(subject(built(tmp_path, planner=Overwriting())), "loading", slot_line("ids"), found)


def test_a_load_of_a_hook_that_writes_what_was_loaded(tmp_path: Path) -> None:
    class Overwriting(Reckless):
        def load(self, slots: Any, batch: Any, live: Any) -> None:
            super().load(slots, batch, live)
            slots.ids[0] = 77

    texts = ["live rows are not the source's", "a hook's `load` or `before_finish` wrote it"]
    caught(subject(built(tmp_path, filler=Overwriting())), "loading", slot_line("ids"), *texts)


def test_an_error_of_a_hook_says_which_hook_it_was(tmp_path: Path) -> None:
    class Failing(Planner):
        def plan(self, made: object, slots: Any, batch: Any, live: Any) -> None:
            if self.seen:
                raise KeyError("no such page")
            super().plan(made, slots, batch, live)

    runner = built(tmp_path)
    runner.hook_calls.states[1].hook = Failing()
    found = verify(subject(runner), checks=["loading"])["loading"]
    assert "in hook planner: Failing.plan for" in str(found)
