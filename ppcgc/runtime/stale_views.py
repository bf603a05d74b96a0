"""Debug epoch: output views that raise when they are used after the run that overwrote them.

Opt-in, since every use of such a view goes through Python: ``runner.guard_views()``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

import torch
from torch import Tensor

from ppcgc.runtime.errors import StaleOutputError


class Epoch:
    """Counts the runs of a runner."""

    def __init__(self, runner: str) -> None:
        self.runner = runner
        self.now = 0


class GuardedView(Tensor):
    """A view of an output buffer that knows which run it belongs to."""

    epoch: Epoch
    run: int
    output: str

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        # the CPU backend's module: imported here, for most processes never guard a view
        from ppcgc.runtime.backends.tape import tensors

        given = tensors((args, kwargs))
        guarded = [tensor for tensor in given if isinstance(tensor, GuardedView)]
        for view in guarded:
            _check(view)
        with torch._C.DisableTorchFunctionSubclass():
            result = func(*args, **(kwargs or {}))
        if guarded and isinstance(result, Tensor):
            return _like(guarded[0], result)
        return result


def _check(view: GuardedView) -> None:
    held = view.__dict__
    epoch, run = held.get("epoch"), held.get("run")
    if epoch is not None and run != epoch.now:
        raise StaleOutputError(
            f"output {held['output']} of {epoch.runner}: this view is of run {run}, and run "
            f"{epoch.now} has overwritten it; copy what you keep, or declare `keep: clone` or "
            "`keep: ring(n)`"
        )


def _like(view: GuardedView, result: Tensor) -> Tensor:
    """``result`` guarded like ``view`` where it is a view of the same memory."""
    if result.untyped_storage().data_ptr() != view.__dict__["memory"]:
        return result.as_subclass(Tensor)
    return guard(result, view.__dict__["epoch"], view.__dict__["output"], view.__dict__["run"])


def guard(tensor: Tensor, epoch: Epoch, output: str, run: int) -> GuardedView:
    """``tensor``, to be used only while ``run`` is the runner's last."""
    with torch._C.DisableTorchFunctionSubclass():
        view = tensor.as_subclass(GuardedView)
        memory = tensor.untyped_storage().data_ptr()
    view.__dict__.update(epoch=epoch, run=run, output=output, memory=memory)
    return view


def guard_outputs(outputs: Any, epoch: Epoch, shared: frozenset[int]) -> Any:
    """The outputs with every tensor in ``shared`` memory (by storage address) guarded."""
    guarded = {
        field.name: guard(value, epoch, field.name, epoch.now)
        for field in fields(outputs)
        if isinstance(value := getattr(outputs, field.name), Tensor)
        and value.untyped_storage().data_ptr() in shared
    }
    return replace(outputs, **guarded)
