"""FlashInfer's paged wrappers behind the hooks of `llama_flashinfer`, captured once and re-planned.

Runs in bfloat16 against the unsplit model in float32, on a GPU with FlashInfer installed. Its
kernels are compiled at first use, for about two minutes; FLASHINFER_WORKSPACE_BASE says where.
On the CPU the same test runs with the stand-in, which shows that its tolerance fits bfloat16.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import util
from typing import Any

import pytest
import torch
from hf_family import alone
from paged_family import Paged, build, llama_config, sequences_of
from planned_library import PlannedLibrary
from torch import Tensor
from transformers import AutoModelForCausalLM

from examples.serving import Sequence as PagedSequence
from ppcgc.hf.probe import randomize

# heads as the library's kernels take them
SIZES = {
    "hidden_size": 256,
    "intermediate_size": 256,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 64,
}
PLAN_BYTES = 128 << 20  # what the library recommends
# relative, for bfloat16 through three layers, which gives 0.012; a request without its first token
# gives 0.3 and more
WEIGHT_STD, TOLERANCE = 0.05, 0.03


@pytest.fixture(
    scope="module",
    params=[
        "stand-in",
        pytest.param(
            "flashinfer",
            marks=[
                pytest.mark.gpu,
                pytest.mark.timeout(900),
                pytest.mark.filterwarnings("ignore"),  # the library's own, as it is imported
            ],
        ),
    ],
)
def served(request: pytest.FixtureRequest) -> tuple[Any, Paged]:
    """The unsplit model in float32, and two stages in bfloat16 with the same weights."""
    device, library = "cpu", PlannedLibrary() if request.param == "stand-in" else None
    if request.param == "flashinfer":
        if not torch.cuda.is_available():
            pytest.skip("needs a CUDA device")
        if util.find_spec("flashinfer") is None:
            pytest.skip("needs flashinfer_python and apache_tvm_ffi")
        device = "cuda"
    model = AutoModelForCausalLM.from_config(
        llama_config(**SIZES), attn_implementation="eager", dtype=torch.float32
    ).eval()
    randomize(model, seed=7, std=WEIGHT_STD)
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(weight.bfloat16())  # what both compute with
    model = model.to(device)
    made = build(
        model, library, stages=2, device=device, plan_bytes=PLAN_BYTES, dtype=torch.bfloat16
    )
    return model, made


def check(made: Paged, exact: Any, sequences: Sequence[PagedSequence], kind: str) -> None:
    """One replay over the sequences, against the unsplit model one sequence at a time."""
    logits = made.serve(sequences, kind)
    line = made.prefill if kind == "prefill" else made.decode
    assert {runner.last_step.path for runner in line} == {"replay"}
    assert worst(logits, exact, sequences) < TOLERANCE


def worst(logits: Tensor, exact: Any, sequences: Sequence[PagedSequence]) -> float:
    """The largest relative error of a sequence's logits."""
    expected = torch.stack([alone(exact, s.ids) for s in sequences])
    return float(((logits.float() - expected).norm(dim=1) / expected.norm(dim=1)).max())


def test_the_tolerance_shows_a_lost_token(served: tuple[Any, Paged]) -> None:
    exact, _ = served
    sequences = sequences_of([60, 20, 5], seed=3)
    lost = torch.stack([alone(exact, s.ids[1:]) for s in sequences])
    assert worst(lost[:1], exact, sequences[:1]) > 5 * TOLERANCE
    assert worst(lost, exact, sequences) > 5 * TOLERANCE


@pytest.mark.parametrize("lengths", [[64], [47], [20, 27], [1, 2, 3, 40], [5] * 16], ids=str)
def test_prefill_is_planned_again_for_each_batch(
    served: tuple[Any, Paged], lengths: list[int]
) -> None:
    exact, made = served
    sequences = sequences_of(lengths, seed=sum(lengths))
    check(made, exact, sequences, "prefill")
    for sequence in sequences:
        made.pages.release(sequence)


@pytest.mark.parametrize("lengths", [[3], [16, 31], [9, 1, 33, 16, 20], [60] * 9], ids=str)
def test_decode_is_planned_again_for_each_step(
    served: tuple[Any, Paged], lengths: list[int]
) -> None:
    exact, made = served
    sequences = sequences_of(lengths, seed=sum(lengths))
    for first in range(0, len(sequences), 2):
        check(made, exact, sequences[first : first + 2], "prefill")
    for step in range(3):
        for number, sequence in enumerate(sequences):
            sequence.ids.append((step * 7 + number) % 90 + 1)
        check(made, exact, sequences, "decode")
    assert made.decode[0].report().hooks[0].plans > 0
    for sequence in sequences:
        made.pages.release(sequence)


def test_an_eager_step_makes_a_plan_of_its_own(served: tuple[Any, Paged]) -> None:
    exact, made = served
    sequences = sequences_of([9, 20], seed=5)
    logits = made.serve(sequences, "prefill", eager=True)
    assert worst(logits, exact, sequences) < TOLERANCE
    for sequence in sequences:
        made.pages.release(sequence)
