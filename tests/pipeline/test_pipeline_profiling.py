"""A trace of all ranks in one file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rank_processes import run_ranks, values
from toy_pipeline import build, prefill_batch

from ppcgc.runtime.pipeline import Pipeline
from ppcgc.runtime.pipeline.profiling import merged, traced


def trace_three_steps(rank: int, ranks: int, path: str) -> list[str]:
    runner = build(rank, ranks, names=("prefill",)).runners["prefill"]
    with Pipeline([runner], timeout=10) as pipeline:
        pipeline.capture()
        batches = [prefill_batch([length], seed=length) for length in (5, 30, 47)]
        pipeline.run("prefill", batches[0])
        with traced(pipeline, path):
            for batch in batches:
                pipeline.run("prefill", batch)
        pipeline.run("prefill", batches[0])  # the pipeline goes on
        return [str(runner.last_step)]


def test_one_file_has_the_events_of_all_ranks(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    made = values(run_ranks(2, trace_three_steps, tmp_path, 2, str(file)))
    assert made == [["replay 5→16"]] * 2
    trace = json.loads(file.read_text())
    events = trace["traceEvents"]
    names = {
        event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"
    }
    seen: dict[str, set[str]] = {"rank 0": set(), "rank 1": set()}
    spans: dict[str, list[float]] = {"rank 0": [], "rank 1": []}
    for event in events:
        rank = names[event["pid"]].split(":")[0]
        seen[rank].add(event["name"])
        if event.get("ph") == "X" and event.get("cat") == "cpu_op":
            spans[rank].append(event["ts"])
    assert "gloo:send" in seen["rank 0"]
    assert "gloo:recv" in seen["rank 1"]
    assert "aten::mm" in seen["rank 0"] & seen["rank 1"]
    # one time axis: the two work at the same time, or one right behind the other
    assert max(map(min, spans.values())) < min(map(max, spans.values()))
    assert file.stat().st_size < 1_000_000


def event(name: str, **given: Any) -> dict[str, Any]:
    return {"ph": "X", "name": name, "pid": 7, "tid": 1, "ts": 10.0, "dur": 1.0, **given}


def test_ranks_are_told_apart_and_their_times_are_brought_together() -> None:
    named = {"ph": "M", "name": "process_name", "pid": 7, "args": {"name": "python"}}
    arrow = event("ac2g", ph="s", id=3)
    traces = [
        {"baseTimeNanoseconds": 1_000, "traceEvents": [named, event("work"), arrow]},
        {"baseTimeNanoseconds": 6_000, "traceEvents": [event("work"), arrow]},
    ]
    made = merged(traces)["traceEvents"]
    assert [(one["pid"], one["ts"]) for one in made if one["name"] == "work"] == [
        (1, 10.0),
        (2, 15.0),
    ]
    assert [one["id"] for one in made if one["name"] == "ac2g"] == ["0/3", "1/3"]
    assert [one["args"]["name"] for one in made if one["name"] == "process_name"] == [
        "rank 0: python",
        "rank 1: 7",
    ]
