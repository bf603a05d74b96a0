"""Steps through pipelines of processes: the same numbers as by hand and as in one process."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from rank_processes import run_ranks, values
from torch import Tensor
from toy_pipeline import (
    build,
    decode_batch,
    mixed_steps,
    plain,
    prefill_batch,
)

from ppcgc.hf import loading
from ppcgc.runtime import capture
from ppcgc.runtime.pipeline import Pipeline

SAVED = Path(".cache") / loading.SAVED


def serve(rank: int, ranks: int, in_flight: int, share: bool = False) -> Any:
    built = build(rank, ranks)
    with Pipeline(list(built.runners.values()), in_flight=in_flight, timeout=15) as pipeline:
        pipeline.capture(share=share)
        paths, outputs = [], []
        for (name, _), made in zip(mixed_steps(), pipeline.stream(mixed_steps()), strict=True):
            paths.append(str(built.runners[name].last_step))
            outputs.append(None if made is None else made.hidden_states.clone())
        return outputs, paths, str(pipeline.report()), pipeline.fingerprint


def in_one_process(stages: int) -> list[Tensor]:
    """The same stages one after the other in this process."""
    built = [build(stage, stages) for stage in range(stages)]
    for name in ("prefill", "decode"):
        capture([stage.runners[name] for stage in built])
    outputs = []
    for name, batch in mixed_steps():
        handed = built[0].runners[name].run(batch)
        for stage in built[1:]:
            handed = stage.runners[name].run(batch, handed)
        outputs.append(handed.hidden_states.clone())
    return outputs


@pytest.mark.parametrize(
    ("ranks", "in_flight", "share"),
    [(1, 1, False), (2, 1, True), (3, 2, False), (3, 2, True), (4, 3, False)],
)
def test_every_step_equals_the_plain_model_and_one_process(
    ranks: int, in_flight: int, share: bool, tmp_path: Path
) -> None:
    made = values(run_ranks(ranks, serve, tmp_path, ranks, in_flight, share))
    for outputs, _, _, _ in made[:-1]:
        assert outputs == [None] * len(mixed_steps())
    outputs, paths, report, fingerprint = made[-1]
    alone = in_one_process(ranks)
    for (_, batch), output, same in zip(mixed_steps(), outputs, alone, strict=True):
        torch.testing.assert_close(output, plain(batch), atol=1e-5, rtol=0)
        torch.testing.assert_close(output, same, atol=0, rtol=0)
    assert paths == [
        "replay 47→64",
        "replay 3→4",
        "replay 513→1024",
        "replay 5→16",
        "eager 2200 (over capacity)",
        "replay 16→16",
        "eager 20 (over capacity)",
        "replay 64→64",
        "replay 0→16",
        "replay 64→64",
    ]
    assert all(other[1] == paths and other[3] == fingerprint for other in made)
    assert "last step of prefill: replay 64→64, cpu graph: True" in report
    assert ("memory shared with decode" in report) is share


def serve_slowly(rank: int, in_flight: int) -> Any:
    """The receiver dawdles, so that the sender would run over what it still sends."""
    built = build(rank, 2, names=("prefill",))
    runner = built.runners["prefill"]
    with Pipeline([runner], in_flight=in_flight, timeout=15) as pipeline:
        pipeline.capture()
        kept = []
        for number in range(8):
            if rank == 1:
                time.sleep(0.05)
            made = pipeline.run("prefill", prefill_batch([400], seed=number))
            kept.append(None if made is None else made.hidden_states.clone())
        return kept


@pytest.mark.parametrize("in_flight", [1, 3])
def test_a_sender_never_overwrites_what_it_still_sends(in_flight: int, tmp_path: Path) -> None:
    _, kept = values(run_ranks(2, serve_slowly, tmp_path, in_flight))
    for number, output in enumerate(kept):
        expected = plain(prefill_batch([400], seed=number))
        torch.testing.assert_close(output, expected, atol=1e-5, rtol=0)


def serve_two_lanes(rank: int) -> Any:
    """Two pipelines of two ranks beside each other, their ranks interleaved."""
    lanes = [[0, 2], [3, 1]]
    lane = next(lane for lane in lanes if rank in lane)
    built = build(lane.index(rank), 2, names=("decode",))
    with Pipeline(list(built.runners.values()), lanes=lanes, timeout=15) as pipeline:
        pipeline.capture()
        made = pipeline.run("decode", decode_batch(5, seed=lanes.index(lane)))
        return None if made is None else made.hidden_states.clone()


def test_pipelines_beside_each_other(tmp_path: Path) -> None:
    made = values(run_ranks(4, serve_two_lanes, tmp_path))
    assert made[0] is None and made[3] is None
    for seed, last in ((0, 2), (1, 1)):
        torch.testing.assert_close(made[last], plain(decode_batch(5, seed=seed)), atol=1e-5, rtol=0)


def refuse_and_go_on(rank: int) -> Any:
    built = build(rank, 2, names=("decode",))
    with Pipeline(list(built.runners.values()), timeout=15) as pipeline:
        pipeline.capture()
        bad = decode_batch(4)
        bad.input_ids = torch.tensor([1, 2])  # two rows where four are live
        try:
            pipeline.run("decode", bad)
            refused = "nothing"
        except Exception as problem:
            refused = f"{type(problem).__name__}: {problem}"
            assert_no_circle(problem)
        made = pipeline.run("decode", decode_batch(4))
        return refused, None if made is None else made.hidden_states.clone()


def assert_no_circle(problem: BaseException | None) -> None:
    """Whoever prints an error with its causes must come to an end."""
    seen: list[BaseException] = []
    while problem is not None:
        assert problem not in seen
        seen.append(problem)
        problem = problem.__cause__ or problem.__context__


def test_a_batch_that_the_first_rank_refuses_is_refused_by_all(tmp_path: Path) -> None:
    (first, _), (last, output) = values(run_ranks(2, refuse_and_go_on, tmp_path))
    assert first.startswith("SourceError: slot input_ids")
    assert last.startswith(
        "StepRefusedError: rank 0 refused the batch of step 0: SourceError: slot"
    )
    torch.testing.assert_close(output, plain(decode_batch(4)), atol=1e-5, rtol=0)


def refuse_and_leave(rank: int) -> Any:
    built = build(rank, 3, layers=3)
    bad = decode_batch(4)
    bad.input_ids = torch.tensor([1, 2])
    try:
        with Pipeline(list(built.runners.values()), timeout=15) as pipeline:
            pipeline.capture()
            if rank:  # the first rank has left by then
                time.sleep(0.3 * rank)
            pipeline.run("decode", bad)
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"
    return "nothing"


def test_a_refusal_reaches_all_though_the_first_rank_leaves_at_once(tmp_path: Path) -> None:
    first, *others = values(run_ranks(3, refuse_and_leave, tmp_path))
    assert first.startswith("SourceError: slot input_ids")
    for other in others:
        assert other.startswith("StepRefusedError: rank 0 refused the batch of step 0: SourceError")


def landing_places(rank: int) -> Any:
    built = build(rank, 3, layers=3)
    with Pipeline(list(built.runners.values()), timeout=15) as pipeline:
        pipeline.capture()
        places = []
        for runner in built.runners.values():
            for bucket in runner.table.values():
                takes = [] if rank == 0 else [bucket.boundary.hidden_states.untyped_storage()]
                gives = [] if rank == 2 else [bucket.outputs.hidden_states.untyped_storage()]
                places += [storage.data_ptr() for storage in takes + gives]
        return len(set(places))


def test_all_buckets_of_a_rank_share_one_block_for_each_edge(tmp_path: Path) -> None:
    assert values(run_ranks(3, landing_places, tmp_path)) == [1, 2, 1]


@pytest.mark.parametrize(
    "weights",
    [
        "random",
        pytest.param(
            "saved",
            marks=[
                pytest.mark.smollm2,
                pytest.mark.skipif(not SAVED.is_dir(), reason=f"no weights in {SAVED}"),
            ],
        ),
    ],
)
def test_the_example_under_torchrun(weights: str) -> None:
    """Two ranks of a transformers model: the tokens of the unsplit model, all steps replayed."""
    given = ["--random"] if weights == "random" else []
    made = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
            *("--nproc-per-node", "2", "-m", "examples.two_ranks", *given, "--tokens", "6"),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    assert "against the unsplit model in one process: EQUAL" in made.stdout
    assert made.stdout.count("last step of prefill: replay 47→64, cpu graph: True") == 2
    assert made.stdout.count("last step of decode: replay 1→1, cpu graph: True") == 2
