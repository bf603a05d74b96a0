"""Ranks that were built for different things are refused before capture, on every rank."""

from __future__ import annotations

import sys
from contextlib import ExitStack, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import pytest
import torch
from rank_processes import run_ranks, values
from toy_pipeline import ToyStage, build, decode_batch, plain

from ppcgc.runtime import capture
from ppcgc.runtime.abi import ABI
from ppcgc.runtime.errors import BuildError, TransportError
from ppcgc.runtime.pipeline import Pipeline
from ppcgc.runtime.pipeline.transport import check_transports

DIFFERENCES = {
    "spec": "spec: rank 0 has sha256:",
    "abi": f"ABI: rank 0 has {ABI}, rank 2 has 0; install one ppcgc on all ranks",
    "dims": "dims of prefill: rank 0 has Dims(",
    "dtype": "dtype of prefill: rank 0 has torch.float32, rank 2 has torch.float64",
    "layers": "layer count: rank 0 has 4, rank 2 has 5",
    "buckets": (
        "bucket list of decode: rank 0 has requests × tokens: 1×1, 2×2, 4×4, 8×8, 16×16, "
        "rank 2 has requests × tokens: 1×1, 2×2, 4×4, 8×8;"
    ),
    "runners": (
        "runners: rank 0 has llama.prefill, llama.decode, rank 2 has llama.decode, llama.prefill"
    ),
    "transport": "transport of prefill: rank 0 has eager, rank 2 has captured",
    "order": "layers: rank 0 has [0, 2), rank 1 has [3, 4); start the ranks in the order of their",
}


def errors_of_differences(rank: int) -> dict[str, str]:
    """Every rank as it should be but rank 2; what opening the pipeline raises, by difference."""
    return {name: _opened(lambda name=name: open_with(rank, name)) for name in DIFFERENCES}


def _opened(work: Any) -> str:
    try:
        work()
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"
    return "opened"


def open_with(rank: int, difference: str) -> None:
    odd = rank == 2
    swapped = difference == "order"
    built = build(
        {1: 2, 2: 1}.get(rank, rank) if swapped else rank,
        3,
        layers=5 if difference == "layers" and odd else 4,
        context=24 if difference == "dims" and odd else 16,
        dtype=torch.float64 if difference == "dtype" and odd else torch.float32,
    )
    runners = list(built.runners.values())
    if difference == "spec" and odd:
        for runner in runners:
            runner.fingerprint = "sha256:0123"
    if difference == "buckets" and odd:
        decode = built.runners["decode"]
        decode.buckets = dict(list(decode.buckets.items())[:-1])
    if difference == "runners" and odd:
        runners.reverse()
    inside = "ppcgc.runtime.pipeline"
    with ExitStack() as patches:
        if difference == "abi" and odd:
            patches.enter_context(patch(f"{inside}.agreement.ABI", 0))
        transport = None
        if difference == "transport" and odd:
            transport = "captured"  # as if this rank had a GPU
            patches.enter_context(patch(f"{inside}.opening.check_transports"))
        Pipeline(runners, timeout=10, transport=transport)


def test_a_difference_is_named_on_every_rank(tmp_path: Path) -> None:
    everywhere = values(run_ranks(3, errors_of_differences, tmp_path))
    for name, text in DIFFERENCES.items():
        (raised,) = {errors[name] for errors in everywhere}
        assert raised.startswith(f"AgreementError: {text}")


def errors_of_transports(rank: int) -> list[str]:
    runners = list(build(rank, 2).runners.values())
    return [
        _opened(lambda name=name: Pipeline(runners, transport=name, timeout=5))
        for name in ("captured", "symmetric", "pigeon")
    ]


def test_transports_that_gloo_cannot_serve(tmp_path: Path) -> None:
    for captured, symmetric, unknown in values(run_ranks(2, errors_of_transports, tmp_path)):
        assert captured.startswith(
            "TransportError: transport captured needs GPUs and NCCL, the stage is on cpu"
        )
        assert symmetric.startswith("TransportError: transport symmetric needs GPUs and NCCL")
        assert unknown.startswith(
            "TransportError: transport 'pigeon': one of eager, captured, symmetric"
        )


def test_a_symmetric_transport_goes_alone() -> None:
    with pytest.raises(TransportError, match="eager, symmetric: `symmetric` cannot be mixed"):
        check_transports(["eager", "symmetric"], torch.device("cuda"))


