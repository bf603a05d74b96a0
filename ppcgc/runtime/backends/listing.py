"""The steps of a tape as text."""

from __future__ import annotations

from typing import Any

from ppcgc.runtime.backends.storages import TensorRef
from ppcgc.runtime.backends.tape import Step, Tape


def listing_of(tape: Tape) -> list[str]:
    """``12 aten.mm.default (4, 64), (64, 64) -> (4, 64)  # model.py:31 in forward: ...``"""
    return [f"{number:5} {_text(step)}" for number, step in enumerate(tape.steps)]


def _text(step: Step) -> str:
    reads = ", ".join(_shapes((step.args, tuple(step.kwargs.values()))))
    makes = ", ".join(_shapes([ref for _, ref in step.made])) or "in place"
    return f"{step.func} {reads} -> {makes}  # {step.line}"


def _shapes(value: Any) -> list[str]:
    if isinstance(value, TensorRef):
        return [str(value.shape)]
    if isinstance(value, (list, tuple)):
        return [shape for item in value for shape in _shapes(item)]
    return []
