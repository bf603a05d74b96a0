"""The stages made here, without runners: packed and cut, they are the unsplit model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
import torch
from family_models import (
    BLOCK_FAMILY,
    CONTEXT,
    HYBRID_FAMILY,
    HYPER_FAMILY,
    KV_ROWS,
    SPARSE_FAMILY,
    TOPK,
    Layered,
    block_model,
    hybrid_model,
    hyper_model,
    indexed_model,
    scheduled_model,
    sparse_model,
)
from hf_family import PagedEngine, alone, check_serving
from layered_family import StatefulEngine, bare
from models.sparse_attention import best_positions


def embeds(handed: Any) -> Mapping[str, Any]:
    return {"inputs_embeds": handed}


def streams(handed: Any) -> Mapping[str, Any]:
    return {"streams": handed}


def keys(handed: Any) -> Mapping[str, Any]:
    named = {key: value for key, value in handed.items() if key != "hidden_states"}
    return {"inputs_embeds": handed["hidden_states"]} | named


CASES: dict[str, tuple[Layered, Callable[[str], Any], Callable[[Any], Mapping[str, Any]]]] = {
    "glm-dsa": (
        SPARSE_FAMILY,
        lambda device: sparse_model(device, ("full", "shared", "shared", "full")),
        keys,
    ),
    "deepseek-v3.2-schedule": (
        SPARSE_FAMILY,
        lambda device: scheduled_model(device, freq=2, offset=1),
        keys,
    ),
    "deepseek-v3.2": (SPARSE_FAMILY, indexed_model, keys),
    "deepseek-v4": (HYPER_FAMILY, lambda device: hyper_model(device, "hrhr"), streams),
    "kimi-k3": (BLOCK_FAMILY, block_model, keys),
    "qwen3-next": (HYBRID_FAMILY, lambda device: hybrid_model(device, "rara"), embeds),
}


@pytest.mark.parametrize("cuts", [(), (2,), (1, 3)], ids=["one", "two", "three"])
@pytest.mark.parametrize("family", list(CASES))
def test_cut_and_packed_equals_the_unsplit_model(
    family: str, cuts: Sequence[int], device: str
) -> None:
    layered, make_model, later = CASES[family]
    model = make_model(device)
    pipeline = bare(
        model,
        layered,
        cuts=cuts,
        later=later,
        ids_everywhere=family == "deepseek-v4",
        state_rows=family == "qwen3-next",
        device=device,
    )
    make_engine = StatefulEngine if family == "qwen3-next" else PagedEngine
    engine = make_engine(KV_ROWS, CONTEXT)
    check_serving(pipeline, lambda sequence: alone(model, sequence.ids), engine)


class _Reach:
    """Three queries over four candidates at positions 5, 6, 7, 8."""

    allowed = torch.tensor([[1, 0, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]).bool()
    owned = torch.ones(3).bool()
    positions = torch.tensor([[5, 6, 7, 8]])

    def candidates(self, cache: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError

    def chosen(self, positions: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError


def test_picks_are_positions_and_minus_one_where_there_are_fewer() -> None:
    scores = torch.tensor([[1.0, 9, 9, 9], [1.0, 3, 2, 9], [4.0, 3, 2, 1]])
    picked = best_positions(scores, _Reach(), topk=TOPK)
    assert picked.tolist() == [
        [5, -1, -1, -1, -1, -1],
        [6, 7, 5, -1, -1, -1],
        [5, 6, 7, 8, -1, -1],
    ]
    assert best_positions(scores, _Reach(), topk=2).tolist() == [[5, -1], [6, 7], [5, 6]]
    assert picked.dtype == torch.int32
