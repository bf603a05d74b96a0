"""Runners without a fault pass every check, whatever was captured before, and are left as found."""

from __future__ import annotations

import json

import pytest
import torch
from probe_family import build, captured, prefill_batch, subject

from ppcgc.runtime import assert_verified, verify
from ppcgc.runtime.verification import Verdict, as_json

CHECKS = [
    "ranks",
    "choice",
    "addresses",
    "inputs",
    "purity",
    "host",
    "loading",
    "padding",
    "parity",
    "staleness",
    "outputs",
]


@pytest.mark.parametrize("stages", [1, 2])
@pytest.mark.parametrize("runner", ["prefill", "decode"])
@pytest.mark.parametrize("quick", [False, True])
def test_a_clean_runner_passes(runner: str, stages: int, quick: bool) -> None:
    found = verify(subject(build(runner, stages=stages)), quick=quick)
    assert [str(finding) for finding in found.findings] == []
    assert [result.name for result in found.results] == CHECKS
    expected = Verdict.SKIPPED if stages == 1 else Verdict.PASSED
    assert found["ranks"].verdict is expected
    assert all(result.verdict is Verdict.PASSED for result in found.results[1:])


def test_a_fed_pipeline_that_serves_already_passes_and_goes_on() -> None:
    first, last = build()
    first.feed(last)
    runners = captured([first, last])
    batch = prefill_batch(first.full._replace(tokens=7, requests=3), 5)
    before = last.run(batch, first.run(batch)).hidden.clone()
    state = runners[0].state.kv[0].clone()
    found = verify(subject(runners))
    assert found.ok, found
    assert torch.equal(runners[0].state.kv[0], state)
    assert torch.equal(last.run(batch, first.run(batch)).hidden, before)


def test_a_list_of_batches_is_tried_as_it_is() -> None:
    runners = build()
    kind = runners[0].full._replace
    batches = [prefill_batch(kind(tokens=n, requests=r), 2) for n, r in [(5, 2), (8, 4), (13, 3)]]
    found = assert_verified(runners, batches)
    assert "6 replays" in found["parity"].evidence


def test_json_and_text_say_the_same() -> None:
    found = verify(subject(build()), checks=["inputs", "parity"])
    data = json.loads(as_json((found,)))
    assert data["ok"] is True
    assert [check["name"] for check in data["verifications"][0]["checks"]] == ["inputs", "parity"]
    assert "passed  parity" in str(found)
    assert str(found).endswith("toy_probe.prefill, 2 stages on cpu: verified")


def test_progress_names_check_and_bucket() -> None:
    lines: list[str] = []
    verify(subject(build()), checks=["parity"], quick=True, progress=lines.append)
    assert any(
        line.startswith("warm up toy_probe.prefill first, bucket tokens=16") for line in lines
    )
    assert any(line.startswith("parity: toy_probe.prefill last, bucket tokens=8") for line in lines)
