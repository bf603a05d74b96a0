"""Everything that a results page needs, in one run on a GPU that never takes longer than asked.

``python3 -m benchmarks.gpu --out DIR --minutes 7``: parts run in the order of their worth, each
only when its likely time is left; what is measured is on disk after each part. At the end of the
time the process stops, whatever it is doing.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from benchmarks import targets
from benchmarks.capture_times import capture_times
from benchmarks.compare import measure
from benchmarks.environment import environment
from benchmarks.host_parts import host_parts
from benchmarks.memory import growth, memory
from benchmarks.peers import close_peers, open_peers
from benchmarks.peers.ours import Ours
from benchmarks.results import save
from benchmarks.scenario import Scenario, scenario
from benchmarks.tables import peers_table
from benchmarks.timing import stream_ms
from benchmarks.trace import calibrated, trace
from benchmarks.verified import measured
from ppcgc.runtime import open_backend, verify

BY_HAND = (
    "eager",
    "raw",
    "ppcgc",
    "floor",
    "floor-no-memsets",
    "hand-written",
    "ppcgc-on-device",
    "ppcgc-tensors",
    "sglang",
    "graphed-callables",
)
COMPILED = ("raw", "ppcgc", "ppcgc-inductor", "reduce-overhead", "raw-inductor")
Part = Callable[[Scenario, "Run"], None]


class Run:
    """What is measured so far, and how much time is left."""

    def __init__(self, out: Path, seconds: float) -> None:
        self.start = perf_counter()
        self.seconds = seconds
        self.file = out / "results.json"
        self.data: dict[str, Any] = {"environment": environment(), "parts": {}}

    @property
    def left(self) -> float:
        return self.seconds - (perf_counter() - self.start)

    def say(self, text: str) -> None:
        sys.stdout.write(f"[{perf_counter() - self.start:6.1f} s] {text}\n")
        sys.stdout.flush()

    def save(self) -> None:
        save(self.data, self.file)

    def enough_for(self, needs: float) -> bool:
        """Whether so many seconds are left."""
        return self.left >= needs

    def part(self, name: str, needs: float, act: Callable[[], None]) -> None:
        """Run a part that likely takes ``needs`` seconds; if it breaks, the others still run."""
        if not self.enough_for(needs):
            self.say(f"{name}: left out, {self.left:.0f} s are left and it may need {needs:.0f}")
            self.data["parts"][name] = "left out"
            return
        begun = perf_counter()
        self.say(name)
        try:
            act()
            self.data["parts"][name] = perf_counter() - begun
        except Exception as problem:
            self.say(f"{name} failed: {type(problem).__name__}: {problem}")
            traceback.print_exc(limit=-6, file=sys.stdout)
            self.data["parts"][name] = f"{type(problem).__name__}: {problem}"
        self.save()


def compare_group(key: str, names: Sequence[str], rounds: int) -> Part:
    """A part that measures some peers side by side."""

    def act(scenario: Scenario, run: Run) -> None:
        peers = list(open_peers(scenario, names, run.say))
        does = {peer.name: peer.does for peer in peers}
        try:
            measured = measure(scenario, peers, rounds=rounds, seconds=0.1)
        finally:
            close_peers(scenario, peers, run.say)
            peers.clear()
        run.data[key] = rows = measured.data()
        run.data.setdefault("does", {}).update(does)
        run.data.setdefault("problems", []).extend(map(str, measured.problems))
        for problem in measured.problems:
            run.say(str(problem))
        run.say("host microseconds of a step\n" + peers_table(rows, "host_us"))
        run.say("the same after a wait\n" + peers_table(rows, "host_once_us"))
        run.say("milliseconds of a step in a stream\n" + peers_table(rows, "stream_ms"))
        run.say("the same over raw\n" + peers_table(rows, "stream_ms", over="raw"))
        run.say("milliseconds on the device\n" + peers_table(rows, "device_ms"))

    return act


def parts_of_a_step(scenario: Scenario, run: Run) -> None:
    ours = Ours(scenario)
    case = scenario.case(47, 64)
    run.data["host_parts"] = host_parts(scenario, ours, case)
    ours.close()
    for name, value in run.data["host_parts"].items():
        run.say(f"{name:18} {value:8.1f} µs")


def weights_read(scenario: Scenario, run: Run) -> None:
    """Every weight read once: nothing that runs the stage can be faster for few tokens."""
    matrices = [p.data.view(torch.int64) for p in scenario.stage.parameters() if p.dim() == 2]

    def read() -> None:
        for matrix in matrices:
            matrix.sum()

    backend = open_backend(scenario.device)
    backend.warm_up(read)
    run.data["weight_bytes"] = scenario.stage.weight_bytes()
    run.data["weights_read_ms"] = stream_ms(scenario, backend.capture(read).replay, 0.2)
    backend.close()
    run.say(f"weights read once in {run.data['weights_read_ms']:.3f} ms")


def memory_part(scenario: Scenario, run: Run) -> None:
    run.data["memory"] = memory(scenario)
    for row in run.data["memory"]:
        run.say(", ".join(f"{key} {value:.1f}" for key, value in row.items()))


def capture_part(scenario: Scenario, run: Run) -> None:
    run.data["capture"] = capture_times(scenario)
    for row in run.data["capture"]:
        run.say(", ".join(f"{key} {value:.3f}" for key, value in row.items()))


def growth_part(scenario: Scenario, run: Run) -> None:
    run.data["growth"] = growth(scenario)
    run.say(str(run.data["growth"]))


class NotVerifiedError(Exception):
    """A measured runner failed its verification."""


def verified_part(scenario: Scenario, run: Run) -> None:
    """The short form of `ppcgc verify benchmarks.verified:measured`, for the figures' runner."""
    (subject,) = measured(device=str(scenario.device), kinds=("Prefill",))
    found = verify(subject, quick=True)
    run.data["verified"] = {
        "title": found.title,
        "checks": {result.name: result.verdict.value for result in found.results},
    }
    run.say(str(found))
    for runner in subject.runners:
        runner.close()
    if not found.ok:
        raise NotVerifiedError(found.title)


