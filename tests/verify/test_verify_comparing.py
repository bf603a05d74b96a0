"""How near two tensors are: differences are held against ordinary values, never a sentinel's."""

from __future__ import annotations

import pytest
import torch

from ppcgc.runtime.verification.comparing import apart, differing, rows_apart, scale_of

LOWEST = torch.finfo(torch.float32).min
SENTINELS = [float("-inf"), float("inf"), LOWEST, -1e9, -1e4, 65504.0]


def logits(*sentinels: float) -> torch.Tensor:
    rows = torch.tensor([[3.0, -2.5, 0.25, 8.0], [1.5, 4.0, -7.0, 0.5]])
    return torch.cat([rows, torch.tensor([sentinels, sentinels])], 1) if sentinels else rows


@pytest.mark.parametrize("sentinel", SENTINELS)
@pytest.mark.parametrize("times", [1, 9])  # the most of a row, where all but a few are masked
def test_a_sentinel_hides_no_difference(sentinel: float, times: int) -> None:
    expected = logits(*[sentinel] * times)
    given = expected.clone()
    given[1, 2] += 0.5
    assert scale_of(expected) == 8.0
    assert list(differing({"logits": expected}, {"logits": given}, relative=1e-4)) == ["logits"]
    assert rows_apart(expected, given, 1e-4) == [1]
    given = expected.clone()
    given[0] += 8.0 * 0.9e-4  # an infinity stays one, the lowest number too
    assert differing({"logits": expected}, {"logits": given}, relative=1e-4) == {}


@pytest.mark.parametrize("sentinel", SENTINELS)
def test_a_sentinel_that_is_another_one_differs(sentinel: float) -> None:
    expected, given = logits(sentinel), logits(0.0)
    assert rows_apart(expected, given, 5e-2) == [0, 1]
    assert rows_apart(given, expected, 5e-2) == [0, 1]


def test_a_difference_is_held_against_the_largest_ordinary_value() -> None:
    expected = torch.tensor([[1e4, 300.0, 2.0], [-2e4, 1.0, 0.0]])
    assert scale_of(expected) == 2e4  # no gap of a factor of 128 between 2, 300 and 10,000
    assert not apart(expected, expected + 1.9, 1e-4).any()
    assert apart(expected, expected + 2.1, 1e-4).all()


@pytest.mark.parametrize(
    ("values", "scale"),
    [([], 1.0), ([0.0, 0.0], 1.0), ([0.5, -0.25], 1.0), ([-1e5, 2e5], 2e5), ([0.0, 3e4], 3e4)],
)
def test_values_of_one_size_are_ordinary_whatever_it_is(values: list[float], scale: float) -> None:
    assert scale_of(torch.tensor(values)) == scale


def test_nan_is_near_nan_alone() -> None:
    nan = torch.tensor([float("nan"), 1.0])
    assert not apart(nan, nan.clone(), 1e-4).any()
    assert apart(nan, torch.tensor([1.0, 1.0]), 1e-4).tolist() == [True, False]
    assert apart(torch.tensor([1.0, 1.0]), nan, 1e-4).tolist() == [True, False]
    assert "by up to inf" in differing({"x": nan}, {"x": torch.ones(2)})["x"]
