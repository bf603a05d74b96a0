"""Clocks: host time of a call, time of a stream of steps, time on the device."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from time import perf_counter_ns

import torch

from benchmarks.scenario import Scenario

BURST = 4  # steps that a host gives a device ahead of time, as a serving loop does
AWAKE_NS = 300_000  # of work before a burst: a loop that serves has just scheduled a batch


def host_us(
    scenario: Scenario, step: Callable[[], object], repeats: int = 31, burst: int = BURST
) -> float:
    """Median host microseconds of a step, of ``burst`` steps one after the other.

    The device is waited for between two bursts, outside of the measured time, so that no launch
    waits in a full queue. A host that has slept meanwhile wakes up slowly (a bare replay took 4
    microseconds behind a wait of 12 ms, and 63 behind one of 100), so it works for a moment before
    a burst. With ``burst=1`` each step begins on a host that has just slept: caches and clocks are
    cold, and the figure is several times larger for whatever runs there. A step that waits for
    the device itself counts that, in a burst.
    """
    times = []
    for _ in range(repeats):
        scenario.sync()
        if burst > 1:
            _work(AWAKE_NS)
        start = perf_counter_ns()
        for _ in range(burst):
            step()
        times.append((perf_counter_ns() - start) / burst)
    scenario.sync()
    return statistics.median(times[repeats // 6 :]) / 1e3


def _work(nanoseconds: int) -> None:
    end = perf_counter_ns() + nanoseconds
    while perf_counter_ns() < end:
        pass


def stream_ms(scenario: Scenario, step: Callable[[], object], seconds: float = 0.15) -> float:
    """Milliseconds of a step in a stream of steps: the first start to the last end, by count."""
    step()
    scenario.sync()
    start = perf_counter_ns()
    step()
    scenario.sync()
    once = max(1, perf_counter_ns() - start) / 1e9
    count = max(5, min(400, round(seconds / once)))
    start = perf_counter_ns()
    for _ in range(count):
        step()
    scenario.sync()
    return (perf_counter_ns() - start) / count / 1e6


def device_ms(scenario: Scenario, step: Callable[[], object], repeats: int = 9) -> float | None:
    """Median milliseconds on the device between two events around one step; None on a CPU."""
    if not scenario.on_gpu:
        return None
    times: list[float] = []
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]  # torch's
        scenario.sync()
        start.record()
        step()
        end.record()
        scenario.sync()
        times.append(start.elapsed_time(end))
    return statistics.median(times)
