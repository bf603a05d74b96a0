"""One Chrome trace of all ranks, from torch.profiler: where steps overlap, and the hand-off.

Open it in Perfetto (ui.perfetto.dev) or chrome://tracing: each rank has its own processes, named
``rank 0: ...``. Times of the ranks of one machine are of one clock; those of several machines
are as far apart as their clocks.
"""

from __future__ import annotations

import base64
import json
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from ppcgc.runtime.pipeline.serving import Pipeline

#: Of an event's arguments, what tells something about a hand-off; the rest is most of a file.
TELLING = frozenset(
    {"name", "labels", "sort_index", "stream", "bytes", "In msg nelems", "Dst Rank"}
)
FLOWS = frozenset("stf")  # phases of arrows, which have numbers of their own in each process


@contextmanager
def traced(pipeline: Pipeline, path: Path | str) -> Iterator[None]:
    """Profile what all ranks do inside the block, and let rank 0 write it as one JSON file.

    All ranks enter and leave it together, with the same steps inside: a few, for each holds
    hundreds of kernels. Raises PeerError kinds for a rank that does not come.

    Note [no send outlives its profile]
        A message over gloo tells the profiler of its end, whenever that is. If the profile is over
        by then, that is written into memory that is gone. So all sends end inside.
    """
    activities = [ProfilerActivity.CPU]
    if pipeline.device.type == "cuda":
        activities.append(ProfilerActivity.CUDA)
    with profile(activities=activities) as seen:
        yield
        pipeline.exchange("end of the profile", "end")
        if pipeline.device.type == "cuda":
            torch.cuda.synchronize(pipeline.device)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.json"
        seen.export_chrome_trace(str(file))
        own = trimmed(json.loads(file.read_text(encoding="utf-8")))
    packed = base64.b85encode(zlib.compress(json.dumps(own).encode())).decode()
    traces = [
        json.loads(zlib.decompress(base64.b85decode(text)))
        for text in pipeline.exchange("trace", packed)
    ]
    if pipeline.rank == 0:
        Path(path).write_text(json.dumps(merged(traces)), encoding="utf-8")


def trimmed(trace: Mapping[str, Any]) -> dict[str, Any]:
    """A trace with the arguments that tell something."""
    events = []
    for event in trace["traceEvents"]:
        kept = {key: value for key, value in event.items() if key != "args"}
        args = {key: value for key, value in event.get("args", {}).items() if key in TELLING}
        events.append(kept | ({"args": args} if args else {}))
    return {"baseTimeNanoseconds": trace.get("baseTimeNanoseconds", 0), "traceEvents": events}


def merged(traces: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The traces of all ranks, in their order, as one: on one time axis, each with its own pids."""
    pids: dict[tuple[int, Any], int] = {}
    named: set[int] = set()
    events: list[dict[str, Any]] = []
    base = traces[0]["baseTimeNanoseconds"]
    for rank, trace in enumerate(traces):
        later_us = (trace["baseTimeNanoseconds"] - base) / 1e3
        for given in trace["traceEvents"]:
            event = dict(given)
            pid = pids.setdefault((rank, event.get("pid")), len(pids) + 1)
            event["pid"] = pid
            if "ts" in event:
                event["ts"] += later_us
            if event.get("ph") in FLOWS:
                event["id"] = f"{rank}/{event.get('id')}"
            if event.get("name") == "process_name":
                event["args"] = {"name": f"rank {rank}: {event['args']['name']}"}
                named.add(pid)
            elif event.get("name") == "process_sort_index":
                event["args"] = {"sort_index": pid}
            events.append(event)
    for (rank, own), pid in pids.items():
        if pid not in named:
            name = {"name": f"rank {rank}: {own}"}
            events.append({"ph": "M", "name": "process_name", "pid": pid, "args": name})
    return {"displayTimeUnit": "ms", "baseTimeNanoseconds": base, "traceEvents": events}
