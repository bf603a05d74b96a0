"""Builds the stages of any generated package, and runs them one behind the other."""

from __future__ import annotations

from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import torch
from case_world import MODEL_DTYPE, AnyModel, sizes_of, stages_of, states_of
from torch import Tensor

from ppcgc import runtime as rt
from ppcgc.ir import Family, Place, Runner
from ppcgc.runtime.choice import Reason


class Key:
    """A hook that is called for each graph key."""

    def key(self, rows: Any, slots: Any, workspace: Any) -> str:
        return f"of {rows}"


def places(count: int) -> list[Place]:
    if count == 1:
        return [Place.ONLY]
    return [Place.FIRST, *[Place.MIDDLE] * (count - 2), Place.LAST]


def build(family: Family, made: Any, runner: Runner) -> list[Any]:
    """The stages of a runner, captured, each with a model that knows the rows of its call.

    ``made`` is the generated package of the family.
    """
    config, sizes, env = sizes_of(family)
    dims = made.Dims.from_config(config, **sizes)
    backend, stages = rt.open_backend("cpu"), []
    count = stages_of(family)
    for number, place in enumerate(places(count)):
        model = AnyModel(family, runner, place, env)
        given: dict[str, Any] = {
            "model": model,
            "layers": made.stage_layers(dims, stage=number, of=count),
            "dims": dims,
            "dtype": MODEL_DTYPE,
            "backend": backend,
        }
        if family.states:
            given["state"] = made.State(**states_of(family, env))
        if runner.hooks:
            given["hooks"] = SimpleNamespace(**{hook.name: Key() for hook in runner.hooks})
        camel = "".join(part[:1].upper() + part[1:] for part in runner.name.split("_"))
        stage = getattr(made, camel + place.value.capitalize())(**given)
        _tell_rows(stage, model)
        stages.append(stage)
    rt.capture(stages)
    return stages


def _tell_rows(stage: Any, model: AnyModel) -> None:
    forward = stage.forward

    def told(slots: Any, boundary: Any, rows: Any, made: Any) -> object:
        model.rows = dict(zip(stage.axes, rows, strict=False))
        return forward(slots, boundary, rows, made)

    stage.forward = told


def run(stages: list[Any], batch: Any, *, eagerly: bool) -> list[Any]:
    """What each stage hands on, and what the last one gives."""
    given: list[Any] = []
    for stage in stages:
        step = stage.eager if eagerly else stage.run
        given.append(copied(step(batch, *given[-1:])))
    return given


def copied(given: Any) -> Any:
    """The same outputs in memory of their own."""
    return type(given)(**{f.name: getattr(given, f.name).clone() for f in fields(given)})


def reason_of(stage: Any) -> Reason:
    reason: Reason = stage.last_step.choice.reason
    return reason


def assert_equal(one: Any, two: Any) -> None:
    assert type(one) is type(two)
    for name in (f.name for f in fields(one)):
        left, right = getattr(one, name), getattr(two, name)
        assert isinstance(left, Tensor)
        assert left.dtype == right.dtype
        assert torch.equal(left, right), name