def trace_part(key: str, compile: str) -> Part:
    """A part that sends the real prompt lengths through a calibrated runner."""

    def act(scenario: Scenario, run: Run) -> None:
        runner, crossover, captured, measured = calibrated(scenario, compile)
        run.data[f"crossover_{key}"] = crossover.data()
        run.say(str(crossover))
        run.data[key] = trace(scenario, runner, steps=160) | {
            "capture_s": captured,
            "calibrate_s": measured,
        }
        runner.backend.close()
        run.say(str(run.data[key]))

    return act


def stop_at_the_end(run: Run) -> None:
    """A thread that ends the process when its time is over; what is measured is on disk."""

    def stop() -> None:
        run.say("time is over")
        os._exit(0)

    timer = threading.Timer(max(1.0, run.left), stop)
    timer.daemon = True
    timer.start()


def everything(scenario: Scenario, run: Run) -> None:
    """All parts, the most wanted first."""
    parts: tuple[tuple[str, float, Part], ...] = (
        ("peers", 80, compare_group("peers", BY_HAND, 3)),
        ("parts of a step", 10, parts_of_a_step),
        ("weights read once", 5, weights_read),
        ("compiled peers", 110, compare_group("inductor", COMPILED, 4)),
        ("real prompt lengths", 60, trace_part("trace", "none")),
        ("verified", 45, verified_part),
        ("memory", 15, memory_part),
        ("capture", 15, capture_part),
        ("real prompt lengths, compiled", 75, trace_part("trace_inductor", "inductor")),
        ("growth", 45, growth_part),
    )
    for name, needs, act in parts:
        run.part(name, needs, partial(act, scenario, run))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder of results.json and plots")
    parser.add_argument("--minutes", type=float, default=7.0)
    given = parser.parse_args(argv)
    run = Run(given.out, given.minutes * 60 - 15)
    if not torch.cuda.is_available():
        parser.error("this torch sees no GPU; `ppcgc bench --tiny` runs on a CPU")
    stop_at_the_end(run)
    run.say(str(run.data["environment"]))
    stage = scenario(tiny=False)
    run.say(f"{stage.shape.name}: {stage.stage.weight_bytes() / 1e9:.2f} GB of weights")
    everything(stage, run)
    run.data["targets"] = [list(line) for line in targets.lines(run.data)]
    run.save()
    run.say("targets\n" + targets.text(run.data))
    draw(run)
    return 0


def draw(run: Run) -> None:
    """The plots, where matplotlib is there."""
    try:
        from benchmarks.plots import plots
    except ImportError as problem:
        run.say(f"no plots: {problem}; `pip install 'ppcgc[bench]'`")
        return
    for path in plots(run.data, run.file.parent):
        run.say(f"wrote {path.name}")


if __name__ == "__main__":
    sys.exit(main())
