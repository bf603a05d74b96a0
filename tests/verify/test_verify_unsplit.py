"""Planted: stages that are each consistent, and together not the model that was cut."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from examples import verify_llama
from generated import llama
from ppcgc.runtime import Subject, verify
from ppcgc.runtime.errors import BuildError
from ppcgc.runtime.verification import CheckResult, Verdict

NOT_THE_MODEL = "the stages one after another are not the unsplit model"


def runners(name: str, stages: int) -> Any:
    return verify_llama.residual_runners(llama, "cpu", stages)[name == "decode"]


def subject(name: str, stages: list[Any], unsplit: Any) -> Subject:
    maker = verify_llama.decode_batch if name == "decode" else verify_llama.prefill_batch
    return Subject(runners=stages, batches=maker, unsplit=unsplit)


def parity(name: str, stages: list[Any], unsplit: Any) -> CheckResult:
    return verify(subject(name, stages, unsplit), checks=["parity"], quick=True)["parity"]


@pytest.mark.parametrize(("name", "stages"), [("prefill", 2), ("decode", 2), ("decode", 3)])
def test_stages_that_are_the_model(name: str, stages: int) -> None:
    (whole,) = runners(name, 1)
    found = parity(name, runners(name, stages), whole)
    assert [str(finding) for finding in found.findings] == []
    assert "steps of all stages equal the unsplit model" in found.evidence


class LosesTheResidual(nn.Module):
    """A later stage that goes on from the hidden states alone."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        self.start_layer, self.end_layer = model.start_layer, model.end_layer

    def forward(self, **given: Any) -> Any:
        handed = given["pp_proxy_tensors"]
        residual = torch.zeros_like(handed["residual"])
        hidden = {"hidden_states": handed["hidden_states"], "residual": residual}
        return self.model(**{**given, "pp_proxy_tensors": hidden})


def stage_of(runner: Any) -> Any:
    """The layers that a runner's model runs."""
    model = getattr(runner.model, "__self__", runner.model)
    return model.stage


def test_a_later_stage_that_loses_a_key() -> None:
    stages = runners("decode", 2)
    stages[1].model = LosesTheResidual(stages[1].model)
    (whole,) = runners("decode", 1)
    assert parity("decode", stages, None).verdict is Verdict.PASSED  # alone it is consistent
    assert NOT_THE_MODEL in str(parity("decode", stages, whole).findings[0])


def test_a_stage_that_runs_its_layers_in_another_order() -> None:
    stages = runners("decode", 2)
    layers = stage_of(stages[1]).layers
    layers["2"].mlp, layers["3"].mlp = layers["3"].mlp, layers["2"].mlp
    (whole,) = runners("decode", 1)
    found = parity("decode", stages, whole)
    assert NOT_THE_MODEL in str(found.findings[0])
    assert "output hidden_states" in str(found.findings[0])


def test_state_that_does_not_line_up_is_said() -> None:
    (whole,) = runners("decode", 1)
    kv = whole.state.kv
    whole.state = llama.State(kv=kv[:-1])
    (finding,) = parity("decode", runners("decode", 2), whole).findings
    assert "its 7 tensors are not the 8 of the stages" in finding.what


def test_an_unsplit_runner_with_other_layers_is_refused() -> None:
    first, last = runners("prefill", 2)
    with pytest.raises(BuildError, match=r"layers \[0, 2\]; the stages are .* layers \[0, 4\]"):
        subject("prefill", [first, last], first)
    (decode,) = runners("decode", 1)
    with pytest.raises(BuildError, match="give that runner in one stage"):
        subject("prefill", [first, last], decode)
