"""Layers of a stage: ids of the model and of the stage, lists aligned by id."""

from __future__ import annotations

import pytest

from ppcgc.runtime.errors import LayerError
from ppcgc.runtime.layers import GlobalLayerId, LayerRange, LocalLayerId


def named(*layers: int) -> list[tuple[GlobalLayerId, str]]:
    return [(GlobalLayerId(layer), f"L{layer}") for layer in layers]


def test_ids_convert_both_ways() -> None:
    stage = LayerRange(30, 60, 90)
    assert stage.to_local(GlobalLayerId(30)) == 0
    assert stage.to_local(GlobalLayerId(59)) == 29
    assert stage.to_global(LocalLayerId(29)) == 59


@pytest.mark.parametrize("layer", [0, 29, 60])
def test_an_id_of_another_stage_is_refused(layer: int) -> None:
    with pytest.raises(LayerError, match=rf"layer {layer} is not in this stage"):
        LayerRange(30, 60, 90).to_local(GlobalLayerId(layer))


@pytest.mark.parametrize("layer", [-1, 30])
def test_a_local_id_past_the_stage_is_refused(layer: int) -> None:
    with pytest.raises(LayerError, match=rf"local layer {layer} is not among the 30 layers"):
        LayerRange(30, 60, 90).to_global(LocalLayerId(layer))


def test_each_layer_stands_at_its_own_id() -> None:
    assert LayerRange(2, 4, 4).align(named(3, 2)) == (None, None, "L2", "L3")


@pytest.mark.parametrize(
    ("layers", "words"),
    [
        ((3,), r"owns 2 layers.*but 1 were found.*missing: \[2\]"),
        ((), r"but 0 were found.*missing: \[2, 3\]"),
        ((2, 3, 1), "layer 1 is not in this stage"),
        ((2, 3, 3), "layer 3 is given twice"),
    ],
)
def test_a_list_that_is_not_the_stage_s_layers_is_refused(
    layers: tuple[int, ...], words: str
) -> None:
    with pytest.raises(LayerError, match=words):
        LayerRange(2, 4, 4).align(named(*layers))
