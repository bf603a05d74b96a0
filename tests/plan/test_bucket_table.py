"""Bucket tables: every combination that a batch can ask for, and no other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_specs import NOWHERE, at_max, axes_of, equals, expression, listed, padded, runner_with

from ppcgc.expr.evaluate import EvaluationError
from ppcgc.expr.tree import Symbol
from ppcgc.ir import BucketRule, BucketScalar, ComputedCount, ConstScalar, KeyScalar, Scalar
from ppcgc.plan import reach
from ppcgc.plan.buckets import bucket_table, columns
from ppcgc.plan.model import BucketPlan
from ppcgc.plan.reach import SearchError


def rows(table: tuple[BucketPlan, ...]) -> dict[tuple[int, ...], tuple[int, ...]]:
    return {bucket.padded: bucket.live for bucket in table}


def test_lists_combine_and_are_captured_full() -> None:
    runner = runner_with(listed("tokens", 4, 16), listed("requests", 1, 4))
    assert rows(bucket_table(runner, axes_of())) == {
        (4, 1): (4, 1),
        (4, 4): (4, 4),
        (16, 1): (16, 1),
        (16, 4): (16, 4),
    }


def test_rows_stand_in_the_order_of_the_buckets_not_of_the_axes() -> None:
    runner = runner_with(listed("requests", 2), listed("tokens", 4, 8))
    assert columns(runner, axes_of()) == ("requests", "tokens")
    assert rows(bucket_table(runner, axes_of())) == {(2, 4): (2, 4), (2, 8): (2, 8)}


def test_max_is_the_capacity_of_the_axis_or_what_the_runner_lowers_it_to() -> None:
    runner = runner_with(at_max("tokens"), at_max("requests"))
    assert list(rows(bucket_table(runner, axes_of()))) == [(16, 4)]
    lowered = replace(runner, axis_max=(("requests", 3),))
    assert list(rows(bucket_table(lowered, axes_of()))) == [(16, 3)]


def test_limits_prune_what_no_batch_reaches() -> None:
    runner = runner_with(
        listed("tokens", 2, 4, 8), listed("requests", 2, 4), limits=("tokens >= requests * 2",)
    )
    assert rows(bucket_table(runner, axes_of())) == {
        (2, 2): (2, 1),
        (4, 2): (4, 2),
        (8, 2): (8, 2),
        (8, 4): (8, 4),
    }


def test_a_limit_that_holds_at_no_corner_is_met_inside() -> None:
    runner = runner_with(
        listed("tokens", 16), listed("requests", 4), limits=("tokens == requests * 3 + 1",)
    )
    ((_, live),) = rows(bucket_table(runner, axes_of())).items()
    assert live[0] == live[1] * 3 + 1


def test_equals_follows_in_live_and_padded_rows() -> None:
    runner = runner_with(
        equals("tokens", "requests * 3"),
        listed("requests", 1, 4),
        limits=("requests != 4", "requests != 1"),
    )
    assert rows(bucket_table(runner, axes_of())) == {(3, 1): (0, 0), (12, 4): (9, 3)}


def test_padded_follows_in_padded_rows_only() -> None:
    runner = runner_with(
        padded("tokens", "requests * 4"), listed("requests", 1, 3), limits=("tokens <= 5",)
    )
    assert rows(bucket_table(runner, axes_of())) == {(4, 1): (4, 1), (12, 3): (5, 3)}


def test_derived_axes_follow_derived_axes() -> None:
    runner = runner_with(
        equals("images", "tokens // 2"), equals("tokens", "requests * 2"), listed("requests", 2, 4)
    )
    assert list(rows(bucket_table(runner, axes_of()))) == [(2, 4, 2), (4, 8, 4)]


def test_a_computed_count_must_land_in_its_own_bucket() -> None:
    """``live: live.requests * 2`` beside lists of both axes: most combinations are unreachable."""
    twice = expression("live.requests * 2", Symbol.LIVE)
    axes = axes_of()
    axes["tokens"] = replace(axes["tokens"], live=ComputedCount(expr=twice))
    runner = runner_with(listed("tokens", 4, 8), listed("requests", 2, 4))
    assert rows(bucket_table(runner, axes)) == {(4, 2): (4, 2), (8, 4): (8, 4)}


def test_a_count_without_rows_can_have_graphs_of_its_own() -> None:
    axes = axes_of()
    axes["requests"] = replace(axes["requests"], zero_key=True)
    runner = runner_with(listed("tokens", 8), listed("requests", 2, 4))
    assert rows(bucket_table(runner, axes)) == {(8, 0): (8, 0), (8, 2): (8, 2), (8, 4): (8, 4)}


def test_scalars_are_columns_behind_the_axes() -> None:
    modes: dict[str, KeyScalar | ConstScalar] = {
        "width": KeyScalar(values=(1, 4)),
        "depth": ConstScalar(value=7),
    }
    scalars = tuple(
        Scalar(name=name, source=None, mode=mode, span=NOWHERE) for name, mode in modes.items()
    )
    span = Scalar(name="span", source=None, mode=BucketScalar(sizes=(8, 32)), span=NOWHERE)
    runner = replace(runner_with(listed("tokens", 4)), scalars=(*scalars, span))
    assert columns(runner, axes_of()) == ("tokens", "width", "depth", "span")
    assert list(rows(bucket_table(runner, axes_of()))) == [
        (4, 1, 7, 8),
        (4, 1, 7, 32),
        (4, 4, 7, 8),
        (4, 4, 7, 32),
    ]


def test_a_limit_without_a_value_is_not_met() -> None:
    runner = runner_with(
        listed("tokens", 8), listed("requests", 2), limits=("tokens // (requests - 2) == -8",)
    )
    assert rows(bucket_table(runner, axes_of())) == {(8, 2): (8, 1)}


def test_a_derived_size_without_a_value_says_why() -> None:
    runner = runner_with(equals("tokens", "8 // (requests - 2)"), listed("requests", 2))
    with pytest.raises(EvaluationError, match=r"divides by zero \(with live.requests = 2\)"):
        bucket_table(runner, axes_of())


def test_limits_beyond_reason_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach, "MOST_BOXES", 100)
    axes = {name: replace(axis, max=10**6) for name, axis in axes_of().items()}
    cipher = runner_with(at_max("tokens"), limits=("tokens * tokens % 1000003 == 5",))
    with pytest.raises(SearchError, match="no answer after 100 boxes"):
        bucket_table(cipher, axes)
    steps = runner_with(at_max("tokens"), limits=("tokens % 1000 == 1",))
    assert rows(bucket_table(steps, axes)) == {(10**6,): (999001,)}


# ---------------------------------------------------------------- against all batches there are

TERMS = ["tokens", "requests", "requests * 2", "tokens - requests", "tokens % 3", "3", "7"]


@dataclass(frozen=True)
class Case:
    """A runner of two or three axes; ``images`` follows where it is there."""

    tokens: list[int]
    requests: list[int]
    images: tuple[str, str] | None  # ("equals" or "padded", its expression)
    limits: list[str]

    def rules(self) -> list[BucketRule]:
        own = [listed("tokens", *self.tokens), listed("requests", *self.requests)]
        if self.images is None:
            return own
        word, text = self.images
        return [*own, equals("images", text) if word == "equals" else padded("images", text)]


ladders = st.lists(st.integers(1, 9), min_size=1, max_size=3, unique=True).map(sorted)
comparisons = st.tuples(
    st.sampled_from(TERMS), st.sampled_from([">=", "<=", "==", "!="]), st.sampled_from(TERMS)
).map(" ".join)
limits = comparisons | st.tuples(comparisons, st.sampled_from(["and", "or"]), comparisons).map(
    " ".join
)
followers = st.sampled_from(["requests", "requests * 2 + 1", "tokens - 1", "min(tokens, 5)"])
cases = st.builds(
    Case,
    ladders,
    ladders,
    st.none() | st.tuples(st.sampled_from(["equals", "padded"]), followers),
    st.lists(limits, max_size=2),
)


def smallest(sizes: list[int], live: int) -> int:
    return min(size for size in sizes if size >= live)


def asked_for(case: Case) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Every legal batch by Python's own reading of the spec: its bucket, its live rows."""
    for tokens, requests in product(range(case.tokens[-1] + 1), range(case.requests[-1] + 1)):
        live = {"tokens": tokens, "requests": requests}
        size = {
            "tokens": smallest(case.tokens, tokens),
            "requests": smallest(case.requests, requests),
        }
        choices = [live]
        if case.images is not None:
            word, text = case.images
            size["images"] = eval(text, {}, dict(size))
            counts = [eval(text, {}, dict(live))] if word == "equals" else range(size["images"] + 1)
            choices = [live | {"images": n} for n in counts if 0 <= n <= size["images"]]
        for choice in choices:
            if all(eval(limit, {}, dict(choice)) for limit in case.limits):
                yield tuple(size.values()), tuple(choice.values())


@settings(max_examples=150, deadline=None)
@given(cases)
def test_the_table_is_what_batches_ask_for(case: Case) -> None:
    runner = runner_with(*case.rules(), limits=tuple(case.limits))
    axes = {name: replace(axis, max=99) for name, axis in axes_of().items()}
    batches = set(asked_for(case))
    table = rows(bucket_table(runner, axes))
    assert set(table) == {bucket for bucket, _ in batches}
    assert set(table.items()) <= batches, "captured with a batch that no engine may send"
    assert list(table) == sorted(table)
