"""DeepSeek-V4: streams side by side over the cut, and token ids on later stages that hash them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from family_models import CONTEXT, HYPER_FAMILY, KV_ROWS, hyper_model
from hf_family import COMMON, PATHS, PagedEngine, Pipeline, alone, check_serving, random_ids
from layered_family import captured, handed_between, slot_names

from generated import deepseek_v4


def pipeline_of(model: Any, cuts: Sequence[int], device: str) -> Pipeline:
    return captured(
        deepseek_v4, model, HYPER_FAMILY, cuts=cuts, device=device, kv_rows=KV_ROWS, context=CONTEXT
    )


@pytest.mark.parametrize("cuts", [(), (2,), (1, 3)], ids=["one", "two", "three"])
def test_every_step_equals_the_unsplit_model(cuts: Sequence[int], device: str) -> None:
    model = hyper_model(device, "hrhr")
    pipeline = pipeline_of(model, cuts, device)
    engine = PagedEngine(KV_ROWS, CONTEXT)
    assert check_serving(pipeline, lambda sequence: alone(model, sequence.ids), engine) == PATHS


def test_streams_cross_and_nothing_else(device: str) -> None:
    pipeline = pipeline_of(hyper_model(device, "hrhr"), (2,), device)
    engine = PagedEngine(KV_ROWS, CONTEXT)
    batch = engine.prefill([engine.start(ids) for ids in random_ids((9, 2))])
    (boundary,) = handed_between(pipeline, "prefill", batch)
    assert list(boundary) == ["hidden_states"]
    assert boundary.hidden_states.shape == (11, 2 * COMMON["hidden_size"])


def test_ids_are_a_slot_of_the_first_stage_and_of_those_that_hash(device: str) -> None:
    pipeline = pipeline_of(hyper_model(device, "rrhr"), (1, 2, 3), device)
    for name in ("prefill", "decode"):
        slots = [slot_names(runner) for runner in pipeline.runners[name]]
        assert ["input_ids" in names for names in slots] == [True, False, True, False]
