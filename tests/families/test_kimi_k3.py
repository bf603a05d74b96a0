"""Kimi K3 style: a residual for each block of layers, so that the boundary grows with the cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from family_models import BLOCK_FAMILY, CONTEXT, KV_ROWS, block_model
from hf_family import PATHS, PagedEngine, Pipeline, alone, check_serving, random_ids
from layered_family import captured, handed_between

from generated import kimi_k3


def pipeline_of(model: Any, cuts: Sequence[int], device: str) -> Pipeline:
    return captured(
        kimi_k3, model, BLOCK_FAMILY, cuts=cuts, device=device, kv_rows=KV_ROWS, context=CONTEXT
    )


# blocks of two layers: one begun before layers 1 and 2, two before layers 3 and 4
@pytest.mark.parametrize(
    ("cuts", "blocks"), [((), []), ((2,), [1]), ((1, 3), [1, 2]), ((1, 2, 3, 4), [1, 1, 2, 2])]
)
def test_every_step_equals_the_unsplit_model(
    cuts: Sequence[int], blocks: list[int], device: str
) -> None:
    model = block_model(device)
    pipeline = pipeline_of(model, cuts, device)
    engine = PagedEngine(KV_ROWS, CONTEXT)
    assert check_serving(pipeline, lambda sequence: alone(model, sequence.ids), engine) == PATHS

    batch = engine.prefill([engine.start(ids) for ids in random_ids((9, 2))])
    width = model.config.hidden_size
    assert [
        tuple(boundary.residual.shape) for boundary in handed_between(pipeline, "prefill", batch)
    ] == [(11, begun, width) for begun in blocks]
