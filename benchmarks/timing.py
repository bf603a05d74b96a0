"""Clocks: host time of a call, time of a stream of steps, time on the device.

Note [a kernel on another stream]
    Once a kernel has run on another stream, each kernel of a graph takes a third of a microsecond
    longer from then on, on whatever stream it is launched: 2.98 ms become 3.15 for a step of 475
    kernels at 16 tokens (H200, driver 580; no clock changes). Some work undoes that, a model run
    eagerly among it, but not always. A process that serves has several streams, and whoever is
    measured right behind eager must not look faster than the others: so one runs before each
    measurement of time on the device.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from time import perf_counter_ns

import torch

from benchmarks.scenario import Scenario

BURST = 4  # steps that a host gives a device ahead of time, as a serving loop does
AWAKE_NS = 300_000  # of work before a burst: a loop that serves has just scheduled a batch
LOOK_S = 0.2  # how long bursts of one step are measured, at a look
MOST = 10  # bursts of a look


def host_samples(
    scenario: Scenario, step: Callable[[], object], burst: int = BURST, most: int = MOST
) -> list[float]:
    """Host microseconds of a step, of several bursts of steps one after the other.

    The device is waited for between two bursts, outside of the measured time, so that no launch
    waits in a full queue. A host that has slept meanwhile wakes up slowly, and its caches are
    others' by then: a bare replay took 4 microseconds behind a wait of 12 ms, and 63 behind one of
    100. So it works for a moment before a burst, and the first step of it is not measured. With
    ``burst=1`` it is: each step begins on a host that has just slept, and the figure is several
    times larger for whatever runs there. A step that waits for the device itself counts that.
    """
    times: list[float] = []
    begun = perf_counter_ns()
    while len(times) < 3 or (len(times) < most and perf_counter_ns() - begun < LOOK_S * 1e9):
        scenario.sync()
        if burst > 1:
            _work(AWAKE_NS)
            step()
        start = perf_counter_ns()
        for _ in range(burst):
            step()
        times.append((perf_counter_ns() - start) / burst / 1e3)
    scenario.sync()
    return times


def lower_quartile(times: Sequence[float]) -> float:
    """What a quarter of them stay below: machines are shared, and others only ever add time."""
    return sorted(times)[len(times) // 4]


def host_us(scenario: Scenario, step: Callable[[], object], looks: int = 3) -> float:
    """The lower quartile of ``host_samples`` of some looks, in microseconds."""
    times = [one for _ in range(looks) for one in host_samples(scenario, step)]
    return lower_quartile(times)


def _work(nanoseconds: int) -> None:
    end = perf_counter_ns() + nanoseconds
    while perf_counter_ns() < end:
        pass


def kernel_elsewhere(device: torch.device) -> None:
    """See Note [a kernel on another stream]."""
    if device.type == "cuda":
        with torch.cuda.stream(torch.cuda.Stream(device)):  # type: ignore[no-untyped-call]  # torch's
            torch.zeros(1, device=device)
        torch.cuda.synchronize(device)


def stream_ms(scenario: Scenario, step: Callable[[], object], seconds: float = 0.15) -> float:
    """Milliseconds of a step in a stream of steps: the first start to the last end, by count.

    Half as many steps go before it, so that the device's clock is what this step leaves of it, and
    not what the one measured before did.
    """
    kernel_elsewhere(scenario.device)
    step()
    scenario.sync()
    start = perf_counter_ns()
    step()
    scenario.sync()
    once = max(1, perf_counter_ns() - start) / 1e9
    count = max(5, min(400, round(seconds / once)))
    for _ in range(count // 2):
        step()
    scenario.sync()
    start = perf_counter_ns()
    for _ in range(count):
        step()
    scenario.sync()
    return (perf_counter_ns() - start) / count / 1e6


def device_ms(scenario: Scenario, step: Callable[[], object], repeats: int = 9) -> float | None:
    """Median milliseconds on the device between two events around one step; None on a CPU."""
    if not scenario.on_gpu:
        return None
    kernel_elsewhere(scenario.device)
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
