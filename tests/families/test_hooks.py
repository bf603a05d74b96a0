"""Hooks around graphs: what is called when, with what, and a Llama whose attention is planned.

The library that plans is a stand-in here; `test_flashinfer.py` has the same with FlashInfer.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from demo_specs import import_spec
from hf_family import TOLERANCE, alone, small_model
from paged_family import Paged, build, llama_config, sequences_of
from planned_library import PlannedLibrary, calls

from ppcgc.runtime import HookInfo, LayerRange, capture, open_backend
from ppcgc.runtime.errors import BuildError
from ppcgc.runtime.hooks import HookState

PLAN_BYTES = 4096
SMALL = {
    "hidden_size": 48,
    "intermediate_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
}


@cache
def planned(device: str, stages: int) -> tuple[Any, PlannedLibrary, Paged, list[str]]:
    """A model, the library and the runners with it, and what was called until they were built."""
    model = small_model(llama_config(**SMALL), device)
    library = PlannedLibrary()
    made = build(model, library, stages=stages, device=device, plan_bytes=PLAN_BYTES)
    return model, library, made, list(library.log)


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_planned_attention_equals_the_unsplit_model(device: str, stages: int) -> None:
    model, _, made, _ = planned(device, stages)
    made.serve(sequences_of([40, 17, 33, 60, 5, 16], seed=1), "prefill")  # plans that get stale
    sequences = sequences_of([9, 1, 33, 16, 20], seed=2)
    for step in range(4):
        logits = made.serve(sequences, "prefill" if step == 0 else "decode")
        line = made.decode if step else made.prefill
        assert [str(r.last_step) for r in line] == [
            "replay 5→8" if step else "replay 79→128"
        ] * stages
        expected = torch.stack([alone(model, s.ids) for s in sequences])
        torch.testing.assert_close(logits, expected, atol=TOLERANCE, rtol=0)
        for sequence, token in zip(sequences, logits.argmax(-1).tolist(), strict=True):
            sequence.ids.append(token)


def test_an_eager_step_is_planned_for_its_own_rows(device: str) -> None:
    model, library, made, _ = planned(device, 1)
    sequences = sequences_of([9, 1, 20], seed=2)
    library.log.clear()
    logits = made.serve(sequences, "prefill", eager=True)
    assert library.log[:2] == ["key 3", "plan 3"]
    expected = torch.stack([alone(model, s.ids) for s in sequences])
    torch.testing.assert_close(logits, expected, atol=TOLERANCE, rtol=0)


def test_a_key_for_each_graph_and_a_plan_before_each_run(device: str) -> None:
    _, library, made, built = planned(device, 1)
    layers, buckets = 3, [128, 64, 32, 16, 16, 8, 4, 2, 1]
    assert len(made.runners()[0].table) + len(made.runners()[1].table) == len(buckets)
    assert len(calls(built, "key")) == len(buckets)
    # warm-up and capture of each graph: one plan, and then the layers of the model
    assert len(calls(built, "plan")) == 2 * len(buckets)
    assert len(calls(built, "run")) == 2 * len(buckets) * layers
    kinds = [call.split()[0] for call in built]
    assert all(kinds[at - 1] == "plan" for at in starts(kinds, layers))

    library.log.clear()
    sequences = sequences_of([9, 1, 20], seed=2)
    made.serve(sequences, "prefill")
    assert library.log == ["plan 16"]  # a replay runs no Python of the model
    for sequence in sequences:
        sequence.ids.append(7)
    made.serve(sequences, "decode")
    assert library.log == ["plan 16", "plan 4"]

    library.log.clear()
    capture(made.runners())  # again: graphs anew, their keys as they were
    assert calls(library.log, "key") == []
    assert len(calls(library.log, "plan")) == 2 * len(buckets)


def starts(kinds: list[str], layers: int) -> list[int]:
    """Where each forward begins: the first of its layers' runs."""
    return [at for at, kind in enumerate(kinds) if kind == "run"][::layers]


def test_graphs_of_a_runner_share_the_workspace_that_the_spec_declares(device: str) -> None:
    _, library, made, _ = planned(device, 1)
    prefill, decode = (
        line[0].hook_calls.states[0].workspace for line in (made.prefill, made.decode)
    )
    assert {w.data_ptr() for w in library.workspaces} == {prefill.data_ptr(), decode.data_ptr()}
    assert prefill.data_ptr() != decode.data_ptr()
    for workspace in (prefill, decode):
        assert (workspace.dtype, workspace.shape) == (torch.uint8, (PLAN_BYTES,))
        assert workspace.device.type == device
        assert not workspace.any()


