"""Where the host time of a step goes, part by part, and what the machine itself asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.peers.ours import Ours
from benchmarks.scenario import Case, Scenario
from benchmarks.timing import host_us


def host_parts(scenario: Scenario, ours: Ours, case: Case) -> dict[str, float]:
    """Microseconds of each part of a step, measured alone."""
    runner: Any = ours.runner
    batch, boundary = ours.batch(case), ours.boundary(case)
    live, choice = runner.decide(batch)
    bucket = runner.table[choice.padded]
    inputs = runner.inputs

    def load(source: object) -> Callable[[], object]:
        def act() -> None:
            bucket.host.open()
            inputs.load(bucket.slots, bucket.host, source, live, bucket.padded)

        return act

    parts: dict[str, Callable[[], object]] = {
        "choose": lambda: runner.decide(batch),
        "load": load(batch),
        "load, CPU tensors": load(case.tensors),
        "ring entry": bucket.host.begin,
        "push": bucket.host.push,
        "receive": lambda: runner.receive(bucket, boundary, live),
        "replay": lambda: bucket.host.replay(bucket.graph),
        "trim": lambda: runner.outputs.trim(bucket.outputs, live),
        "begin": lambda: runner.begin(batch, boundary),
        "step": lambda: runner.run(batch, boundary),
    }
    return {name: host_us(scenario, part) for name, part in parts.items()}
