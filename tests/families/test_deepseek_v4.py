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


# layers 0 and 2 hash; a stage has the ids when it is the first or owns one of them
@pytest.mark.parametrize(
    ("cuts", "with_ids"),
    [((), [True]), ((2,), [True, True]), ((1, 2, 3), [True, False, True, False])],
    ids=["one", "two", "four"],
)
def test_every_step_equals_the_unsplit_model(
    cuts: Sequence[int], with_ids: list[bool], device: str
) -> None:
    model = hyper_model(device, "hrhr")
    pipeline = pipeline_of(model, cuts, device)
    engine = PagedEngine(KV_ROWS, CONTEXT)
    assert check_serving(pipeline, lambda sequence: alone(model, sequence.ids), engine) == PATHS

    for runners in pipeline.runners.values():
        assert ["input_ids" in slot_names(runner) for runner in runners] == with_ids
    batch = engine.prefill([engine.start(ids) for ids in random_ids((9, 2))])
    for boundary in handed_between(pipeline, "prefill", batch):
        assert list(boundary) == ["hidden_states"]
        assert boundary.hidden_states.shape == (11, 2 * COMMON["hidden_size"])
