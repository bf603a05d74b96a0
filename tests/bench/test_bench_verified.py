"""The measured runners pass their own verification; caches are buffers and declared state there."""

from __future__ import annotations

import pytest
import torch

from benchmarks.pipeline_stage import Part
from benchmarks.shape import TINY
from benchmarks.verified import RUNNERS, measured, pipeline_of_three
from ppcgc import runtime as rt
from ppcgc.runtime.verification import Verdict


@pytest.mark.parametrize("kind", [RUNNERS.index("Prefill"), RUNNERS.index("PrefillOnDevice")])
def test_a_measured_runner_passes(kind: int) -> None:
    found = rt.verify(measured()[kind], quick=True)
    assert found.ok, str(found)
    assert {result.verdict for result in found.results} == {Verdict.PASSED}


def test_the_measured_layers_stand_in_the_middle() -> None:
    stages = pipeline_of_three(TINY, torch.device("cpu"))
    assert [(stage.start_layer, stage.end_layer) for stage in stages] == [(0, 1), (1, 3), (3, 4)]
    assert [isinstance(stage, Part) and stage.last for stage in stages] == [False, False, True]


def test_a_buffer_that_is_no_state_is_still_found() -> None:
    subject = measured()[0]
    last = subject.runners[-1]
    last.model.register_buffer("steps", torch.zeros(()), persistent=False)
    own = type(last.model).forward

    def counting(*args: object, **given: object) -> object:
        last.model.steps.add_(1)
        return own(last.model, *args, **given)

    last.model.forward = counting
    purity = rt.verify(subject, quick=True, checks=["purity"]).results[0]
    assert purity.verdict is Verdict.FAILED
    assert all("steps" in finding.subject for finding in purity.findings), purity.findings
