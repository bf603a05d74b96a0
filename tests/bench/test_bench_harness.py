"""The measurements' own parts: inputs, outputs that must be refused, tables and targets."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from benchmarks.batches import batch_of, padded, prompts
from benchmarks.compare import WrongOutputsError, check, measure
from benchmarks.peers import PEERS, close_peers
from benchmarks.peers.listing import ON_CPU
from benchmarks.scenario import Case, Scenario
from benchmarks.shape import TINY
from benchmarks.tables import handoff_table, peers_table, pipeline_table
from benchmarks.targets import lines, text
from benchmarks.trace import chunks, prompt_lengths

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return Scenario(CPU, TINY, (16,))


@pytest.mark.parametrize("tokens", [1, 2, 3, 12, 47, 2048])
def test_prompts_are_all_the_tokens(tokens: int) -> None:
    lengths = prompts(tokens)
    assert sum(lengths) == tokens
    assert min(lengths) > 0


def test_a_batch_is_packed_and_padded_as_the_spec_says(scenario: Scenario) -> None:
    batch = batch_of([2, 3]).on(CPU)
    assert batch.positions.tolist() == [0, 1, 0, 1, 2]
    assert batch.cu_seqlens.tolist() == [0, 2, 5]
    given = scenario.case(5, 16).given
    whole, rows = padded(batch, given, 8, 4)
    assert whole.cu_seqlens.tolist() == [0, 2, 5, 5, 5]
    assert whole.positions.tolist() == [0, 1, 0, 1, 2, 0, 0, 0]
    assert rows.residual[5:].abs().sum() == 0


@pytest.mark.parametrize("name", ON_CPU)
def test_every_peer_that_a_cpu_can_run_gives_what_eager_gives(
    name: str, scenario: Scenario
) -> None:
    peer = PEERS[name](scenario)
    assert check(scenario, peer, scenario.cases[0]) < 1e-5
    peer.step(scenario.cases[0])()
    peer.close()


class Wrong:
    """A peer that hands over another row in one place."""

    name = "wrong"
    does = ""

    def __init__(self, scenario: Scenario, value: float) -> None:
        self.scenario, self.value = scenario, value

    def step(self, case: Case) -> Any:
        return None

    def outputs(self, case: Case) -> tuple[Tensor, Tensor]:
        hidden, residual = self.scenario.eager(case)
        hidden[-1] = self.value
        return hidden, residual

    def close(self) -> None:
        return None


@pytest.mark.parametrize("value", [9.0, float("nan")])
def test_a_peer_with_wrong_outputs_is_refused(value: float, scenario: Scenario) -> None:
    with pytest.raises(WrongOutputsError, match=r"relative error .* 1 of 12 live rows .* is 11"):
        check(scenario, Wrong(scenario, value), scenario.cases[0])


class Raising(Wrong):
    """A peer that gets as far as its second stream of steps."""

    name = "raising"

    def step(self, case: Case) -> Any:
        self.value += 1
        if self.value > 2:
            raise MemoryError("no room\nfor more")
        return lambda: None

    def outputs(self, case: Case) -> tuple[Tensor, Tensor]:
        return self.scenario.eager(case)


def test_a_peer_that_is_wrong_or_breaks_is_left_out_and_the_others_are_measured(
    scenario: Scenario,
) -> None:
    good = [PEERS[name](scenario) for name in ("eager", "raw")]
    peers = [good[0], Wrong(scenario, 9.0), Raising(scenario, 0), good[1]]
    measured = measure(scenario, peers, rounds=3, seconds=0.001)
    assert [(row.peer, row.bitwise is not None) for row in measured.rows] == [
        ("eager", True),
        ("raw", True),
    ]
    wrong, raising = measured.problems
    assert str(wrong).startswith("wrong left out at 12 → 16: wrong outputs, relative error")
    assert str(raising) == "raising left out at 12 → 16: MemoryError: no room"
    close_peers(scenario, good, print)


def test_a_peer_that_does_not_close_is_told_of_and_the_next_is_closed(scenario: Scenario) -> None:
    class Stuck(Wrong):
        def close(self) -> None:
            raise OSError("stuck")

    closed = []

    class Good(Wrong):
        def close(self) -> None:
            closed.append(True)

    said: list[str] = []
    close_peers(scenario, [Stuck(scenario, 0), Good(scenario, 0)], said.append)
    assert (said, closed) == (["wrong did not close: OSError: stuck"], [True])


def test_chunks_of_the_trace() -> None:
    assert chunks([5, 8, 1], 4) == [4, 1, 4, 4, 1]
    lengths = prompt_lengths()
    assert (len(lengths), min(lengths) > 0) == (400, True)


ROWS = [
    {"peer": peer, "bucket": 64, "host_us": host, "stream_ms": stream}
    for peer, host, stream in (("raw", 4, 2.0), ("floor", 10, 2.0), ("ppcgc", 30, 2.05))
]


def test_a_table_has_peers_down_and_buckets_across() -> None:
    assert peers_table(ROWS, "stream_ms", over="raw").splitlines() == [
        "| peer  |    64 |",
        "|-------|------:|",
        "| raw   | 1.000 |",
        "| floor | 1.000 |",
        "| ppcgc | 1.025 |",
    ]


def test_targets_are_met_or_missed() -> None:
    tensors = {"peer": "ppcgc, CPU tensors", "bucket": 64, "host_us": 24, "stream_ms": 2.0}
    straight = {"peer": "floor, no memsets", "bucket": 64, "host_us": 6, "stream_ms": 2.0}
    rows = [*ROWS, tensors, straight]
    found = {what: (measured, most) for what, measured, most, _ in lines({"peers": rows})}
    assert found == {
        "host step at 64 from numpy, over the floor": (20, 15.0),
        "host step at 64 from numpy, over the floor, no memsets": (24, 15.0),
        "host step at 64 from CPU tensors, over the floor": (14, 15.0),
        "host step at 64 from CPU tensors, over the floor, no memsets": (18, 15.0),
        "step at 64 / raw": (pytest.approx(1.025), 1.03),
    }
    assert [line.split()[0] for line in text({"peers": ROWS}).splitlines()] == ["MISSED", "met"]


HANDED: list[dict[str, Any]] = [
    {"way": "8 bytes", "tokens": 0, "us": 4.0},
    *(
        {"way": way, "tokens": tokens, "us": us}
        for way, us in (
            ("ppcgc captured", 12.0),
            ("raw captured send", 10.0),
            ("eager send", 40.0),
            ("eager send a key", 60.0),
        )
        for tokens in (64, 512)
    ),
]


def test_targets_of_two_ranks() -> None:
    served = [
        {"stream": "47 tokens", "way": way, "batches_per_s": rate, "over_raw": rate / 300}
        for way, rate in (("raw, the slower stage", 300.0), ("ppcgc eager", 270.0))
    ]
    wrong = {"stream": "47 tokens", "way": "ppcgc captured", "error": 9.0}
    found = {
        what: (measured, most)
        for what, measured, most, _ in lines({"handoff": HANDED, "pipeline": [*served, wrong]})
    }
    assert found == {
        "captured hand-off of 64 tokens / raw captured send": (1.2, 1.3),
        "captured hand-off of 64 tokens / eager send a key": (0.2, 0.5),
        "captured hand-off of 64 tokens / eager send": (0.3, 0.5),
        "captured hand-off of 512 tokens / raw captured send": (1.2, 1.3),
        "pipeline, 47 tokens, ppcgc eager: slower stage's raw rate needed": (
            pytest.approx(1 / 0.9),
            1 / 0.9,
        ),
    }
    assert handoff_table(HANDED).splitlines()[3].split() == [
        *("|", "ppcgc", "captured", "|", "-", "|", "12.0", "|", "12.0", "|"),
    ]
    assert pipeline_table([*served, wrong]).splitlines()[-1].split()[-2] == "wrong"
