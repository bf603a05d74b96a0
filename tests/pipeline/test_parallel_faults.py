"""Ranks of tp that do not do as the others: wrong parts are seen, missing calls end in time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from parallel_toy import ParallelStage, Whole, build, next_tokens, sequences
from rank_processes import run_ranks, values
from test_pipeline_parallel import LANES, place, steps
from torch import Tensor

from ppcgc import runtime as rt
from ppcgc.runtime.errors import PpcgcError
from ppcgc.runtime.pipeline import Pipeline

CULPRIT, MATE = 3, 2  # the second stage, tp ranks 1 and 0
TIMEOUT = 4.0


class WrongRows(ParallelStage):
    """Takes the first part on every rank."""

    def own(self, rows: Tensor) -> Tensor:
        return rows[: -(-rows.shape[0] // self.tp.size)].contiguous()


class AllRows(ParallelStage):
    """Hands on all rows, where the spec says a part."""

    def forward(self, **given: Any) -> Any:
        made = super().forward(**given)
        if isinstance(made, Tensor):
            return made
        rows = given["positions"].shape[0]
        return {key: self.gathered(part, rows) for key, part in made.items()}


class Skips(ParallelStage):
    """Leaves the last sum out once ``skip`` is set."""

    skip = False

    def summed(self, partial: Tensor) -> Tensor:
        if self.skip and self.calls % len(self.up) == len(self.up) - 1:
            self.calls += 1
            return partial
        return super().summed(partial)


class SkipsAlways(Skips):
    skip = True


def serve_wrong_rows(rank: int) -> Any:
    stage, tp = place(rank)
    built = build(stage, 2, tp=tp, model=WrongRows, names=("prefill",))
    with Pipeline(list(built.runners.values()), lanes=LANES, timeout=15) as pipeline:
        pipeline.capture()
        made = pipeline.run(*steps()[0])
        return None if made is None else made.hidden_states.clone()


def test_the_comparison_with_the_unsplit_model_sees_a_part_of_the_wrong_rows(
    tmp_path: Path,
) -> None:
    made = values(run_ranks(4, serve_wrong_rows, tmp_path))[2]
    expected = Whole()(*steps()[0])
    torch.testing.assert_close(made[:16], expected[:16], atol=1e-5, rtol=1e-5)  # the first part
    with pytest.raises(AssertionError, match="not close"):
        torch.testing.assert_close(made[16:], expected[16:], atol=1e-5, rtol=1e-5)


def serve_all_rows(rank: int) -> None:
    stage, tp = place(rank)
    built = build(stage, 2, tp=tp, model=AllRows, names=("prefill",))
    with Pipeline(list(built.runners.values()), lanes=LANES, timeout=TIMEOUT) as pipeline:
        pipeline.capture()


def test_all_rows_in_the_place_of_a_part_are_refused(tmp_path: Path) -> None:
    outcomes = run_ranks(4, serve_all_rows, tmp_path)
    firsts = [outcome for outcome in outcomes if outcome.kind == "OutputError"]
    assert firsts and all(outcome.kind in ("OutputError", "PeerError") for outcome in outcomes)
    assert "gave shape [2048, 8], the spec says [1024, 8]" in firsts[0].text


def serve_without_a_collective(rank: int, where: str) -> None:
    stage, tp = place(rank)
    model = ParallelStage
    if rank == CULPRIT:
        model = SkipsAlways if where == "capture" else Skips
    built = build(stage, 2, tp=tp, model=model, names=("decode",))
    runner = built.runners["decode"]
    with Pipeline([runner], lanes=LANES, in_flight=1, timeout=TIMEOUT) as pipeline:
        pipeline.capture()
        for step in range(3):
            lengths = [3] * (17 if where == "eager" and step == 2 else 2)
            if rank == CULPRIT and step == 2:
                runner.model.skip = True
                graph = next(b.graph for p, b in runner.table.items() if p.requests == 2)
                if where == "replay":
                    graph._calls = without_the_last_collective(graph._calls)
            pipeline.run("decode", next_tokens(lengths, seed=step))


def without_the_last_collective(calls: list[Any]) -> list[Any]:
    at = max(number for number, call in enumerate(calls) if is_collective(call[0]))
    return calls[:at] + calls[at + 1 :]


def is_collective(function: Any) -> bool:
    """A sum over ranks, or one whose result is copied to where the tape wants it."""
    inside = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    return "all_reduce" in str(function) or any(callable(f) and is_collective(f) for f in inside)


@pytest.mark.parametrize("where", ["capture", "eager", "replay"])
def test_a_rank_that_is_not_in_a_collective_is_named_in_time(where: str, tmp_path: Path) -> None:
    outcomes = run_ranks(4, serve_without_a_collective, tmp_path, where, limit=30)
    mate = outcomes[MATE]
    step = "the set-up" if where == "capture" else "step 2"
    assert mate.kind == "HandOffTimeoutError", mate
    assert f"rank {CULPRIT} failed in {step}: rank {MATE} waited for it in" in mate.text
    assert "imed out" in mate.text
    place = "warm-up of llama_parallel.decode" if where == "capture" else "collective of the stage"
    assert place in mate.text
    if where == "capture":  # nobody can go on; in a last step the others have done their part
        assert all(o.kind == "HandOffTimeoutError" and o.text == mate.text for o in outcomes)
    assert not any(outcome.kind in ("HUNG", "STAYED", "DIED") for outcome in outcomes)


def serve_twice_the_same_place(rank: int) -> None:
    stage, tp = place(rank)
    wrong = rt.Ranks(size=2, rank=0) if rank == CULPRIT else tp
    built = build(stage, 2, tp=wrong)
    Pipeline(list(built.runners.values()), lanes=LANES, timeout=TIMEOUT)


def test_ranks_of_one_lane_in_two_places_are_both_named(tmp_path: Path) -> None:
    for outcome in run_ranks(4, serve_twice_the_same_place, tmp_path):
        assert outcome.kind == "AgreementError"
        assert "rank 1 has rank 1 of 2 of tp" in outcome.text
        assert "rank 3 has rank 0 of 2 of tp" in outcome.text


def serve_another_batch(rank: int) -> None:
    stage, tp = place(rank)
    built = build(stage, 2, tp=tp, names=("prefill",))
    with Pipeline(list(built.runners.values()), lanes=LANES, timeout=TIMEOUT) as pipeline:
        pipeline.capture()
        pipeline.run("prefill", sequences([9 if rank == 1 else 8], seed=1))


def test_a_rank_of_tp_with_another_batch_is_named(tmp_path: Path) -> None:
    outcomes = run_ranks(4, serve_another_batch, tmp_path)
    assert outcomes[1].kind == "DisagreementError"
    assert "rank 0 has a batch of PrefillExtents(tokens=8" in outcomes[1].text
    assert "rank 1 one of PrefillExtents(tokens=9" in outcomes[1].text
    for rank in (0, 2, 3):
        assert outcomes[rank].kind in ("PeerError", "HandOffTimeoutError", None)
        assert "rank 1 failed in step 0" in outcomes[rank].text or outcomes[rank].kind is None


def serve_refused(rank: int) -> Any:
    """A batch that the first rank refuses, then one that runs."""
    stage, tp = place(rank)
    built = build(stage, 2, tp=tp, names=("prefill",))
    with Pipeline(list(built.runners.values()), lanes=LANES, timeout=15) as pipeline:
        pipeline.capture()
        bad, good = sequences([4, 3], seed=1), sequences([4, 3], seed=2)
        bad.num_requests, bad.all_requests = 9, [9]  # more requests than tokens
        with pytest.raises(PpcgcError) as refused:
            pipeline.run("prefill", bad)
        made = pipeline.run("prefill", good)
        return type(refused.value).__name__, None if made is None else made.hidden_states.shape


def test_a_refused_batch_is_refused_by_all_ranks_of_tp(tmp_path: Path) -> None:
    made = values(run_ranks(4, serve_refused, tmp_path))
    assert [kind for kind, _ in made] == ["LimitError"] + ["StepRefusedError"] * 3
    assert [shape for _, shape in made] == [None, None, torch.Size([7, 8]), torch.Size([7, 8])]
