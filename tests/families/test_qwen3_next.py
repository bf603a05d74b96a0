"""Qwen3-Next: a recurrent state beside the KV cache, which no row of padding may touch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from family_models import CONTEXT, HYBRID_FAMILY, KV_ROWS, SSM_ROWS, hybrid_model
from hf_family import PATHS, POISON, alone, check_serving, random_ids
from layered_family import StatefulEngine, StatefulPipeline, bare, captured, slot_names
from torch import Tensor

from generated import qwen3_next
from ppcgc.runtime.kinds import census


def pipeline_of(model: Any, cuts: Sequence[int], device: str) -> StatefulPipeline:
    pipeline = captured(
        qwen3_next,
        model,
        HYBRID_FAMILY,
        cuts=cuts,
        device=device,
        kv_rows=KV_ROWS,
        context=CONTEXT,
        ssm_rows=SSM_ROWS,
    )
    states = [t for runner in pipeline.runners["decode"] for t in runner.state.ssm]
    return StatefulPipeline(runners=pipeline.runners, states=states)


# layers 0 and 2 are recurrent; a stage has the rows of their state when it owns one of them
@pytest.mark.parametrize(
    ("cuts", "with_rows"),
    [((), [True]), ((2,), [True, True]), ((1, 2, 3), [True, False, True, False])],
    ids=["one", "two", "four"],
)
def test_every_step_equals_the_unsplit_model(
    cuts: Sequence[int], with_rows: list[bool], device: str
) -> None:
    model = hybrid_model(device, "rara")
    pipeline = pipeline_of(model, cuts, device)
    engine = StatefulEngine(KV_ROWS, CONTEXT)
    assert check_serving(pipeline, lambda sequence: alone(model, sequence.ids), engine) == PATHS
    for runners in pipeline.runners.values():
        assert ["state_rows" in slot_names(runner) for runner in runners] == with_rows


def test_padded_rows_touch_no_live_state(device: str) -> None:
    """33 tokens of two sequences in a bucket of 64: each state is what it is alone."""
    model = hybrid_model(device, "raar")
    pipeline = pipeline_of(model, (2,), device)
    engine = StatefulEngine(KV_ROWS, CONTEXT)
    sequences = [engine.start(ids) for ids in random_ids((20, 13))]
    pipeline.step("prefill", engine.prefill(sequences))
    assert pipeline.path("prefill") == "replay 33→64"
    check_states(model, pipeline.states, sequences, device)

    others = [engine.start(ids) for ids in random_ids((4,), seed=8)]
    pipeline.step("prefill", engine.prefill(others))
    for sequence in (*sequences, *others):
        sequence.ids.append(5)
    pipeline.step("decode", engine.decode([*sequences, *others]))
    assert pipeline.path("decode") == "replay 3→4"
    check_states(model, pipeline.states, [*sequences, *others], device)


def check_states(
    model: Any, states: Sequence[Tensor], sequences: Sequence[Any], device: str
) -> None:
    """Rows of sequences hold what each alone leaves behind; rows of nobody were never written."""
    for sequence in sequences:
        engine = StatefulEngine(KV_ROWS, CONTEXT)
        single = bare(model, HYBRID_FAMILY, cuts=(), later=dict, state_rows=True, device=device)
        only = engine.start(sequence.ids)
        single.step("prefill", engine.prefill([only]))
        for together, apart in zip(states, single.state["ssm"], strict=True):
            torch.testing.assert_close(
                together[sequence.state_row], apart[only.state_row], atol=1e-5, rtol=1e-5
            )
    owned = {0, *(sequence.state_row for sequence in sequences)}
    for together in states:
        for row in set(range(SSM_ROWS)) - owned:
            assert together[row].eq(POISON).all()


def test_layers_are_counted_by_kind(device: str) -> None:
    """Three recurrent layers to one with attention: a stage's count is of its own layers alone."""
    model = hybrid_model(device, "rrra")
    sizes = {"kv_rows": KV_ROWS, "context": CONTEXT, "ssm_rows": SSM_ROWS}
    dims = qwen3_next.Dims.from_config(model.config, **sizes)
    assert dims.kinds.recurrent == {0, 1, 2}
    counts = [
        census(qwen3_next.stage_layers(dims, stage=i, of=2), {"r": dims.kinds.recurrent})
        for i in (0, 1)
    ]
    assert counts == [{"r": 2}, {"r": 1}]
