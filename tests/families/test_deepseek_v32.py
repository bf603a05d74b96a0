"""DeepSeek-V3.2 and GLM: positions that one layer picks and the next reuses, over a cut or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from family_models import (
    CONTEXT,
    KV_ROWS,
    SPARSE_FAMILY,
    TOPK,
    indexed_model,
    scheduled_model,
    sparse_model,
)
from hf_family import PATHS, PagedEngine, Pipeline, alone, check_serving, random_ids
from layered_family import captured, handed_between

from generated import deepseek_v32, glm_dsa
from ppcgc.runtime.errors import OutputError


def checked(package: Any, model: Any, cuts: Sequence[int], device: str) -> Pipeline:
    """The captured stages, after prompts and steps that were each the unsplit model's."""
    pipeline = captured(
        package, model, SPARSE_FAMILY, cuts=cuts, device=device, kv_rows=KV_ROWS, context=CONTEXT
    )
    engine = PagedEngine(KV_ROWS, CONTEXT)
    assert check_serving(pipeline, lambda sequence: alone(model, sequence.ids), engine) == PATHS
    return pipeline


def handed(pipeline: Pipeline, lengths: Sequence[int]) -> list[Any]:
    """What a prefill of prompts with these lengths hands over at each cut."""
    engine = PagedEngine(KV_ROWS, CONTEXT)
    batch = engine.prefill([engine.start(ids) for ids in random_ids(lengths)])
    return handed_between(pipeline, "prefill", batch)


# layers 1 and 3 reuse
@pytest.mark.parametrize(("cuts", "crossing"), [((2,), [False]), ((1, 3), [True, True])])
def test_reuse_on_every_second_layer(
    cuts: Sequence[int], crossing: list[bool], device: str
) -> None:
    pipeline = checked(deepseek_v32, scheduled_model(device, freq=2, offset=1), cuts, device)
    assert ["topk_indices" in boundary for boundary in handed(pipeline, (9, 2))] == crossing


def test_an_indexer_on_every_layer(device: str) -> None:
    pipeline = checked(deepseek_v32, indexed_model(device), (1, 3), device)
    assert [list(boundary) for boundary in handed(pipeline, (9, 2))] == [["hidden_states"]] * 2


# layers 1 and 2 reuse; what crosses before layer 2 was received before layer 1
@pytest.mark.parametrize(
    ("cuts", "crossing"), [((), []), ((2,), [True]), ((1, 2, 3), [True, True, False])]
)
def test_reuse_by_a_list_of_the_config(
    cuts: Sequence[int], crossing: list[bool], device: str
) -> None:
    model = sparse_model(device, ("full", "shared", "shared", "full"))
    pipeline = checked(glm_dsa, model, cuts, device)
    boundaries = handed(pipeline, (9, 2))
    assert ["topk_indices" in boundary for boundary in boundaries] == crossing
    for boundary in boundaries[:2]:
        picked = boundary["topk_indices"]
        assert picked.dtype == torch.int32
        assert picked.shape == (11, TOPK)
        # a prompt's first token sees itself, its second two positions
        assert sorted(picked[0].tolist()) == [-1] * (TOPK - 1) + [0]
        assert sorted(picked[10].tolist()) == [-1] * (TOPK - 2) + [0, 1]


def test_rows_of_padding_are_minus_one_whatever_the_sender_left(device: str) -> None:
    model = sparse_model(device, ("full", "shared", "shared", "full"))
    pipeline = checked(glm_dsa, model, (1,), device)
    handed(pipeline, (9, 1, 14, 20, 3))  # 64 rows full of picks, then 9 of 16
    handed(pipeline, (2, 7))
    later = pipeline.runners["prefill"][1]
    rows = later.table[later.last_step.choice.padded].boundary["topk_indices"]
    assert rows.shape == (16, TOPK)
    assert rows[9:].eq(-1).all()
    assert rows[:9].ge(0).any()


def test_a_config_that_disagrees_with_the_layers_is_refused_at_capture(device: str) -> None:
    model = sparse_model(device, ("full", "shared", "shared", "full"))
    model.config.indexer_types = ["full"] * 4  # then nothing would cross before layer 1
    with pytest.raises(OutputError, match="topk_indices"):
        checked(glm_dsa, model, (1,), device)
