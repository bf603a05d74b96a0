"""Where everything lay that the graphs read, and what has moved since.

Note [a reload must write in place]
    A graph holds addresses. Weights that a reload puts into new tensors are not the ones that it
    replays with: the old memory is read still, or belongs to somebody else by now. Copy into the
    parameters, or capture again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn


@dataclass(frozen=True, slots=True)
class Place:
    """Where a tensor's memory is and how it is read."""

    pointer: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype

    def __str__(self) -> str:
        return f"{self.pointer:#x} {self.dtype} {list(self.shape)} stride {list(self.stride)}"


#: By name: ``parameter layers.0.weight``, ``state kv[0]``, ``slot positions of (16, 4)``.
Places: TypeAlias = dict[str, Place]


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A tensor that is elsewhere now. ``now`` is None for one that is gone."""

    name: str
    then: Place
    now: Place | None

    def __str__(self) -> str:
        if self.now is None:
            return f"{self.name} was at {self.then} at capture and is gone"
        return f"{self.name} was at {self.then} at capture, is at {self.now}"


def owner_of(model: Any) -> Any:
    """The object behind a model that was given as a bound method."""
    return getattr(model, "__self__", model)


def places_of(runner: Any) -> Places:
    """Parameters, buffers, declared state, slots, boundary, outputs and whole arena buffers."""
    return {name: _place(tensor) for name, tensor in fixed_tensors(runner)}


def moves(then: Mapping[str, Place], now: Mapping[str, Place]) -> tuple[Move, ...]:
    """What is not where it was."""
    return tuple(
        Move(name=name, then=place, now=now.get(name))
        for name, place in then.items()
        if now.get(name) != place
    )


def fixed_tensors(runner: Any) -> Iterator[tuple[str, Tensor]]:
    """Every tensor that a runner's graphs may read, by name."""
    yield from model_tensors(runner.model)
    yield from state_tensors(runner)
    for name, tensor in runner.arena.named(""):
        yield f"arena {name}", tensor
    for padded, bucket in runner.table.items():
        for kind in ("slots", "boundary", "outputs"):
            for name, tensor in _of_view(getattr(bucket, kind)):
                yield f"{_KINDS[kind]} {name} of {tuple(padded)}", tensor


_KINDS = {"slots": "slot", "boundary": "boundary", "outputs": "output"}


def _of_view(view: Any, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
    for field in () if view is None else fields(view):
        value = getattr(view, field.name)
        if isinstance(value, Tensor):
            yield prefix + field.name, value
        elif is_dataclass(value):  # a group of slots
            yield from _of_view(value, f"{prefix}{field.name}.")


def model_tensors(model: Any) -> Iterator[tuple[str, Tensor]]:
    """Parameters and buffers, where the model is a module or a method of one."""
    owner = owner_of(model)
    if isinstance(owner, nn.Module):
        for name, parameter in owner.named_parameters():
            yield f"parameter {name}", parameter
        for name, buffer in owner.named_buffers():
            yield f"buffer {name}", buffer


def state_tensors(runner: Any) -> Iterator[tuple[str, Tensor]]:
    """``state kv[0]`` and so on; nothing for a family without state."""
    state = getattr(runner, "state", None)
    for field in () if state is None else fields(state):
        yield from _nested(getattr(state, field.name), f"state {field.name}")


def _nested(value: object, name: str) -> Iterator[tuple[str, Tensor]]:
    if isinstance(value, Tensor):
        yield name, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _nested(item, f"{name}[{key!r}]")
    elif isinstance(value, list | tuple):
        for place, item in enumerate(value):
            yield from _nested(item, f"{name}[{place}]")


def _place(tensor: Tensor) -> Place:
    return Place(tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype)
