"""Where the host time of a step goes, part by part, and what the machine itself asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.peers.ours import Ours
from benchmarks.scenario import Case, Scenario
from benchmarks.timing import host_us


def host_parts(scenario: Scenario, ours: Ours, case: Case) -> dict[str, float]:
    """Median microseconds of each part of a step, measured alone."""
    runner: Any = ours.runner
    batch, boundary = ours.batch(case), ours.boundary(case)
    live, choice = runner.decide(batch)
    bucket = runner.table[choice.padded]
    inputs = runner.inputs
    parts: dict[str, Callable[[], object]] = {
        "choose": lambda: runner.decide(batch),
        "load": lambda: inputs.load(bucket.slots, bucket.host, batch, live, bucket.padded),
        "load, CPU tensors": lambda: inputs.load(
            bucket.slots, bucket.host, case.tensors, live, bucket.padded
        ),
        "ring entry": bucket.host.begin,
        "push": bucket.host.push,
        "receive": lambda: runner.receive(bucket, boundary, live),
        "replay": bucket.graph.replay,
        "trim": lambda: runner.outputs.trim(bucket.outputs, live),
        "begin": lambda: runner.begin(batch, boundary),
        "step": lambda: runner.run(batch, boundary),
    }
    return {name: host_us(scenario, part, 200) for name, part in parts.items()}
