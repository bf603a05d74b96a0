"""Capturing one stage again, bucket by bucket, in a given order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from ppcgc.runtime.addresses import owner_of
from ppcgc.runtime.verification.session import Session
from ppcgc.runtime.verification.stages import StageUnderTest, containers_copied

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
    return {name: _held(module) for name, module in modules_of(model).items()}


def modules_of(model: Any) -> dict[str, Any]:
    """The modules of a model by their path; a model that is none stands for itself."""
    owner = owner_of(model)
    return dict(owner.named_modules()) if isinstance(owner, nn.Module) else {"": owner}


def _held(module: Any) -> dict[str, Any]:
    held = getattr(module, "__dict__", {})
    return containers_copied(
        {name: value for name, value in held.items() if name not in _REGISTRIES}
    )


def attributes_reset(session: Session, stage: StageUnderTest) -> None:
    """Give the modules the attributes that they had before the first capture, where known."""
    before: Attributes = session.attributes_before_capture.get(stage.number, {})
    modules = modules_of(stage.runner.model)
    for name, held in before.items():
        now = modules[name].__dict__
        for key in [key for key in now if key not in held and key not in _REGISTRIES]:
            del now[key]
        own = {key: value for key, value in held.items() if not key.startswith("_")}
        now.update(containers_copied(own))
