"""Whose an AttributeError of a step is: the batch's that lacks something, or the user's code's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from spec_tools import SPECS, import_text
from toy_model import HIDDEN, through, toy_batch, toy_stages

from ppcgc import runtime as rt
from ppcgc.runtime.errors import CaptureError, MissingSlotError, PpcgcError, SourceError


@pytest.fixture(scope="module")
def stages(toy: Any) -> list[Any]:
    runners = toy_stages(toy, 2)
    rt.capture(runners)
    return runners


class Counted:
    """A batch whose count has a mistake of its own."""

    def __init__(self, batch: SimpleNamespace) -> None:
        self.__dict__.update({k: v for k, v in vars(batch).items() if k != "num_tokens"})

    @property
    def num_tokens(self) -> int:
        return int(self.rows)  # type: ignore[attr-defined]


class Planned:
    """A batch with a slot that has a mistake of its own."""

    def __init__(self, batch: SimpleNamespace) -> None:
        self.__dict__.update({k: v for k, v in vars(batch).items() if k != "positions"})

    @property
    def positions(self) -> Any:
        plan: Any = SimpleNamespace(rows=[1, 2])
        return plan.row


class Answers:
    """A batch that says by itself what it lacks."""

    def __init__(self, batch: SimpleNamespace) -> None:
        self.__dict__.update({k: v for k, v in vars(batch).items() if k != "scale"})

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"no {name} in this batch")


@pytest.mark.parametrize("how", ["run", "eager", "begin", "begin_eager", "decide"])
def test_an_error_of_a_count_is_the_batch_s_own(stages: list[Any], how: str) -> None:
    with pytest.raises(AttributeError, match="no attribute 'rows'") as caught:
        getattr(stages[0], how)(Counted(toy_batch(3, 2)))
    assert not isinstance(caught.value, PpcgcError)


@pytest.mark.parametrize("how", ["run", "eager", "begin"])
def test_an_error_of_a_slot_is_the_batch_s_own(stages: list[Any], how: str) -> None:
    with pytest.raises(AttributeError, match="no attribute 'row'") as caught:
        getattr(stages[0], how)(Planned(toy_batch(3, 2)))
    assert not isinstance(caught.value, PpcgcError)
    assert through(stages, toy_batch(3, 2)).hidden_states.shape == (5, HIDDEN)


@pytest.mark.parametrize("how", ["run", "eager", "begin"])
def test_a_batch_may_say_by_itself_what_it_lacks(stages: list[Any], how: str) -> None:
    with pytest.raises(SourceError, match="PrefillFirst: no scale in this batch; a batch and a"):
        getattr(stages[0], how)(Answers(toy_batch(3, 2)))


# ---------------------------------------------------------------- hooks


class Hook:
    """Fills its slot, and plans; fails at ``at`` once it is told to."""

    def __init__(self, at: str) -> None:
        self.at, self.failing = at, False

    def _may_fail(self, when: str, batch: Any = None) -> None:
        if self.failing and when == self.at:
            batch.workspace.plan()

    def key(self, rows: Any, slots: Any, workspace: Any) -> object:
        self._may_fail("key")
        return rows

    def load(self, slots: Any, batch: Any, live: Any) -> None:
        self._may_fail("load", batch)
        slots.hooked[: live.tokens] = 3.0

    def plan(self, made: Any, slots: Any, batch: Any, live: Any) -> None:
        self._may_fail("plan", batch)


@pytest.fixture(scope="module")
def hooked(tmp_path_factory: pytest.TempPathFactory) -> Any:
    text = (SPECS / "keeping.yaml").read_text(encoding="utf-8")
    text = text.replace("family: keeping", "family: hook_errors").replace(
        "fill: {at: load,", "fill: {at: [key, load, plan],"
    )
    return import_text(text, tmp_path_factory.mktemp("hook_errors"), "hook_errors.yaml")


def first_of(*, ids: Any, view: Any, boundary: None) -> Any:
    return (ids + view.hooked)[:, None].expand(-1, HIDDEN)


def runner_with(hooked: Any, hook: Hook) -> Any:
    dims = hooked.Dims.from_config({"hidden": HIDDEN})
    return hooked.OneFirst(
        model=first_of,
        layers=hooked.stage_layers(dims, stage=0, of=2),
        dims=dims,
        dtype=torch.float32,
        backend=rt.open_backend("cpu"),
        hooks=hooked.OneFirstHooks(fill=hook),
    )


def batch_of(tokens: int) -> SimpleNamespace:
    rows = torch.ones(tokens)
    return SimpleNamespace(
        num_tokens=tokens, ids=torch.arange(tokens), plain=rows, kept=rows, noise=rows
    )


@pytest.mark.parametrize("how", ["run", "eager"])
@pytest.mark.parametrize("at", ["load", "plan"])
def test_an_error_of_a_hook_is_its_own(hooked: Any, at: str, how: str) -> None:
    """Even where it is the batch that the hook misses something of: the spec does not read it."""
    hook = Hook(at)
    runner = runner_with(hooked, hook)
    rt.capture([runner])
    hook.failing = True
    with pytest.raises(AttributeError, match="no attribute 'workspace'") as caught:
        getattr(runner, how)(batch_of(3))
    assert not isinstance(caught.value, PpcgcError)
    assert caught.value.__notes__ == [f"in hook fill: Hook.{at} for OneExtents(tokens=3)"]
    hook.failing = False
    assert getattr(runner, how)(batch_of(3)).hidden_states.shape == (3, HIDDEN)


def test_an_error_of_a_key_is_its_own_in_an_eager_step(hooked: Any) -> None:
    hook = Hook("key")
    runner = runner_with(hooked, hook)
    hook.failing = True
    with pytest.raises(AttributeError, match="'NoneType' object has no attribute 'workspace'") as e:
        runner.eager(batch_of(3))
    assert e.value.__notes__ == ["in hook fill: Hook.key for OneExtents(tokens=3)"]


@pytest.mark.parametrize("at", ["key", "load", "plan"])
def test_an_error_of_a_hook_while_capturing_names_its_line(hooked: Any, at: str) -> None:
    hook = Hook(at)
    runner = runner_with(hooked, hook)
    hook.failing = True
    with pytest.raises(CaptureError, match=r"warm-up of hook_errors.one first, bucket") as caught:
        rt.capture([runner])
    assert "batch.workspace.plan()" in str(caught.value)
    cause: Any = caught.value.__cause__
    assert cause.__notes__[0].startswith(f"in hook fill: Hook.{at} for OneExtents(tokens=8")


class Generous(Hook):
    def load(self, slots: Any, batch: Any, live: Any) -> None:
        slots.hooked_too.zero_()


def test_a_slot_that_a_hook_misses_keeps_its_own_kind(hooked: Any) -> None:
    runner = runner_with(hooked, Generous("load"))
    with pytest.raises(MissingSlotError, match="has no slot 'hooked_too'") as caught:
        runner.eager(batch_of(3))
    assert caught.value.__notes__ == ["in hook fill: Generous.load for OneExtents(tokens=3)"]
