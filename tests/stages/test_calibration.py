"""Calibration: which steps go eagerly, on a clock whose times are written down here."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import torch
from fake_backend import FakeBackend
from toy_model import through, toy_batch, toy_stages

from ppcgc import runtime as rt
from ppcgc.runtime.calibrating import StreamClock
from ppcgc.runtime.choice import Reason
from ppcgc.runtime.crossover import least_live
from ppcgc.runtime.errors import BuildError, NotCapturedError

# milliseconds: eager takes 6 + live / 2, so it wins in bucket 16 up to 13 live tokens
REPLAY = {4: 4.0, 8: 8.0, 16: 12.8}


class WrittenClock:
    """Runs a step once, and says what the table has for what it did."""

    def __init__(self, runners: list[Any], replay: dict[int, float] = REPLAY) -> None:
        self.runners, self.replay = runners, replay
        self.seen: list[str] = []

    def seconds(self, step: Callable[[], object]) -> float:
        for runner in self.runners:
            runner.last_step = None
        step()
        (record,) = (one.last_step for one in self.runners if one.last_step is not None)
        self.seen.append(str(record))
        padded = record.choice.padded
        milliseconds: float = (
            6 + record.live.tokens / 2 if padded is None else self.replay[padded.tokens]
        )
        return milliseconds / 1e3


def calibrated(toy: Any, of: int, replay: dict[int, float] = REPLAY) -> tuple[list[Any], Any]:
    runners = toy_stages(toy, of)
    rt.capture(runners)
    (crossover,) = rt.calibrate(runners, clock=WrittenClock(runners, replay))
    return runners, crossover


def test_a_step_goes_the_way_that_was_measured_faster(toy: Any) -> None:
    runners, _ = calibrated(toy, 1)
    took = []
    for tokens in range(1, 17):
        runners[0].run(toy_batch(tokens))
        took.append(runners[0].last_step.path)
    assert took == ["replay"] * 8 + ["eager"] * 5 + ["replay"] * 3


@pytest.mark.parametrize("of", [2, 3])
def test_stages_of_one_runner_take_one_path(toy: Any, of: int) -> None:
    runners, crossover = calibrated(toy, of)
    assert [(one.padded[0], one.least) for one in crossover.buckets] == [(4, 0), (8, 0), (16, 14)]
    for tokens, reason in ((13, Reason.SLOWER), (14, Reason.FITS)):
        batch = toy_batch(tokens)
        out = through(runners, batch)
        assert {runner.last_step.choice.reason for runner in runners} == {reason}
        assert torch.equal(out.hidden_states, through(runners, batch, "eager").hidden_states)


def test_a_bucket_that_never_wins_is_never_replayed(toy: Any) -> None:
    (runner,), crossover = calibrated(toy, 1, REPLAY | {8: 99.0})
    assert [one.never for one in crossover.buckets] == [False, True, False]
    runner.run(toy_batch(8))
    choice = runner.last_step.choice
    assert (choice.reason, choice.detail) == (
        Reason.SLOWER,
        "bucket tokens 8 was never faster",
    )
    assert str(runner.last_step) == "eager 8 (eager measured faster)"


def test_measured_sizes_are_those_that_take_the_bucket(toy: Any) -> None:
    (runner,) = toy_stages(toy, 1)
    rt.capture([runner])
    clock = WrittenClock([runner])
    rt.calibrate([runner], clock=clock)
    asked = "asked to run eagerly"
    assert clock.seen == [
        "replay 4→4",
        *(f"eager {live} ({asked})" for live in (1, 2, 4)),
        "replay 8→8",
        *(f"eager {live} ({asked})" for live in (5, 6, 8)),
        "replay 16→16",
        *(f"eager {live} ({asked})" for live in (9, 12, 16)),
    ]


def test_the_report_shows_it_and_counts_none_of_its_steps(toy: Any) -> None:
    (runner,), _ = calibrated(toy, 1)
    report = runner.report()
    assert (report.replays, report.eager_steps) == (0, 0)
    assert "  16: replay 12.800 ms, eager 10.500 at 9, 12.000 at 12, 14.000 at 16: " in str(report)
    assert "replays from 14" in str(report)
    runner.run(toy_batch(12))
    assert dict(runner.report().eager) == {"eager measured faster": 1}


def test_it_can_be_taken_back_and_applied_again(toy: Any) -> None:
    (runner,), crossover = calibrated(toy, 1)
    kept = rt.Crossover.from_data(json.loads(json.dumps(crossover.data())))
    assert kept == crossover
    runner.use_calibration(None)
    runner.run(toy_batch(12))
    assert runner.last_step.path == "replay"
    runner.use_calibration(kept)
    runner.run(toy_batch(12))
    assert runner.last_step.path == "eager"


def test_what_cannot_be_calibrated_says_so(toy: Any) -> None:
    runners = toy_stages(toy, 1, backend=FakeBackend())
    with pytest.raises(NotCapturedError, match="capture it before it is calibrated"):
        rt.calibrate(runners)
    _, crossover = calibrated(toy, 1)
    with pytest.raises(BuildError, match=r"the calibration is of toy.other, not of toy.prefill"):
        runners[0].use_calibration(
            rt.Crossover.from_data({**crossover.data(), "runner": "toy.other"})
        )
    with pytest.raises(BuildError, match="no kept calibration: KeyError 'axis'"):
        rt.Crossover.from_data({"runner": "toy.prefill"})


def test_a_runner_that_must_replay_is_left_alone(toy: Any, monkeypatch: Any) -> None:
    (runner,) = toy_stages(toy, 1)
    monkeypatch.setattr(type(runner), "require_graph", True)
    rt.capture([runner])
    lines: list[str] = []
    assert rt.calibrate([runner], progress=lines.append) == ()
    assert lines == ["toy.prefill always replays: `require_graph: true`"]


@pytest.mark.parametrize(
    ("replay", "eager", "least"),
    [
        (5.0, [(1, 6.0), (8, 6.0)], 0),
        (5.9, [(1, 6.0), (8, 6.0)], 0),
        (5.95, [(1, 6.0), (8, 6.0)], 9),  # by less than one in a hundred: eager
        (7.0, [(1, 6.0), (8, 6.0)], 9),
        (6.9, [(1, 6.0), (5, 8.0), (8, 9.0)], 3),
        (8.4, [(1, 6.0), (5, 8.0), (8, 9.0)], 7),  # between 6 and 7: 7 is safe
        (6.9, [(1, 8.0), (5, 6.0), (8, 9.0)], 6),  # a slow smallest size is no reason
        (6.9, [(4, 7.0)], 0),
        (7.0, [(4, 7.0)], 5),
        (7.0, [(4, 6.0)], 5),
    ],
)
def test_the_crossover_lies_between_measured_sizes(
    replay: float, eager: list[tuple[int, float]], least: int
) -> None:
    assert least_live(replay, eager) == least


def test_a_stream_is_timed_from_behind_its_first_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock that steps advance: the first one of each stream takes ten times more."""
    now, steps = 0.0, 0
    monkeypatch.setattr("ppcgc.runtime.calibrating.perf_counter", lambda: now)

    class Streams(StreamClock):
        def _stream(self, step: Callable[[], object], count: int) -> float:
            nonlocal steps
            steps = 0
            return super()._stream(step, count)

    def step() -> None:
        nonlocal now, steps
        now += 0.25 if steps else 2.5
        steps += 1

    assert Streams(torch.device("cpu")).seconds(step) == 0.25
