"""Capturing one stage again, bucket by bucket, in a given order."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import Any

import torch
from torch import nn

from ppcgc.runtime.addresses import owner_of
from ppcgc.runtime.verification.session import Session
from ppcgc.runtime.verification.stages import StageUnderTest

#: Attributes of a model's modules that are neither parameters, buffers nor submodules.
Attributes = dict[str, dict[str, Any]]
_REGISTRIES = ("_parameters", "_buffers", "_modules")


def capture_in_order(stage: StageUnderTest, buckets: Iterable[Any]) -> None:
    """Close all graphs, then warm up and capture these buckets one by one, garbage held."""
    runner, wanted = stage.runner, list(buckets)
    runner.close()
    with torch.inference_mode(False):
        for padded in wanted:
            bucket = runner.table[padded]
            runner.load_for_capture(bucket)
            runner.backend.warm_up(runner.body(bucket))
        for padded in wanted:
            bucket = runner.table[padded]
            runner.load_for_capture(bucket)
            bucket.graph = runner.backend.capture(runner.body(bucket))
    runner.mark_captured()


def attributes_of(model: Any) -> Attributes:
    """Shallow copies of what each module holds beside its registries."""
    owner = owner_of(model)
    modules = owner.named_modules() if isinstance(owner, nn.Module) else [("", owner)]
    return {name: _held(module) for name, module in modules}


def _held(module: Any) -> dict[str, Any]:
    held = getattr(module, "__dict__", {})
    kept = {name: value for name, value in held.items() if name not in _REGISTRIES}
    return {
        name: copy(value) if isinstance(value, list | dict | set) else value
        for name, value in kept.items()
    }


def attributes_reset(session: Session, stage: StageUnderTest) -> None:
    """Give the modules the attributes that they had before the first capture, where known."""
    before: Attributes = session.attributes_before_capture.get(stage.number, {})
    owner = owner_of(stage.runner.model)
    modules = dict(owner.named_modules()) if isinstance(owner, nn.Module) else {"": owner}
    for name, held in before.items():
        now = modules[name].__dict__
        for key in [key for key in now if key not in held and key not in _REGISTRIES]:
            del now[key]
        now.update(_copies(held))


def _copies(held: dict[str, Any]) -> dict[str, Any]:
    """So that what a forward appends to stays its own."""
    return {
        key: copy(value)
        if isinstance(value, list | dict | set) and not key.startswith("_")
        else value
        for key, value in held.items()
        if not key.startswith("_")
    }
