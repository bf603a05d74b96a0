"""What a build refuses: layer ranges, dims, state, a forward that does not fit."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from ppcgc.runtime.abi import ABI, require_abi
from ppcgc.runtime.dims import (
    build_int,
    ceil_div,
    check_shape,
    config_int,
    config_length,
    floor_div,
    remainder,
)
from ppcgc.runtime.errors import (
    AbiMismatchError,
    BuildError,
    DimError,
    ForwardSignatureError,
    LayerError,
    StateError,
)
from ppcgc.runtime.layers import (
    GlobalLayerId,
    LayerRange,
    LocalLayerId,
    check_model_range,
    declared_ranges,
    even_ranges,
    stage_of,
)
from ppcgc.runtime.place import Place, check_place
from ppcgc.runtime.signature import check_forward
from ppcgc.runtime.state import check_state

CPU = torch.device("cpu")


def ids(*layers: int) -> list[tuple[GlobalLayerId, str]]:
    """Layers that state their own ids."""
    return [(GlobalLayerId(layer), f"L{layer}") for layer in layers]


# ---------------------------------------------------------------- ranges


@pytest.mark.parametrize("bounds", [(2, 2), (3, 2), (-1, 2), (0, 5), (4, 5)])
def test_a_range_is_a_non_empty_part_of_the_model(bounds: tuple[int, int]) -> None:
    with pytest.raises(LayerError, match="not a non-empty part of the 4 layers"):
        LayerRange(*bounds, 4)


@pytest.mark.parametrize("bad", ["2", 2.0, None, True])
@pytest.mark.parametrize("place", ["start", "end", "count"])
def test_bounds_are_integers(bad: Any, place: str) -> None:
    bounds: dict[str, Any] = {"start": 0, "end": 2, "count": 4, place: bad}
    with pytest.raises(LayerError, match=f"{place} is {bad!r}"):
        LayerRange(**bounds)


def test_the_one_place_where_ids_are_converted() -> None:
    owned = LayerRange(30, 60, 80)
    assert owned.to_local(GlobalLayerId(30)) == 0
    assert owned.to_global(LocalLayerId(29)) == 59
    assert [owned.to_global(owned.to_local(layer)) for layer in owned.layers] == list(range(30, 60))
    for foreign in (29, 60):
        with pytest.raises(LayerError, match=f"layer {foreign} is not in this stage"):
            owned.to_local(GlobalLayerId(foreign))
    for past in (-1, 30):
        with pytest.raises(LayerError, match=f"local layer {past}"):
            owned.to_global(LocalLayerId(past))


def test_alignment_is_by_id_and_not_by_position() -> None:
    owned = LayerRange(2, 4, 5)
    assert owned.align(ids(3, 2)) == (None, None, "L2", "L3", None)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ((3,), r"2 layers, \[2, 4\) of 4, but 1 were found; missing: \[2\]"),
        ((), r"missing: \[2, 3\]"),
        ((1, 2, 3), "layer 1 is not in this stage"),
        ((2, 3, 4), "layer 4 is not in this stage"),
        ((2, 2), "layer 2 is given twice"),
    ],
)
def test_a_list_that_is_not_the_stage_s_is_refused(found: tuple[int, ...], message: str) -> None:
    with pytest.raises(LayerError, match=message):
        LayerRange(2, 4, 4).align(ids(*found))


@given(st.integers(1, 200), st.integers(1, 40))
def test_even_ranges_cover_the_layers_in_order(count: int, stages: int) -> None:
    if count < stages:
        with pytest.raises(LayerError, match="cannot be spread"):
            even_ranges(count, stages)
        return
    ranges = even_ranges(count, stages)
    assert [layer for owned in ranges for layer in owned.layers] == list(range(count))
    sizes = [len(owned) for owned in ranges]
    assert len(sizes) == stages
    assert max(sizes) - min(sizes) <= 1
    assert sizes == sorted(sizes, reverse=True)  # the first stages get the remainder


def test_even_ranges_by_hand() -> None:
    assert [(r.start, r.end) for r in even_ranges(30, 4)] == [(0, 8), (8, 16), (16, 23), (23, 30)]


def test_declared_ranges_end_where_the_model_does() -> None:
    ranges = declared_ranges(4, [(0, 1), (1, 4)])
    assert stage_of(ranges, 1, 2) == LayerRange(1, 4, 4)
    for count in (3, 5):
        with pytest.raises(LayerError, match=str(count)):
            declared_ranges(count, [(0, 1), (1, 4)])
    with pytest.raises(LayerError, match="has 2 stages, the build asks for 3"):
        stage_of(ranges, 0, 3)
    for stage in (-1, 2):
        with pytest.raises(LayerError, match=f"stage {stage} of 2"):
            stage_of(ranges, stage, 2)


# ---------------------------------------------------------------- the model's own range


class Staged(nn.Module):
    """A model that may know its layers."""

    def __init__(self, **bounds: Any) -> None:
        super().__init__()
        for name, bound in bounds.items():
            setattr(self, name, bound)

    def forward(self, *, x: Tensor) -> Tensor:
        return x


def test_the_model_s_range_is_compared_with_the_build_s() -> None:
    owned = LayerRange(0, 15, 30)
    check_model_range(Staged(), owned)
    check_model_range(Staged(start_layer=0, end_layer=15), owned)
    check_model_range(Staged(start_layer=0, end_layer=15).forward, owned)
    for model in (
        Staged(start_layer=0, end_layer=16),
        Staged(start_layer=0, end_layer=16).forward,
    ):
        with pytest.raises(LayerError, match=r"model's layers are \[0, 16\), .* \[0, 15\)"):
            check_model_range(model, owned)


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"start_layer": 0}, "start_layer but no end_layer"),
        ({"end_layer": 15}, "end_layer but no start_layer"),
        ({"start_layer": 0, "end_layer": None}, "start_layer but no end_layer"),
        ({"start_layer": 0, "end_layer": "15"}, "end_layer is '15'"),
        ({"start_layer": False, "end_layer": 15}, "start_layer is False"),
        ({"start_layer": 0.0, "end_layer": 15}, "start_layer is 0.0"),
    ],
)
def test_half_a_range_or_no_integer_is_refused(bounds: dict[str, Any], message: str) -> None:
    with pytest.raises(LayerError, match=message):
        check_model_range(Staged(**bounds), LayerRange(0, 15, 30))


@pytest.mark.parametrize(
    ("place", "bounds"),
    [
        (Place.ONLY, (0, 4)),
        (Place.FIRST, (0, 2)),
        (Place.MIDDLE, (1, 3)),
        (Place.LAST, (2, 4)),
    ],
)
def test_a_range_stands_at_one_place(place: Place, bounds: tuple[int, int]) -> None:
    owned = LayerRange(*bounds, 4)
    check_place(place, owned, "Runner")
    for other in set(Place) - {place}:
        with pytest.raises(BuildError, match=f"Runner is for the {other.value} stage"):
            check_place(other, owned, "Runner")


# ---------------------------------------------------------------- dims


def test_config_integers() -> None:
    config = SimpleNamespace(hidden_size=8, text={"heads": 2}, none=None, zero=0, rate=0.5)
    assert config_int(config, "hidden_size") == 8
    assert config_int(config, "text.heads") == 2
    assert config_int({"a": SimpleNamespace(b=3)}, "a.b") == 3
    for path, message in [
        ("vocab", "config.vocab: the config has no 'vocab'"),
        ("text.vocab", "config.text.vocab: the config has no 'vocab'"),
        ("none", "config.none: its 'none' is None"),
        ("zero", "config.zero is 0; a size must be at least 1"),
        ("rate", "config.rate is 0.5; a size must be an integer"),
    ]:
        with pytest.raises(DimError, match=message):
            config_int(config, path)


def test_lengths_of_a_config() -> None:
    config = SimpleNamespace(kinds=["full", "sliding"], text={"pattern": "M*M"}, none=[], two=2)
    assert config_length(config, "kinds") == 2
    assert config_length(config, "text.pattern") == 3
    for path, message in [
        ("other", "config.other: the config has no 'other'"),
        ("none", "the length of config.none is 0; a size must be at least 1"),
        ("two", "config.two is 2, not a list or a string"),
    ]:
        with pytest.raises(DimError, match=message):
            config_length(config, path)


@pytest.mark.parametrize("bad", [0, -1, True, 1.0, "1", None])
def test_build_integers(bad: Any) -> None:
    assert build_int("kv_rows", 1) == 1
    with pytest.raises(DimError, match="kv_rows is"):
        build_int("kv_rows", bad)


def test_divisions_by_zero_show_both_numbers() -> None:
    assert (floor_div(7, 2), ceil_div(7, 2), remainder(7, 2)) == (3, 4, 1)
    for divide, text in (
        (floor_div, r"7 // 0"),
        (ceil_div, r"ceil\(7 / 0\)"),
        (remainder, r"7 % 0"),
    ):
        with pytest.raises(DimError, match=f"{text}: the divisor is zero"):
            divide(7, 0)


def test_negative_extents() -> None:
    assert check_shape("x", (0, 3)) == (0, 3)
    with pytest.raises(DimError, match=r"x: shape \[2, -1\] has a negative extent"):
        check_shape("x", (2, -1))


# ---------------------------------------------------------------- state


def test_state_tensors_have_the_declared_rows_on_the_device() -> None:
    check_state("kv", [torch.zeros(4, 2), torch.zeros(4)], 4, CPU)
    wrong: list[tuple[Any, str]] = [
        (torch.zeros(5, 2), r"kv\[1\] has shape \[5, 2\], 5 rows; the spec says 4 .*a.yaml:7"),
        (torch.tensor(1.0), r"kv\[1\] has shape \[\], no rows; the spec says 4"),
        ([0.0] * 4, r"kv\[1\] is a list, not a tensor"),
        (torch.zeros(4, device="meta"), r"kv\[1\] is on meta, the stage is on cpu"),
    ]
    for tensor, message in wrong:
        with pytest.raises(StateError, match=message):
            check_state("kv", [torch.zeros(4), tensor], 4, CPU, "a.yaml:7")


# ---------------------------------------------------------------- the forward


def takes_all(*, x: Tensor, y: Tensor | None = None) -> Tensor:
    return x


def takes_any(**values: Any) -> Any:
    return values


def takes_positions(x: Tensor, /, y: Tensor) -> Tensor:
    return x


def needs_more(*, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    return x


class Uncallable:
    """A stage that only has a forward."""

    start_layer, end_layer = 0, 2

    def forward(self, *, x: Tensor, y: Tensor) -> Tensor:
        return x


@pytest.mark.parametrize(
    "model", [takes_all, takes_any, functools.partial(needs_more, z=torch.ones(1))]
)
def test_a_forward_that_takes_the_keywords_is_called_itself(model: Callable[..., Any]) -> None:
    assert check_forward(model, ("x", "y"), "Runner") is model


def test_a_model_without_call_is_called_by_its_forward() -> None:
    model = Uncallable()
    forward = check_forward(model, ("x", "y"), "Runner")
    assert forward(x=1, y=2) == 1
    with pytest.raises(LayerError):  # and its own range is still seen
        check_model_range(forward, LayerRange(0, 3, 3))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (takes_positions, r"takes_positions takes \(x, y\); it lacks x, which the spec"),
        (needs_more, "it needs z, which the spec does not bind"),
        (Staged(), r"Staged.forward takes \(x\); it lacks y"),
        (3, "the model is a int, no callable"),
        (min, "the signature of <built-in function min> cannot be read"),
    ],
)
def test_a_forward_that_does_not_fit_is_named(model: Any, message: str) -> None:
    with pytest.raises(ForwardSignatureError, match=f"Runner: .*{message}"):
        check_forward(model, ("x", "y"), "Runner")


# ---------------------------------------------------------------- generated code of another time


def test_the_contract_between_generated_code_and_runtime_is_one_number() -> None:
    require_abi(ABI, "generated.llama")
    with pytest.raises(AbiMismatchError, match="run `ppcgc generate` with the installed ppcgc"):
        require_abi(ABI - 1, "generated.llama")
    with pytest.raises(AbiMismatchError, match="install the ppcgc that generated it"):
        require_abi(ABI + 1, "generated.llama")


@pytest.mark.parametrize("value", [1.0, "1", None, True])
def test_a_stage_number_that_is_no_integer(value: Any) -> None:
    with pytest.raises(LayerError, match=f"of is {value!r}; it must be an integer"):
        even_ranges(4, value)
    with pytest.raises(LayerError, match=f"stage is {value!r}; it must be an integer"):
        stage_of(even_ranges(4, 2), value, 2)
