"""Where live counts come from, and in which order they are known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from plan_specs import (
    SPEC,
    at_max,
    axes_of,
    equals,
    expression,
    family_of,
    listed,
    padded,
    runner_with,
)

from ppcgc.expr.tree import Symbol
from ppcgc.ir import AbsentFill, ComputedCount
from ppcgc.plan.counts import count_expr, count_order, rows_source


def test_counts_come_after_the_counts_that_they_follow() -> None:
    axes = axes_of()
    computed = ComputedCount(expr=expression("live.tokens * 2", Symbol.LIVE))
    axes["images"] = replace(axes["images"], live=computed)
    runner = runner_with(at_max("images"), equals("tokens", "requests + 1"), listed("requests", 1))
    assert count_order(runner, axes) == ("requests", "tokens", "images")


def test_a_padded_axis_keeps_its_own_count() -> None:
    axes = axes_of()
    assert count_expr(padded("tokens", "requests * 2"), axes["tokens"]) is None
    assert count_expr(equals("tokens", "requests"), axes["tokens"]) == expression(
        "requests", Symbol.LIVE
    )


def test_equals_has_the_last_word_over_a_computed_count() -> None:
    computed = ComputedCount(expr=expression("live.images", Symbol.LIVE))
    axis = replace(axes_of()["tokens"], live=computed)
    assert count_expr(listed("tokens", 4), axis) == computed.expr
    assert count_expr(equals("tokens", "requests"), axis) != computed.expr


def test_a_circle_is_a_bug_by_now() -> None:
    runner = runner_with(equals("tokens", "requests"), equals("requests", "tokens"))
    with pytest.raises(ValueError, match="tokens, requests need each other"):
        count_order(runner, axes_of())


SLOTS = """\
      - {name: wide, axis: tokens, shape: [tokens + 1], dtype: int32, padding: zero,
         source: batch.wide}
      - {name: early, axis: tokens, dtype: int32, padding: zero, source: batch.early, stages: first}
      - {name: maybe, axis: tokens, dtype: int32, padding: zero, source: batch.maybe,
         absent: {fill: 0}}
      - {name: spread, axis: tokens, shape: [3, tokens], dtype: int32, padding: zero,
         source: batch.spread, broadcast: true}
      - {name: lanes, axis: tokens, shape: [3, tokens], dtype: int32, padding: zero,
         source: batch.lanes}
"""


def test_rows_are_counted_on_the_first_slot_that_every_stage_has() -> None:
    prefill = family_of(SPEC.replace("    slots:\n", f"    slots:\n{SLOTS}", 1)).runners[0]
    found = rows_source(prefill, "tokens")
    assert found is not None
    slot, dim = found
    assert (slot.name, dim) == ("lanes", 1)
    assert rows_source(prefill, "images") is None
    maybe = replace(prefill.slots[3], absent=AbsentFill(value=0))
    assert rows_source(replace(prefill, slots=(maybe,)), "tokens") is None
