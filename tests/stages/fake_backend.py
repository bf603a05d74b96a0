"""A backend that records what is asked of it, and fails where it is told to."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import torch


class FakeGraph:
    """Replays by running the body again: good for order and life cycle, not for capture itself."""

    steps = None

    def __init__(self, number: int, body: Callable[[], None], log: list[str]) -> None:
        self.number, self._body, self._log = number, body, log
        self.closed = False

    def replay(self) -> None:
        self._log.append(f"replay {self.number}")
        self._body()

    def close(self) -> None:
        if not self.closed:
            self._log.append(f"close {self.number}")
        self.closed = True


class FakeBackend:
    """``fail_at``: the number of the warm-up or capture that raises ``error``."""

    name = "fake"
    device = torch.device("cpu")

    def __init__(
        self, *, fail_at: tuple[str, int] | None = None, error: Exception | None = None
    ) -> None:
        self.log: list[str] = []
        self.collector: list[bool] = []
        self.joined = 0  # times that a step was ordered after the one before
        self._counts = {"warm up": 0, "capture": 0}
        self._fail_at, self._error = fail_at, error

    def _note(self, what: str) -> int:
        number = self._counts[what]
        self._counts[what] += 1
        self.log.append(f"{what} {number}")
        self.collector.append(gc.isenabled())
        if self._fail_at == (what, number) and self._error is not None:
            raise self._error
        return number

    def warm_up(self, body: Callable[[], None]) -> None:
        self._note("warm up")
        with torch.no_grad():
            body()

    def join_stream(self) -> None:
        self.joined += 1

    def capture(self, body: Callable[[], None]) -> Any:
        number = self._note("capture")
        with torch.no_grad():
            body()
        return FakeGraph(number, body, self.log)

    def pool_bytes(self) -> int:
        return 0

    def close(self) -> None:
        return None
