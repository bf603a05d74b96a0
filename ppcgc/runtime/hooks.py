"""Hooks: host code of the caller that plans device work around a captured graph.

Note [plans stage through pinned memory]
    A planning library copies its plan to the device from one pinned buffer. A second plan before
    that copy is done would overwrite it, so at most ``staging`` plans of a hook may have
    unfinished device work: the runner waits for the oldest first.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from ppcgc.runtime.errors import BuildError, DimError

Made: TypeAlias = Mapping[str, object]  # what each hook's ``key`` returned, by hook


class HookInfo(NamedTuple):
    """A declared hook: when it is called, and how many plans may be under way."""

    name: str
    at: tuple[str, ...]
    staging: int = 1


class HookState:
    """One hook of one runner: its workspace, and the plans still under way."""

    def __init__(
        self, info: HookInfo, hook: Any, workspace: Tensor | None, device: torch.device
    ) -> None:
        self.info = info
        self.workspace = workspace
        self.plan_seconds = 0.0  # host time of all plans; reports give it apart
        self.plans = 0
        self.hook = hook
        self._device = device
        self._keys, self._loads, self._plans = (when in info.at for when in ("key", "load", "plan"))
        self._pending: deque[torch.cuda.Event] = deque()

    @classmethod
    def build(cls, info: HookInfo, hook: object, nbytes: int, device: torch.device) -> HookState:
        """Raises BuildError for a hook without a method that the spec calls, or negative bytes."""
        if isinstance(hook, type):
            name = hook.__name__
            raise BuildError(f"hook {info.name}: {name} is a class; give an object, {name}(...)")
        lacking = [when for when in info.at if not callable(getattr(hook, when, None))]
        if lacking:
            raise BuildError(
                f"hook {info.name}: {type(hook).__name__} has no method {', '.join(lacking)}, "
                f"the spec calls it at {', '.join(info.at)}"
            )
        if nbytes < 0:
            raise DimError(f"hook {info.name}: a workspace of {nbytes} bytes; it is at least 0")
        workspace = torch.zeros(nbytes, dtype=torch.uint8, device=device) if nbytes else None
        return cls(info, hook, workspace, device)

    def capture(self, slot: str, live: object) -> object:
        """The live rows of a slot for warm-up and capture, as the batch would give them."""
        return self._call("capture", f"slot {slot}, {live}", slot, live)

    def key(self, rows: object, slots: object) -> object:
        """The object that the forward gets for a graph of these rows."""
        return self._call("key", rows, rows, slots, self.workspace) if self._keys else None

    def load(self, slots: object, batch: object, live: object) -> None:
        """After the copies of a load: the hook fills the slots that it writes."""
        if self._loads:
            self._call("load", live, slots, batch, live)

    def plan(self, made: object, slots: object, batch: object, live: object) -> None:
        """Before a warm-up, capture or replay, on its stream."""
        if not self._plans:
            return
        while len(self._pending) >= self.info.staging:
            self._pending.popleft().synchronize()
        started = time.perf_counter()
        self._call("plan", live, made, slots, batch, live)
        self.plan_seconds += time.perf_counter() - started
        self.plans += 1
        if self._device.type == "cuda":
            event = torch.cuda.Event()  # type: ignore[no-untyped-call]  # torch left it untyped
            event.record(torch.cuda.current_stream(self._device))
            self._pending.append(event)

    def _call(self, when: str, rows: object, *given: object) -> object:
        """The hook's own method. An error of it passes through as it is, with the place beside."""
        try:
            return getattr(self.hook, when)(*given)
        except Exception as problem:
            kind = type(self.hook).__name__
            problem.add_note(f"in hook {self.info.name}: {kind}.{when} for {rows}")
            raise


class Hooks:
    """All hooks of a runner, in declared order. Each call passes to every one of them."""

    def __init__(self, states: tuple[HookState, ...] = ()) -> None:
        self.states = states

    @classmethod
    def build(
        cls,
        table: Sequence[HookInfo],
        given: object,
        nbytes: Mapping[str, int],
        device: torch.device,
    ) -> Hooks:
        """``given`` has an attribute for each hook of the table. Raises BuildError."""
        return cls(
            tuple(
                HookState.build(info, getattr(given, info.name), nbytes.get(info.name, 0), device)
                for info in table
            )
        )

    @property
    def objects(self) -> list[Any]:
        """What the caller gave, in declared order."""
        return [state.hook for state in self.states]

    @contextmanager
    def replaced(self, objects: Sequence[Any] | None) -> Iterator[None]:
        """Inside the block these objects are called instead; None: the caller's own."""
        before = self.objects
        for state, hook in zip(self.states, objects or before, strict=True):
            state.hook = hook
        try:
            yield
        finally:
            for state, hook in zip(self.states, before, strict=True):
                state.hook = hook

    def rows_for_capture(self, hook: str, slot: str, live: object) -> object:
        """What one hook gives for a slot while capturing."""
        state = next(state for state in self.states if state.info.name == hook)
        return state.capture(slot, live)

    def made_for(self, rows: object, slots: object) -> dict[str, object]:
        """What each hook's ``key`` makes for a graph of these rows."""
        return {state.info.name: state.key(rows, slots) for state in self.states}

    def load(self, slots: object, batch: object, live: object) -> None:
        for state in self.states:
            state.load(slots, batch, live)

    def plan(self, made: Made, slots: object, batch: object, live: object) -> None:
        for state in self.states:
            state.plan(made[state.info.name], slots, batch, live)
