"""What verify makes of steps without a graph, and of buckets or padding that no batch shows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from probe_family import build, captured, prefill_batch, subject

from ppcgc import runtime as rt
from ppcgc.runtime import Subject, verify
from ppcgc.runtime.verification import Verdict


def findings(result: Any) -> list[str]:
    return [str(finding) for finding in result.findings]


def odd_steps_ineligible(runner: Any) -> None:
    runner.ineligible = lambda batch, live: "odd" if live.tokens % 2 else None


def odd_steps_absent(runner: Any) -> None:
    runner.inputs.absent = lambda batch: "noise" if batch.num_tokens % 2 else None


def bucket_of_eight_dropped(runner: Any) -> None:
    for padded in list(runner.table):
        if padded.tokens == 8:
            runner.drop(padded, "no memory")


@pytest.mark.parametrize("eager", [odd_steps_ineligible, odd_steps_absent, bucket_of_eight_dropped])
def test_batches_whose_steps_are_eager_are_left_out(eager: Callable[[Any], None]) -> None:
    runners = captured(build())
    for runner in runners:
        eager(runner)
    found = verify(subject(runners))
    assert findings(found) == []
    assert found.ok


def test_a_stage_that_goes_eagerly_alone_leaves_the_batch_out() -> None:
    runners = captured(build())
    odd_steps_absent(runners[1])
    found = verify(subject(runners))
    assert findings(found) == []


def never_faster(runner: Any) -> rt.Crossover:
    times = {"replay": 2.0, "eager": ((16, 1.0),), "least": 17}
    return rt.Crossover.from_data(
        {
            "runner": f"{runner.family}.{runner.runner}",
            "axis": "tokens",
            "column": list(runner.columns).index("tokens"),
            "buckets": [{"padded": list(padded), **times} for padded in runner.buckets],
        }
    )


def test_buckets_that_lost_to_eager_are_verified_too() -> None:
    runners = captured(build())
    crossover = never_faster(runners[0])
    for runner in runners:
        runner.use_calibration(crossover)
    found = verify(subject(runners))
    assert findings(found) == []
    assert "no batch was given" not in found["loading"].evidence
    assert [runner.crossover for runner in runners] == [crossover, crossover]


def of_full_buckets(live: Any, seed: int) -> Any:
    return prefill_batch(live, seed) if live in ((4, 4), (4, 8), (4, 16)) else None


def test_padding_without_a_padded_batch_is_skipped_and_says_so() -> None:
    found = verify(dataclasses.replace(subject(build()), batches=of_full_buckets))
    result = found["padding"]
    assert (findings(result), result.verdict) == ([], Verdict.SKIPPED)
    assert "every batch that was given fills its bucket" in result.evidence


def test_buckets_that_no_batch_replays_are_named() -> None:
    runners = captured(build())
    live = next(iter(runners[0].buckets))._replace(tokens=3, requests=2)
    only = Subject(runners=runners, batches=[prefill_batch(live, 1)])
    evidence = verify(only, checks=["loading"])["loading"].evidence
    assert "no batch was given that replays bucket tokens=8 requests=4" in evidence
    assert "bucket tokens=16 requests=4: nothing is known of them" in evidence
    assert "tokens=4" not in evidence.split("no batch was given")[1]


def test_a_maker_that_ignores_the_counts_shows_few_buckets() -> None:
    same = prefill_batch(SimpleNamespace(tokens=3, requests=2), 1)
    ignoring = dataclasses.replace(subject(build()), batches=lambda live, seed: same)
    assert "no batch was given that replays" in verify(ignoring)["loading"].evidence
