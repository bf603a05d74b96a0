"""Interval arithmetic: never wrong, and good enough for the limits that specs have."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_specs import expression
from random_exprs import conditions, integers

from ppcgc.expr.evaluate import EvaluationError, Value, evaluate
from ppcgc.expr.tree import Expr, Ref, Symbol
from ppcgc.plan.intervals import Box, bounds, disjoint, halves, impossible, verdict

TOKENS, REQUESTS = Ref(Symbol.LIVE, "tokens"), Ref(Symbol.LIVE, "requests")

sides = st.tuples(st.integers(-3, 6), st.integers(0, 5)).map(lambda s: (s[0], s[0] + s[1]))
boxes = st.fixed_dictionaries({TOKENS: sides, REQUESTS: sides})


def values_in(expr: Expr, box: Box) -> Iterator[Value]:
    """The value at every point of the box that has one."""
    for point in product(*(range(low, high + 1) for low, high in box.values())):
        try:
            yield evaluate(expr, dict(zip(box, point, strict=True)))
        except EvaluationError:
            continue


@settings(max_examples=400, deadline=None)
@given(conditions([TOKENS, REQUESTS]), boxes)
def test_what_is_impossible_holds_nowhere(condition: Expr, box: Box) -> None:
    found = set(values_in(condition, box))
    if impossible(condition, box):
        assert True not in found
    if verdict(condition, box) is True:
        assert False not in found


@settings(max_examples=300, deadline=None)
@given(integers([TOKENS, REQUESTS]), boxes)
def test_bounds_hold_every_value(expr: Expr, box: Box) -> None:
    within = bounds(expr, box)
    if within is not None:
        assert all(within[0] <= int(value) <= within[1] for value in values_in(expr, box))


@pytest.mark.parametrize(
    "text",
    [
        "tokens < 4",
        "tokens <= 3",
        "9 < tokens",
        "tokens == requests",
        "tokens != tokens + 0 * requests and tokens > 8",
        "requests > tokens or tokens == 9",
        "not tokens >= 4",
        "not (tokens < 4 or tokens >= 4)",
        "tokens in (1, 2, requests)",
        "ceil(tokens / 2) < 2",
        "tokens // 2 > 4",
        "tokens % 16 > 8",
        "min(tokens, requests) > 3",
        "max(tokens, 2) < 4",
        "-tokens > requests",
        "(requests if tokens > 3 else 99) > 3",
        "tokens * requests > 24",
    ],
)
def test_plain_limits_are_ruled_out(text: str) -> None:
    """Tokens from 4 to 8, requests from 0 to 3."""
    condition = expression(text, Symbol.LIVE)
    assert impossible(condition, {TOKENS: (4, 8), REQUESTS: (0, 3)})


@pytest.mark.parametrize(
    "text", ["tokens == 8", "tokens % 7 == 0", "tokens // requests > 2", "tokens != requests"]
)
def test_what_a_batch_can_meet_is_not_ruled_out(text: str) -> None:
    condition = expression(text, Symbol.LIVE)
    assert not impossible(condition, {TOKENS: (4, 8), REQUESTS: (0, 3)})


def test_an_unknown_count_rules_nothing_out() -> None:
    assert verdict(expression("tokens > requests", Symbol.LIVE), {TOKENS: (0, 1)}) is None


def test_halves_and_disjoint() -> None:
    assert halves((3, 6)) == ((3, 4), (5, 6))
    assert halves((3, 4)) == ((3, 3), (4, 4))
    assert disjoint((1, 2), (3, 4))
    assert disjoint((3, 4), (1, 2))
    assert not disjoint((1, 3), (3, 4))
