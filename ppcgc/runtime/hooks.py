"""Hooks: host code of the caller that plans device work around a captured graph.

Note [plans stage through pinned memory]
    A planning library copies its plan to the device from one pinned buffer. A second plan before
    that copy is done would overwrite it, so at most ``staging`` plans of a hook may have
    unfinished device work: the runner waits for the oldest first.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

import torch


class HookState:
    """One hook of one runner: its objects by graph key, and the plans still under way."""

    def __init__(self, name: str, hook: Any, staging: int, workspace: torch.Tensor | None) -> None:
        self.name = name
        self.hook = hook
        self.workspace = workspace
        self.seconds = 0.0  # host time of all plans, which reports give apart
        self.plans = 0
        self._staging = staging
        self._pending: deque[torch.cuda.Event] = deque()

    def plan(self, run: Callable[[], None], device: torch.device) -> None:
        """Run a plan on the current stream, after the oldest one beyond ``staging`` is done."""
        while len(self._pending) >= self._staging:
            self._pending.popleft().synchronize()
        started = time.perf_counter()
        run()
        self.seconds += time.perf_counter() - started
        self.plans += 1
        if device.type == "cuda":
            event = torch.cuda.Event()  # type: ignore[no-untyped-call]  # torch left it untyped
            event.record(torch.cuda.current_stream(device))
            self._pending.append(event)
