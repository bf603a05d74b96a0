"""Ratios and times that hold on any machine, with wide gates: ``python -m benchmarks.ci``.

Times are of the processor, not of the clock on the wall, so that other work on the machine does
not count, and each is the best of some tries. ``target`` is what the project wants on a quiet
machine, ``gate`` is what fails: the gap is for slow machines, not for slow code.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import torch

from benchmarks.batches import INTEGERS
from benchmarks.peers.ours import Ours
from benchmarks.results import read
from benchmarks.scenario import REQUESTS, Case, scenario
from benchmarks.tables import table

ROOT = Path(__file__).parents[1]
TRIES = 3
NO_BYTE_CODE = {"PYTHONDONTWRITEBYTECODE"}
IMPORT = """
import time, torch
start = time.process_time()
import generated.llama
print(time.process_time() - start)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One measurement, in the unit of its limits."""

    what: str
    measured: float
    target: float
    gate: float
    unit: str = ""

    @property
    def holds(self) -> bool:
        return self.measured <= self.gate


def host_step() -> Gate:
    """Choose, check, load and receive, over a loader written by hand for this stage alone.

    The hand-written one chooses nothing and checks nothing: it copies and resets, slot by slot.
    """
    stage = scenario(tiny=True)
    ours = Ours(stage)
    case = stage.case(47, 64)
    batch, boundary = ours.batch(case), ours.boundary(case)
    by_hand = straight_line(case)
    pairs = [
        (_each(lambda: ours.runner.begin(batch, boundary)), _each(by_hand)) for _ in range(TRIES)
    ]
    ours.close()
    ratio = min(ours for ours, _ in pairs) / min(hand for _, hand in pairs)
    return Gate(what="host step / hand-written loader", measured=ratio, target=1.0, gate=2.0)


def straight_line(case: Case) -> Callable[[], None]:
    """A loader of the scenario's integer slots in torch, a copy and a reset for each."""
    sizes = {
        name: case.bucket if len(getattr(case.tensors, name)) == case.live else REQUESTS
        for name in INTEGERS
    }
    slots = {
        name: getattr(case.tensors, name).new_zeros(size + (name == "cu_seqlens"))
        for name, size in sizes.items()
    }

    def load() -> None:
        source = case.tensors
        for name, slot in slots.items():
            rows = getattr(source, name)
            live = rows.shape[0]
            slot[:live].copy_(rows)
            if name == "cu_seqlens":
                slot[live:] = slot[live - 1]
            else:
                slot[live:].zero_()

    return load


def _each(step: Callable[[], object], count: int = 2000) -> float:
    start = process_time()
    for _ in range(count):
        step()
    return (process_time() - start) / count


def compile_time() -> Gate:
    """`ppcgc generate` of all specs of the project into an empty folder."""
    families = len(list((ROOT / "specs").glob("*.yaml")))
    target = 0.3 + 0.06 * families
    best = min(_generate() for _ in range(TRIES))
    what = f"generate, {families} families"
    return Gate(what=what, measured=best, target=target, gate=3 * target, unit="s")


def _generate() -> float:
    with tempfile.TemporaryDirectory() as out:
        before = os.times()
        subprocess.run(
            [sys.executable, "-m", "ppcgc", "generate", "specs", "--out", f"{out}/generated"],
            cwd=ROOT,
            check=True,
            capture_output=True,
        )
        after = os.times()
    return (
        after.children_user
        + after.children_system
        - (before.children_user + before.children_system)
    )


def import_time() -> Gate:
    """A generated package, with the runtime, once torch is there and all is byte-compiled."""
    with tempfile.TemporaryDirectory() as cache:
        seconds = [_import(cache) for _ in range(TRIES + 1)]
    what = "import of a generated package beyond torch"
    return Gate(what=what, measured=min(seconds) * 1e3, target=20, gate=100, unit="ms")


def _import(cache: str) -> float:
    """Seconds; ``cache`` takes the byte code, which an environment may forbid elsewhere."""
    settings = {key: value for key, value in os.environ.items() if key not in NO_BYTE_CODE}
    done = subprocess.run(
        [sys.executable, "-c", IMPORT],
        cwd=ROOT,
        env=settings | {"PYTHONPYCACHEPREFIX": cache},
        check=True,
        capture_output=True,
        text=True,
    )
    return float(done.stdout)


def two_ranks() -> Gate:
    """A pipeline of two processes over gloo, over eager stages that send by hand, per batch.

    What the first rank chooses travels to the second at every step, and the batch is checked and
    loaded on both: with a stage this small that is much of a step. Outputs are checked.
    """
    with tempfile.TemporaryDirectory() as out:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
                *("--nproc-per-node", "2", "-m", "benchmarks.two_gpus", "--tiny"),
                *("--minutes", "3", "--out", out),
            ],
            cwd=ROOT,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(f"two ranks failed:\n{done.stdout}\n{done.stderr}")
        rows = read(Path(out) / "two_gpus.json")["pipeline"]
    wrong = [row for row in rows if "batches_per_s" not in row]
    if wrong:
        raise RuntimeError(f"two ranks gave outputs that are not eager's: {wrong}\n{done.stdout}")
    rates = {row["way"]: row["batches_per_s"] for row in rows if row["stream"] == "47 tokens"}
    ratio = rates["eager"] / rates["ppcgc eager"]
    return Gate(what="pipeline of two, eager / ours", measured=ratio, target=1.0, gate=4.0)


def main() -> int:
    torch.set_num_threads(1)
    gates = [host_step(), compile_time(), import_time(), two_ranks()]
    rows = [
        [
            one.what,
            *(f"{value:.2f}{one.unit}" for value in (one.measured, one.target, one.gate)),
            "holds" if one.holds else "BROKEN",
        ]
        for one in gates
    ]
    sys.stdout.write(table(["what", "measured", "target", "gate", ""], rows) + "\n")
    return 0 if all(one.holds for one in gates) else 1


if __name__ == "__main__":
    sys.exit(main())
