"""How long each bucket's warm-up and capture take, beside its eager step."""

from __future__ import annotations

from functools import partial
from time import perf_counter
from typing import Any

from benchmarks.generated import bench_llama
from benchmarks.scenario import Scenario
from benchmarks.timing import stream_ms
from ppcgc import runtime as rt
from ppcgc.runtime.capturing import in_order, record, warm_up


def capture_times(scenario: Scenario) -> list[dict[str, Any]]:
    """Seconds by bucket, largest first: the first loads kernels, the later ones are the rule."""
    backend = rt.open_backend(scenario.device)
    runner = scenario.build(bench_llama.PrefillMiddle, backend)
    runner.allocate()
    times: dict[int, dict[str, Any]] = {}
    ladder = [
        (one, bucket)
        for one, bucket in in_order([runner], "descending")
        if bucket.padded[0] in scenario.buckets
    ]
    for one, bucket in ladder:
        start = perf_counter()
        warm_up(one, bucket)
        times[bucket.padded[0]] = {"warm_up_s": perf_counter() - start}
    for one, bucket in ladder:
        start = perf_counter()
        record(one, bucket, one.body(bucket))
        scenario.sync()
        times[bucket.padded[0]]["capture_s"] = perf_counter() - start
    runner.close()
    backend.close()
    eager = {
        case.bucket: stream_ms(scenario, partial(scenario.eager, case), 0.05)
        for case in scenario.cases
    }
    return [
        {"bucket": bucket, **times[bucket], "eager_ms": eager[bucket]} for bucket in sorted(times)
    ]
