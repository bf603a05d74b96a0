"""Ranks whose clocks disagree take one path: the one that all their times together say."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from fault_scenarios import backend_of, modes
from rank_processes import run_ranks, values
from toy_pipeline import build, decode_batch, plain, prefill_batch

from ppcgc import runtime as rt
from ppcgc.runtime.pipeline import Pipeline
from ppcgc.runtime.pipeline.calibrating import reduced
from ppcgc.runtime.pipeline.transport.in_graph import InGraphTransport

# milliseconds of each rank, by bucket of the decode runner: its replay, then its eager step
PLANTED: list[dict[int, tuple[float, float]]] = [
    {1: (1, 2), 2: (9, 1), 4: (1, 9), 8: (3, 2), 16: (5, 1)},
    {1: (1, 2), 2: (1, 20), 4: (20, 1), 8: (3, 2), 16: (5, 1)},
    {1: (1, 2), 2: (1, 1), 4: (1, 1), 8: (3, 6), 16: (0, 9)},
]
# sums: 3 < 6, 11 < 22, 22 > 11, 9 < 10, 10 < 11. By rank 0 alone: 2, 8 and 16 would go eagerly.
TOGETHER = {1: "replay", 2: "replay", 4: "eager", 8: "replay", 16: "replay"}


class PlantedClock:
    """Runs a step once, and says what this rank's table has for its path."""

    def __init__(self, runner: Any, table: dict[int, tuple[float, float]]) -> None:
        self.runner, self.table = runner, table

    def seconds(self, step: Callable[[], object]) -> float:
        step()
        record = self.runner.last_step
        bucket = min(size for size in self.table if size >= record.live.requests)
        return self.table[bucket][0 if record.path == "replay" else 1] / 1e3


def calibrate_and_serve(rank: int, ranks: int) -> Any:
    runner = build(rank, ranks, names=("decode",)).runners["decode"]
    with Pipeline([runner], timeout=10) as pipeline:
        pipeline.capture()
        found = pipeline.calibrate(clock=PlantedClock(runner, PLANTED[rank]))
        counted = runner.report().replays, runner.report().eager_steps
        paths, outputs = [], []
        for size in (1, 2, 4, 8, 16):
            made = pipeline.run("decode", decode_batch(size))
            paths.append(f"{runner.last_step.path} ({runner.last_step.choice.reason.value})")
            outputs.append(None if made is None else made.hidden_states.clone())
        return [one.data() for one in found], paths, outputs, counted, str(runner.report())


def test_a_step_is_eager_only_if_the_sum_of_all_stages_says_so(tmp_path: Path) -> None:
    made = values(run_ranks(3, calibrate_and_serve, tmp_path, 3))
    for found, paths, _, counted, report in made:
        assert found == made[0][0]
        assert [path.split()[0] for path in paths] == list(TOGETHER.values())
        assert paths[2] == "eager (eager measured faster)"
        assert counted == (0, 0)  # measured steps are nobody's
        assert "always eager" in report
    (crossover,) = made[0][0]
    assert [one["replay"] for one in crossover["buckets"]] == pytest.approx(
        [0.003, 0.011, 0.022, 0.009, 0.010]
    )
    for size, output in zip(TOGETHER, made[-1][2], strict=True):
        torch.testing.assert_close(output, plain(decode_batch(size)), atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("pace", "together"),
    [(False, [0.003 + 0.020, 0.006 + 0.007]), (True, [0.020, 0.007])],
)
def test_hand_off_inside_graphs_is_compared_by_the_slowest_stage(
    pace: bool, together: list[float]
) -> None:
    assert reduced([[0.003, 0.006], [0.020, 0.007]], pace=pace) == together


def really(rank: int, where: str) -> Any:
    built = build(rank, 2, backend=backend_of(rank, where))
    transport = "eager" if where == "gloo" else where
    runners = list(built.runners.values())
    with Pipeline(runners, transport=transport, timeout=20) as pipeline:
        pipeline.capture()
        found = pipeline.calibrate()
        made = pipeline.run("prefill", prefill_batch([47]))
        path = str(built.runners["prefill"].last_step)
        return (
            [one.data() for one in found],
            path,
            None if made is None else made.hidden_states.cpu(),
            counted(pipeline) if rank and where in ("captured", "symmetric") else None,
        )


def counted(pipeline: Pipeline) -> tuple[int, int]:
    """Replays that the host of the last rank knows of, and blocks that its GPU has taken."""
    (transport,) = pipeline._transports.values()
    assert isinstance(transport, InGraphTransport)
    torch.cuda.synchronize()
    return transport._replays, int(transport.taken.item())


@pytest.mark.parametrize("where", modes("eager", "captured", "symmetric"))
def test_ranks_that_are_really_timed_find_the_same(where: str, tmp_path: Path) -> None:
    """With ``captured`` a rank that replayed once more than the other would wait for ever."""
    made = values(run_ranks(2, really, tmp_path, where, limit=90.0, gpus=where != "gloo"))
    (first, path, _, _), (last, other, output, counts) = made
    if counts is not None:  # measured replays are counted: a step waits for its own block
        assert counts[0] == counts[1] > 100
    assert first == last and [one["runner"] for one in first] == ["llama.prefill", "llama.decode"]
    assert path == other
    torch.testing.assert_close(output, plain(prefill_batch([47])), atol=1e-4, rtol=0)


def apply_kept(rank: int, folder: str) -> Any:
    runner = build(rank, 2, names=("decode",)).runners["decode"]
    errors, paths = [], []
    with Pipeline([runner], timeout=10) as pipeline:
        pipeline.capture()
        kept = pipeline.calibrate(clock=PlantedClock(runner, PLANTED[rank]))
        other = [rt.Crossover.from_data(json.loads(json.dumps(one.data()))) for one in kept]
        for given in (None, other if rank else None, other):
            try:
                pipeline.use_calibration(given)
            except Exception as problem:
                errors.append(f"{type(problem).__name__}: {problem}")
            pipeline.run("decode", decode_batch(16))
            paths.append(runner.last_step.path)
        try:
            rt.calibrate([runner])
        except Exception as problem:
            errors.append(f"{type(problem).__name__}: {problem}")
    return errors, paths


def test_a_kept_calibration_is_the_same_on_all_ranks_or_refused(tmp_path: Path) -> None:
    for errors, paths in values(run_ranks(2, apply_kept, tmp_path, str(tmp_path))):
        assert paths == ["replay", "replay", "eager"]  # sums of two: 10 against 2
        unequal, alone = errors
        assert unequal.startswith("AgreementError: calibration: rank 0 has none, rank 1 has llama")
        assert unequal.endswith("apply one kept calibration on all ranks")
        assert alone.startswith("BuildError: ") and "use the `calibrate` of its pipeline" in alone


def hang_while_calibrating(rank: int) -> Any:
    runner = build(rank, 2, names=("decode",)).runners["decode"]
    with Pipeline([runner], timeout=1) as pipeline:
        pipeline.capture()
        if rank:
            raise ValueError("no luck")
        pipeline.calibrate()


def test_a_rank_that_fails_meanwhile_ends_the_calibration(tmp_path: Path) -> None:
    first, last = run_ranks(2, hang_while_calibrating, tmp_path)
    assert last.kind == "ValueError"
    assert (
        first.kind == "PeerError" and "rank 1 failed in step 0: ValueError: no luck" in first.text
    )
