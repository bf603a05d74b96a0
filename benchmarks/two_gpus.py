"""Hand-off and pipeline of two ranks, for a results page, in a run that keeps to its time.

``python3 -m torch.distributed.run --nproc-per-node 2 -m benchmarks.two_gpus --out DIR --minutes 5``
measures on two GPUs; with ``--tiny`` a tiny shape on the CPU over gloo, which shows that the
harness runs, no speed. Parts run in the order of their worth; what is measured is on disk after
each. ``--trace`` adds a Chrome trace of some steps of both ranks.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
import torch.distributed as dist

from benchmarks import targets
from benchmarks.gpu import draw, stop_at_the_end
from benchmarks.handoff import TOKENS, handoff
from benchmarks.pipeline import pipeline, trace_of_some_steps
from benchmarks.ranks import TwoRanks
from benchmarks.shape import LLAMA_8B, TINY
from benchmarks.tables import handoff_table, pipeline_table


def measure(run: TwoRanks, *, tiny: bool, trace: bool) -> None:
    """All parts, the most wanted first."""
    shape = TINY if tiny else LLAMA_8B
    transports = ("eager", "captured", "symmetric") if run.device.type == "cuda" else ("eager",)

    def hand_off() -> None:
        sizes, rounds = ((16, 64), 20) if tiny else (TOKENS, 100)
        run.data["handoff"] = handoff(run, shape, sizes, rounds)
        run.say("microseconds one way, by tokens\n" + handoff_table(run.data["handoff"]))

    def two_halves() -> None:
        count = 12 if tiny else 96
        run.data["pipeline"] = pipeline(run, shape, transports, count=count)
        run.say("batches a second\n" + pipeline_table(run.data["pipeline"]))

    def a_trace() -> None:
        for transport in transports[:2]:
            file = run.file.parent / f"trace_{transport}.json"
            trace_of_some_steps(run, shape, transport, file)
            run.say(f"wrote {file.name}")

    run.part("hand-off", 5 if tiny else 60, hand_off)
    run.part("pipeline", 10 if tiny else 90, two_halves)
    if trace:
        run.part("trace", 5 if tiny else 45, a_trace)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.two_gpus", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder of two_gpus.json and plots")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--tiny", action="store_true", help="a tiny shape on the CPU over gloo")
    parser.add_argument("--trace", action="store_true", help="write traces of some steps too")
    given = parser.parse_args(argv)
    if given.tiny:
        torch.set_num_threads(1)
    run = TwoRanks(given.out, given.minutes * 60 - 10, tiny=given.tiny)
    run.file = given.out / "two_gpus.json"
    given.out.mkdir(parents=True, exist_ok=True)
    stop_at_the_end(run)
    run.say(str(run.data["environment"]))
    measure(run, tiny=given.tiny, trace=given.trace)
    if run.rank == 0:
        run.data["targets"] = [list(line) for line in targets.lines(run.data)]
        run.save()
        run.say("targets\n" + targets.text(run.data))
        draw(run)
    run.meet()
    dist.destroy_process_group()
    broken = [part for part, took in run.data["parts"].items() if isinstance(took, str)]
    wrong = [row["way"] for row in run.data.get("pipeline", ()) if "over_raw" not in row]
    return 1 if broken or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
