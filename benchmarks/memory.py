"""Device memory by number of buckets, from the device's own count of free bytes."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import torch

from benchmarks.generated import bench_llama
from benchmarks.scenario import Scenario
from ppcgc import runtime as rt


def free_bytes(scenario: Scenario) -> int:
    """Bytes of the device that nobody holds, torch's cache given back first."""
    gc.collect()
    torch.cuda.synchronize(scenario.device)
    torch.cuda.empty_cache()
    return torch.cuda.mem_get_info(scenario.device)[0]


def ladder_of(sizes: Sequence[int]) -> type[bench_llama.PrefillMiddle]:
    """The runner with some of its buckets."""

    some = {
        padded: live
        for padded, live in bench_llama.PrefillMiddle.buckets.items()
        if padded.tokens in sizes
    }
    made: type[bench_llama.PrefillMiddle] = type(
        "Ladder", (bench_llama.PrefillMiddle,), {"buckets": some}
    )
    return made


def memory(scenario: Scenario) -> list[dict[str, Any]]:
    """What a capture of the largest bucket alone, of some, and of all of them takes."""
    rows = []
    sizes = list(scenario.buckets)
    scenario.eager(scenario.cases[-1])  # libraries take their workspaces once, not on our account
    for count in sorted({1, 2, 4, len(sizes)}):
        chosen = sizes[-count:]
        before = free_bytes(scenario)
        backend = rt.open_backend(scenario.device)
        runner = scenario.build(ladder_of(chosen), backend)
        start = perf_counter()
        rt.capture([runner])
        seconds = perf_counter() - start
        taken = before - free_bytes(scenario)
        report = runner.report()
        rows.append(
            {
                "buckets": count,
                "largest": chosen[-1],
                "taken_mib": taken / 2**20,
                "slots_and_outputs_mib": report.slot_bytes / 2**20,
                "host_block_mib": report.host_block_bytes / 2**20,
                "pool_mib": report.pool_bytes / 2**20,
                "capture_s": seconds,
            }
        )
        runner.close()
        backend.close()
        del runner, backend
    return rows


def growth(scenario: Scenario, *, steps: int = 10_000, recaptures: int = 5) -> dict[str, float]:
    """Free bytes lost over many steps and over some recaptures: both ought to be nothing."""
    backend = rt.open_backend(scenario.device)
    runner = scenario.build(ladder_of(scenario.buckets[:3]), backend)
    rt.capture([runner])
    case = scenario.cases[0]
    boundary = bench_llama.Boundary(
        hidden_states=case.given.hidden_states, residual=case.given.residual
    )
    for _ in range(10):
        runner.run(case.arrays, boundary)
    before = free_bytes(scenario)
    for _ in range(steps):
        runner.run(case.arrays, boundary)
    after_steps = free_bytes(scenario)
    for _ in range(recaptures):
        rt.capture([runner])
    after_captures = free_bytes(scenario)
    runner.close()
    backend.close()
    return {
        "steps": steps,
        "lost_over_steps_mib": (before - after_steps) / 2**20,
        "recaptures": recaptures,
        "lost_over_recaptures_mib": (after_steps - after_captures) / 2**20,
    }