def test_the_report_gives_the_time_of_plans_apart() -> None:
    made = planned("cpu", 1)[2]
    (before,) = made.prefill[0].report().hooks
    made.serve(sequences_of([9, 1], seed=2), "prefill")
    report = made.prefill[0].report()
    (hook,) = report.hooks
    assert (hook.name, hook.plans) == ("attention", before.plans + 1)
    assert hook.plan_seconds > before.plan_seconds > 0
    assert f"hook attention: {hook.plans} plans" in str(report)


def test_a_plan_that_fails_leaves_the_runner_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    _, library, made, _ = planned("cpu", 1)
    sequences = sequences_of([9, 1], seed=2)
    good = made.serve(sequences, "prefill").clone()
    with monkeypatch.context() as patched:
        patched.setattr(library, "staging", torch.zeros(1, dtype=torch.int64))
        with pytest.raises(RuntimeError):
            made.serve(sequences, "prefill")
    assert torch.equal(made.serve(sequences, "prefill"), good)


# ---------------------------------------------------------------- staging


class Event:
    """An event of a device whose work is never done before somebody waits."""

    log: list[str] = []  # noqa: RUF012  # one log for all, cleared by the test

    def __init__(self) -> None:
        self.number = sum(call.startswith("record") for call in self.log)

    def record(self, stream: object) -> None:
        self.log.append(f"record {self.number}")

    def synchronize(self) -> None:
        self.log.append(f"wait {self.number}")


class Planner:
    def __init__(self, log: list[str]) -> None:
        self.log = log

    def plan(self, made: object, slots: object, batch: object, live: object) -> None:
        self.log.append(f"plan {batch}")


@pytest.mark.parametrize("staging", [1, 2])
def test_no_more_plans_are_under_way_than_the_library_can_stage(
    monkeypatch: pytest.MonkeyPatch, staging: int
) -> None:
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _: None)
    Event.log.clear()
    info = HookInfo(name="attention", at=("plan",), staging=staging)
    state = HookState.build(info, Planner(Event.log), 0, torch.device("cuda"))
    for number in range(4):
        state.plan(None, None, number, None)
    one = "plan 0, record 0, wait 0, plan 1, record 1, wait 1, plan 2, record 2, wait 2, plan 3"
    two = "plan 0, record 0, plan 1, record 1, wait 0, plan 2, record 2, wait 1, plan 3"
    assert ", ".join(Event.log) == f"{one if staging == 1 else two}, record 3"


# ---------------------------------------------------------------- load


class TableHook:
    """Writes the pages of each request into a slot, as two columns of the batch's numbers."""

    def load(self, slots: Any, batch: Any, live: Any) -> None:
        given = batch.numbers or [0] * live.requests  # a batch for capture has none
        numbers = torch.tensor(given, device=slots.table.device)
        slots.table[: live.requests].copy_(torch.stack([numbers, numbers * 10], dim=1))


class TableModel:
    def forward(self, *, table: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return (table * scale[:, None]).sum(1)


def loaded_runner(tmp_path: Path, device: str, hook: object) -> Any:
    package = import_spec("hooked", tmp_path)
    runner = package.StepOnly(
        model=TableModel(),
        layers=LayerRange(0, 1, 1),
        dims=package.Dims.from_config(None),
        dtype=torch.float32,
        backend=open_backend(device),
        hooks=package.StepOnlyHooks(table=hook),
    )
    capture([runner])
    return runner


def numbers(values: list[int]) -> SimpleNamespace:
    return SimpleNamespace(num_requests=len(values), numbers=values, scale=[2] * len(values))


def test_a_hook_fills_a_slot_behind_the_copies(tmp_path: Path, device: str) -> None:
    class Scaled(TableHook):
        def load(self, slots: Any, batch: Any, live: Any) -> None:
            super().load(slots, batch, live)
            slots.table[: live.requests] *= slots.scale[: live.requests, None]  # copied before

    runner = loaded_runner(tmp_path, device, Scaled())
    runner.run(numbers([5, 6, 7, 8]))
    step = runner.begin(numbers([1, 2, 3]))
    assert step.slots.table.tolist() == [[2, 20], [4, 40], [6, 60], [-1, -1]]  # padded by the spec
    assert runner.finish(step).sums.tolist() == [44, 88, 132]
    assert runner.eager(numbers([1, 2])).sums.tolist() == [44, 88]


def test_a_hook_without_a_method_of_the_spec_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"hook table: object has no method load"):
        loaded_runner(tmp_path, "cpu", object())
