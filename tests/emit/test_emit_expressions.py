"""Expressions printed as Python, against ppcgc's own evaluation of the tree."""

from __future__ import annotations

import ast
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_exprs import conditions, integers

from ppcgc.emit.expressions import operand, python
from ppcgc.emit.source import Code
from ppcgc.expr.evaluate import EvaluationError, Value, evaluate
from ppcgc.expr.tree import Bool, Compare, Expr, IfElse, In, Int, Name, Ref, Symbol, Text
from ppcgc.runtime.dims import ceil_div, floor_div, remainder
from ppcgc.runtime.errors import DimError

TOKENS, HIDDEN = Ref(Symbol.LIVE, "tokens"), Ref(Symbol.DIM, "hidden")
CALLED = {TOKENS: Code("live.tokens"), HIDDEN: Code("self.dims.hidden")}


def names(ref: Ref | Name) -> Code:
    if isinstance(ref, Name):
        raise KeyError(ref)
    return CALLED[ref]


trees = integers([TOKENS, HIDDEN]) | conditions([TOKENS, HIDDEN])
numbers = st.integers(-3, 9)


def run(code: Code, tokens: int, hidden: int) -> object:
    """The value of the code, in a world like that of a generated method."""
    rt = SimpleNamespace(ceil_div=ceil_div, floor_div=floor_div, remainder=remainder)
    world = {
        "live": SimpleNamespace(tokens=tokens),
        "self": SimpleNamespace(dims=SimpleNamespace(hidden=hidden)),
        "rt": rt,
    }
    return eval(str(code), world)


def reading(expr: Expr, tokens: int, hidden: int) -> Value | None:
    """The value of the tree; None where it has none."""
    try:
        return evaluate(expr, {TOKENS: tokens, HIDDEN: hidden})
    except EvaluationError:
        return None


@settings(max_examples=400, deadline=None)
@given(trees, numbers, numbers)
def test_python_has_the_value_of_the_tree(expr: Expr, tokens: int, hidden: int) -> None:
    expected = reading(expr, tokens, hidden)
    if expected is None:
        with pytest.raises(DimError, match="the divisor is zero"):
            run(python(expr, names), tokens, hidden)
    else:
        found = run(python(expr, names), tokens, hidden)
        assert found == expected
        assert type(found) is type(expected)


@settings(max_examples=200, deadline=None)
@given(integers([TOKENS, HIDDEN]), numbers, numbers)
def test_an_operand_stands_anywhere(expr: Expr, tokens: int, hidden: int) -> None:
    expected = reading(expr, tokens, hidden)
    if isinstance(expected, int):
        found = run(Code(f"-{operand(expr, names)} * 3"), tokens, hidden)
        assert found == -expected * 3


@settings(max_examples=200, deadline=None)
@given(trees)
def test_no_name_but_those_given(expr: Expr) -> None:
    tree = ast.parse(str(python(expr, names)), mode="eval")
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert used <= {"live", "self", "rt", "min", "max"}


def test_quoted_words_are_literals() -> None:
    option = Ref(Symbol.OPTION, "kind")
    expr = In(option, (Text('a"; import os; "'), Text("b")))
    code = python(expr, lambda ref: Code("kind"))
    assert eval(str(code), {"kind": "b"}) is True
    assert eval(str(code), {"kind": "import os"}) is False


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (Compare("==", Int(-1), TOKENS), "-1 == live.tokens"),
        (In(TOKENS, (Int(1),)), "live.tokens in (1,)"),
        (IfElse(Int(1), Bool(True), Int(2)), "1 if True else 2"),
    ],
)
def test_spelling(expr: Expr, text: str) -> None:
    assert str(python(expr, names)) == text


@pytest.mark.parametrize("expr", [Name(("tokens",)), Ref(Symbol.DIM, "unheard_of")])
def test_what_has_no_meaning_is_never_printed(expr: Expr) -> None:
    with pytest.raises((TypeError, KeyError)):
        python(expr, names)