@pytest.mark.parametrize("there", [True, False])
def test_a_symmetric_transport_needs_triton(there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    # of a module that is None here Python says that it cannot be imported
    monkeypatch.setitem(sys.modules, "triton", ModuleType("triton") if there else None)
    refused = pytest.raises(TransportError, match="transport symmetric needs Triton")
    with nullcontext() if there else refused:
        check_transports(["symmetric"], torch.device("cuda"))


def test_a_runner_that_was_captured_cannot_open_a_pipeline(tmp_path: Path) -> None:
    first, last = run_ranks(2, open_after_capture, tmp_path)
    assert first.kind == "BuildError" and "open the pipeline before any capture" in first.text
    assert last.kind == "PeerError" and "rank 0 failed in the set-up: BuildError" in last.text


def open_after_capture(rank: int) -> None:
    runner = build(rank, 2, names=("decode",)).runners["decode"]
    if rank == 0:
        capture([runner])
    Pipeline([runner], timeout=10)


def open_twice(rank: int) -> Any:
    """A second pipeline of the same runners, beside the first and after one that was not used."""
    runners = [build(rank, 2, names=("decode",)).runners["decode"]]
    Pipeline(runners, timeout=10).close()
    with Pipeline(runners, timeout=10) as pipeline:
        refused = _opened(lambda: Pipeline(runners, timeout=10))
        pipeline.capture()
        made = pipeline.run("decode", decode_batch(3))
        return refused, None if made is None else made.hidden_states.clone()


def test_a_runner_is_in_one_pipeline(tmp_path: Path) -> None:
    (refused, _), (_, made) = values(run_ranks(2, open_twice, tmp_path))
    assert (
        refused.startswith("BuildError: llama.decode first") and "in a pipeline already" in refused
    )
    torch.testing.assert_close(made, plain(decode_batch(3)), atol=1e-5, rtol=0)


def open_with_lanes(rank: int, odd: list[list[int]]) -> None:
    runners = list(build(rank, 3).runners.values())
    Pipeline(runners, timeout=10, lanes=odd if rank == 1 else [[0, 1, 2]])


@pytest.mark.parametrize("odd", [[[0, 2, 1]], [[0, 1], [2]]])
def test_other_lanes_are_named_on_every_rank(odd: list[list[int]], tmp_path: Path) -> None:
    named = ", ".join(map(str, odd))
    for outcome in run_ranks(3, open_with_lanes, tmp_path, odd):
        assert outcome.kind == "AgreementError"
        assert outcome.text == (
            f"list of lanes: rank 0 has [0, 1, 2], rank 1 has {named}; "
            "give every rank the same `lanes`"
        )


def test_a_pipeline_needs_a_process_group() -> None:
    with pytest.raises(BuildError, match="start the program with torchrun"):
        Pipeline(list(build(0, 2).runners.values()))


class Uncapturable(ToyStage):
    """Cannot be captured at some sizes: it reads a value on the host."""

    sizes: tuple[int, ...] = (4,)

    def forward(self, **given: Any) -> Any:
        if len(given["positions"]) in self.sizes:
            given["positions"].sum().item()
        return super().forward(**given)


class NeverCapturable(Uncapturable):
    sizes = (1, 2, 4, 8, 16)


def capture_with(rank: int, ranks: int, odd: int, model: type[ToyStage]) -> Any:
    built = build(rank, ranks, names=("decode",), model=model if rank == odd else ToyStage)
    runner = built.runners["decode"]
    with Pipeline([runner], timeout=10) as pipeline:
        pipeline.capture()
        made = pipeline.run("decode", decode_batch(3))
        path = str(runner.last_step)
        kept = None if made is None else made.hidden_states.clone()
        pipeline.run("decode", decode_batch(5))
        return path, str(runner.last_step), kept, str(pipeline.report()), dict(pipeline.dropped)


@pytest.mark.parametrize("odd", [0, 2])
def test_a_bucket_that_one_rank_cannot_capture_is_dropped_by_all(odd: int, tmp_path: Path) -> None:
    for path, after, kept, report, dropped in values(
        run_ranks(3, capture_with, tmp_path, 3, odd, Uncapturable)
    ):
        assert (path, after) == ("eager 3 (bucket dropped)", "replay 5→8")
        (why,) = dropped.values()
        assert why.startswith(f"rank {odd}: CaptureError: capture of llama.decode")
        assert f"bucket 4 × 4 dropped: rank {odd}: CaptureError" in report
        if kept is not None:
            torch.testing.assert_close(kept, plain(decode_batch(3)), atol=1e-5, rtol=0)


def test_a_runner_without_any_bucket_left_is_an_error_on_all_ranks(tmp_path: Path) -> None:
    for outcome in run_ranks(2, capture_with, tmp_path, 2, 1, NeverCapturable):
        assert outcome.kind == "CaptureError"
        assert "no bucket could be captured on all ranks; rank 1: CaptureError" in outcome.text


class Forgetful(ToyStage):
    def forward(self, **given: Any) -> Any:
        super().forward(**given)
        return {"hidden_states": given["positions"]}


def test_a_forward_that_returns_something_else_ends_the_capture_on_all_ranks(
    tmp_path: Path,
) -> None:
    first, last = run_ranks(2, capture_with, tmp_path, 2, 0, Forgetful)
    assert first.kind == "OutputError" and "lacks ['residual']" in first.text
    assert last.kind == "PeerError" and "rank 0 could not warm up decode" in last.text
