"""What a peer does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from torch import Tensor

from benchmarks.scenario import Case, Scenario


class UnavailableError(Exception):
    """This peer cannot run here; the message says why."""


Step = Callable[[], object]


class Peer(Protocol):
    """Built for a scenario: ``step(case)`` is the step to measure, with everything prepared.

    The step takes the batch from where the peer's users have it and leaves the outputs on the
    device. ``outputs(case)`` runs it once and gives the live rows, hidden states and residual.
    """

    name: str
    does: str  # one line for the table: what a step of it includes

    def step(self, case: Case) -> Step: ...

    def outputs(self, case: Case) -> tuple[Tensor, Tensor]: ...

    def close(self) -> None: ...


Build = Callable[[Scenario], Peer]
