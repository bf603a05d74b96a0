"""Real prompt lengths through eager and through a calibrated runner, in turns."""

from __future__ import annotations

import csv
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.batches import batch_of, boundary_of
from benchmarks.compare import TOLERANCE, error_of
from benchmarks.generated import bench_llama
from benchmarks.scenario import Case, Runner, Scenario
from ppcgc import runtime as rt

SAMPLE = Path(__file__).parent / "data" / "azure_code_2023_prompts.csv"
CLASSES = ((1, 256), (257, 1024), (1025, 2048))


def prompt_lengths(path: Path = SAMPLE) -> list[int]:
    """The column ContextTokens of a trace."""
    with path.open(encoding="utf-8", newline="") as file:
        return [int(row["ContextTokens"]) for row in csv.DictReader(file)]


def chunks(lengths: Iterable[int], most: int) -> list[int]:
    """Prompts in chunks of at most ``most`` tokens, as an engine with chunked prefill runs them."""
    return [min(most, length - start) for length in lengths for start in range(0, length, most)]


def trace(
    scenario: Scenario,
    runner: Runner,
    *,
    path: Path = SAMPLE,
    steps: int = 400,
    rounds: int = 3,
) -> dict[str, Any]:
    """Time by class of live tokens and over all, eager and ``runner`` in turns, outputs checked.

    A chunk is one step alone in its batch. Steps of one size share one case. A class is timed as
    a stream of its own steps in the order of the trace. Both are given the batch on the host.
    """
    largest = max(scenario.buckets)
    lives = chunks(prompt_lengths(path), largest)[:steps]
    cases = {live: single(scenario, live) for live in sorted(set(lives))}
    ours = steps_of(runner, cases)
    worst = max(_error(scenario, runner, case) for case in cases.values())
    if worst > TOLERANCE[scenario.shape.dtype]:
        raise AssertionError(f"the trace's outputs differ from eager's: relative error {worst:.3g}")
    eager = {live: partial(_eager, scenario, case) for live, case in cases.items()}
    out: dict[str, Any] = {"steps": len(lives), "rounds": rounds, "error": worst, "classes": []}
    for low, high in (*CLASSES, (1, largest)):
        some = [live for live in lives if low <= live <= high]
        if some:
            out["classes"].append(
                {"from": low, "to": high} | _turns(scenario, some, eager, ours, rounds)
            )
    replayed = sum(runner.decide(cases[live].arrays)[1].padded is not None for live in lives)
    return out | {"replayed": replayed, "eager": len(lives) - replayed}


def single(scenario: Scenario, live: int) -> Case:
    """One prompt of ``live`` tokens."""
    arrays = batch_of([live])
    return Case(
        bucket=0,
        arrays=arrays,
        tensors=arrays,
        on_device=arrays.on(scenario.device),
        given=boundary_of(scenario.shape, live, scenario.device),
    )


def steps_of(runner: Runner, cases: dict[int, Case]) -> dict[int, Callable[[], Any]]:
    """A step for each case, whose boundary lies where a stage before would have written it."""
    return {
        live: partial(runner.run, case.arrays, boundary_in_place(runner, case))
        for live, case in cases.items()
    }


def boundary_in_place(runner: Any, case: Case) -> bench_llama.Boundary:
    """Views of the slots of the bucket that the case takes; its own rows for an eager step."""
    live, choice = runner.decide(case.arrays)
    rows = case.given if choice.padded is None else runner.table[choice.padded].boundary
    return bench_llama.Boundary(
        hidden_states=rows.hidden_states[: live.tokens], residual=rows.residual[: live.tokens]
    )


def _eager(scenario: Scenario, case: Case) -> object:
    """The model alone, behind a copy of each of the batch's arrays that waits for nothing."""
    return scenario.eager_of(case.arrays.sent_to(scenario.device), case.given)


def _error(scenario: Scenario, runner: Runner, case: Case) -> float:
    """Of a step whose boundary was just written, for all sizes share their slots."""
    boundary = boundary_in_place(runner, case)
    boundary.hidden_states.copy_(case.given.hidden_states)
    boundary.residual.copy_(case.given.residual)
    made = runner.run(case.arrays, boundary)
    rows = (made.hidden_states.clone(), made.residual.clone())
    return error_of(rows, scenario.eager(case))


def _turns(
    scenario: Scenario,
    lives: Sequence[int],
    eager: Mapping[int, Callable[[], Any]],
    ours: Mapping[int, Callable[[], Any]],
    rounds: int,
) -> dict[str, Any]:
    times: dict[str, list[float]] = defaultdict(list)
    for _ in range(rounds):
        for name, steps in (("eager", eager), ("ppcgc", ours)):
            times[name].append(_seconds(scenario, [steps[live] for live in lives]))
    ratios = [one / other for one, other in zip(times["eager"], times["ppcgc"], strict=True)]
    return {
        "steps": len(lives),
        "eager_s": statistics.median(times["eager"]),
        "ppcgc_s": statistics.median(times["ppcgc"]),
        "speedup": statistics.median(ratios),
        "spread": (min(ratios), max(ratios)),
    }


def _seconds(scenario: Scenario, steps: Sequence[Callable[[], object]]) -> float:
    scenario.sync()
    start = perf_counter()
    for step in steps:
        step()
    scenario.sync()
    return perf_counter() - start


def calibrated(scenario: Scenario, compile: str) -> tuple[Any, Any, float, float]:
    """A runner with the dense ladder, its crossover, and seconds to capture and to calibrate."""
    runner: Any = scenario.build(bench_llama.PrefillDenseMiddle, rt.open_backend(scenario.device))
    start = perf_counter()
    rt.capture([runner], compile=compile)
    captured = perf_counter()
    (crossover,) = rt.calibrate([runner])
    return runner, crossover, captured - start, perf_counter() - captured
