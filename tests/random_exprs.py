"""Random expression trees, for tests that compare two readings of one tree."""

from __future__ import annotations

from hypothesis import strategies as st

from ppcgc.expr.tree import (
    Arithmetic,
    Bool,
    CeilDiv,
    Compare,
    Expr,
    Extreme,
    IfElse,
    In,
    Int,
    Logical,
    Negate,
    Not,
    Ref,
)


def integers(refs: list[Ref]) -> st.SearchStrategy[Expr]:
    """Expressions of type integer over ``refs``; divisors may be zero."""
    return _both(refs)[0]


def conditions(refs: list[Ref]) -> st.SearchStrategy[Expr]:
    """Expressions of type condition over ``refs``."""
    return _both(refs)[1]


def _both(refs: list[Ref]) -> tuple[st.SearchStrategy[Expr], st.SearchStrategy[Expr]]:
    leaf: st.SearchStrategy[Expr] = st.sampled_from(refs) | st.integers(-4, 9).map(Int)
    truth: st.SearchStrategy[Expr] = st.booleans().map(Bool)
    whole: st.SearchStrategy[Expr] = leaf
    condition: st.SearchStrategy[Expr] = truth | _compare(leaf)
    for _ in range(3):  # levels
        whole, condition = (
            leaf | _arithmetic(whole) | _choice(whole, condition),
            truth | _compare(whole) | _logic(condition) | _choice(condition, condition),
        )
    return whole, condition


def _arithmetic(part: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    return st.one_of(
        st.builds(Negate, part),
        st.builds(Arithmetic, st.sampled_from(["+", "-", "*", "//", "%"]), part, part),
        st.builds(CeilDiv, part, part),
        st.builds(
            Extreme,
            st.sampled_from(["min", "max"]),
            st.lists(part, min_size=2, max_size=3).map(tuple),
        ),
    )


def _compare(part: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    words = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    among = st.lists(part, min_size=1, max_size=3).map(tuple)
    return st.builds(Compare, words, part, part) | st.builds(In, part, among)


def _logic(part: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    return st.builds(Not, part) | st.builds(Logical, st.sampled_from(["and", "or"]), part, part)


def _choice(
    part: st.SearchStrategy[Expr], condition: st.SearchStrategy[Expr]
) -> st.SearchStrategy[Expr]:
    return st.builds(IfElse, part, condition, part)
