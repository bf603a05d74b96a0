"""Ranks that were built for different things are refused before capture, on every rank."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from rank_processes import run_ranks, values
from toy_pipeline import ToyStage, build, decode_batch, plain

from ppcgc.runtime.errors import BuildError
from ppcgc.runtime.pipeline import Pipeline


def open_with(rank: int, ranks: int, odd: int, difference: str) -> Any:
    """Every rank as it should be but ``odd``."""
    is_odd = rank == odd
    stage = rank
    if difference == "order":
        stage = {0: 1, 1: 0}.get(rank, rank)
    built = build(
        stage,
        ranks,
        layers=5 if difference == "layers" and is_odd else 4,
        context=24 if difference == "dims" and is_odd else 16,
        dtype=torch.float64 if difference == "dtype" and is_odd else torch.float32,
    )
    runners = list(built.runners.values())
    if difference == "spec" and is_odd:
        for runner in runners:
            runner.fingerprint = "sha256:0123"
    if difference == "buckets" and is_odd:
        decode = built.runners["decode"]
        decode.buckets = dict(list(decode.buckets.items())[:-1])
    if difference == "runners" and is_odd:
        runners.reverse()
    if difference == "abi" and is_odd:
        from ppcgc.runtime.pipeline import agreement

        agreement.ABI = 0
    Pipeline(runners, timeout=10)


@pytest.mark.parametrize(
    ("difference", "text"),
    [
        ("spec", "spec: rank 0 has sha256:"),
        ("abi", "ABI: rank 0 has 1, rank 2 has 0; install one ppcgc on all ranks"),
        ("dims", "dims of prefill: rank 0 has Dims("),
        ("dtype", "dtype of prefill: rank 0 has torch.float32, rank 2 has torch.float64"),
        ("layers", "layer count: rank 0 has 4, rank 2 has 5"),
        (
            "buckets",
            "bucket list of decode: rank 0 has requests × tokens: 1×1, 2×2, 4×4, 8×8, 16×16, "
            "rank 2 has requests × tokens: 1×1, 2×2, 4×4, 8×8;",
        ),
        (
            "runners",
            "runners: rank 0 has llama.prefill, llama.decode, rank 2 has llama.decode, llama.pre",
        ),
        ("order", "rank 0 has layers [2, 3) of 4, the first rank starts at layer 0"),
    ],
)
def test_a_difference_is_named_on_every_rank(difference: str, text: str, tmp_path: Path) -> None:
    outcomes = run_ranks(3, open_with, tmp_path, 3, 2, difference)
    assert len({outcome.text for outcome in outcomes}) == 1
    for outcome in outcomes:
        assert outcome.kind == "AgreementError", outcome
        assert outcome.text.startswith(text)


def open_in_other_order(rank: int) -> Any:
    built = build({0: 0, 1: 2, 2: 1}[rank], 3, layers=3)
    Pipeline(list(built.runners.values()), timeout=10)


def test_ranks_in_another_order_than_their_layers(tmp_path: Path) -> None:
    for outcome in run_ranks(3, open_in_other_order, tmp_path):
        assert outcome.kind == "AgreementError"
        assert outcome.text.startswith(
            "layers: rank 0 has [0, 1), rank 1 has [2, 3); start the ranks in the order of their "
        )


def open_transport_on_gloo(rank: int, transport: str) -> Any:
    built = build(rank, 2)
    Pipeline(list(built.runners.values()), transport=transport, timeout=5)


@pytest.mark.parametrize(
    ("transport", "text"),
    [
        ("captured", "transport captured needs GPUs and NCCL, the stage is on cpu"),
        ("symmetric", "transport symmetric needs GPUs and NCCL, the stage is on cpu"),
        ("pigeon", "transport 'pigeon': one of eager, captured, symmetric"),
    ],
)
def test_a_transport_that_gloo_cannot_serve(transport: str, text: str, tmp_path: Path) -> None:
    for outcome in run_ranks(2, open_transport_on_gloo, tmp_path, transport):
        assert outcome.kind == "TransportError"
        assert outcome.text.startswith(text)


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


@pytest.mark.parametrize("odd", [0, 1, 2])
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
