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


def pipeline_of(package: Any, model: Any, cuts: Sequence[int], device: str) -> Pipeline:
    return captured(
        package, model, SPARSE_FAMILY, cuts=cuts, device=device, kv_rows=KV_ROWS, context=CONTEXT
    )


def check(package: Any, model: Any, cuts: Sequence[int], device: str) -> None:
    pipeline = pipeline_of(package, model, cuts, device)
    engine = PagedEngine(KV_ROWS, CONTEXT)
    assert check_serving(pipeline, lambda sequence: alone(model, sequence.ids), engine) == PATHS


@pytest.mark.parametrize("cuts", [(), (2,), (1, 3)], ids=["one", "two", "three"])
def test_reuse_on_every_second_layer(cuts: Sequence[int], device: str) -> None:
    # layers 1 and 3 reuse: cut before 2 nothing crosses, cut before 1 and 3 it does
    check(deepseek_v32, scheduled_model(device, freq=2, offset=1), cuts, device)


def test_an_indexer_on_every_layer(device: str) -> None:
    check(deepseek_v32, indexed_model(device), (1, 3), device)


@pytest.mark.parametrize("cuts", [(), (2,), (1, 3)], ids=["one", "two", "three"])
def test_reuse_by_a_list_of_the_config(cuts: Sequence[int], device: str) -> None:
    # cut before 1 and 2 it crosses, before 3 not; before 2 what crosses was itself received
    check(glm_dsa, sparse_model(device, ("full", "shared", "shared", "full")), cuts, device)


@pytest.mark.parametrize(
    ("cuts", "crossing"),
    [((1,), [True]), ((2,), [True]), ((3,), [False]), ((1, 2, 3), [True, True, False])],
)
def test_picks_cross_only_where_the_next_stage_reuses_them(
    cuts: Sequence[int], crossing: list[bool], device: str
) -> None:
    model = sparse_model(device, ("full", "shared", "shared", "full"))
    pipeline = pipeline_of(glm_dsa, model, cuts, device)
    engine = PagedEngine(KV_ROWS, CONTEXT)
    batch = engine.prefill([engine.start(ids) for ids in random_ids((9, 2))])
    handed = handed_between(pipeline, "prefill", batch)
    assert ["topk_indices" in boundary for boundary in handed] == crossing
    for boundary in handed:
        if "topk_indices" in boundary:
            picked = boundary["topk_indices"]
            assert picked.dtype == torch.int32
            assert picked.shape == (11, TOPK)
            # a prompt's first token sees itself, its second two positions
            assert sorted(picked[0].tolist()) == [-1] * (TOPK - 1) + [0]
            assert sorted(picked[10].tolist()) == [-1] * (TOPK - 2) + [0, 1]


def test_rows_of_padding_are_minus_one_whatever_the_sender_left(device: str) -> None:
    model = sparse_model(device, ("full", "shared", "shared", "full"))
    pipeline = pipeline_of(glm_dsa, model, (2,), device)
    engine = PagedEngine(KV_ROWS, CONTEXT)
    for lengths in ((9, 1, 14, 20, 3), (2, 7)):  # 64 rows full of picks, then 9 of 16
        batch = engine.prefill([engine.start(ids) for ids in random_ids(lengths)])
        handed_between(pipeline, "prefill", batch)
    later = pipeline.runners["prefill"][1]
    bucket = later.table[later.last_step.choice.padded]
    assert bucket.boundary["topk_indices"].shape == (16, TOPK)
    assert bucket.boundary["topk_indices"][9:].eq(-1).all()
    assert bucket.boundary["topk_indices"][:9].ge(0).any()
