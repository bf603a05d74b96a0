"""Expressions: parse, print, name, type and evaluate."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppcgc.diagnostics.model import Span
from ppcgc.expr.affine import Affine, affine_in
from ppcgc.expr.evaluate import (
    EvaluationError,
    MissingValueError,
    evaluate,
    evaluate_extent,
    zero_divisor,
)
from ppcgc.expr.names import Scope, name_refs, span_of_name
from ppcgc.expr.parse import parse
from ppcgc.expr.printing import to_text
from ppcgc.expr.tokens import ExprError
from ppcgc.expr.tree import (
    Arithmetic,
    Below,
    Bool,
    CeilDiv,
    Compare,
    Expr,
    Extreme,
    IfElse,
    In,
    Int,
    Logical,
    Name,
    Negate,
    Not,
    Ref,
    Symbol,
    Text,
)
from ppcgc.expr.typing import ExprType, type_problem

LIVE_A, LIVE_B = Ref(Symbol.LIVE, "a"), Ref(Symbol.LIVE, "b")


def span(text: str) -> Span:
    return Span("spec.yaml", 3, 10, 3, 10 + len(text))


def parsed(text: str) -> Expr:
    expr = parse(text, span(text))
    assert not isinstance(expr, ExprError), expr
    return expr


def refused(text: str) -> ExprError:
    error = parse(text, span(text))
    assert isinstance(error, ExprError), error
    return error


# ---------------------------------------------------------------- parsing


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2 + 3 * 4", 14),
        ("(2 + 3) * 4", 20),
        ("10 - 3 - 2", 5),
        ("-7 // 2", -4),
        ("-7 % 3", 2),
        ("7 - -2", 9),
        ("ceil(7 / 2)", 4),
        ("ceil((6 + 2) / 3)", 3),
        ("ceil(2 * 3 / 4)", 2),
        ("min(4, 2, 9) + max(1, 5)", 7),
        ("1 if 2 > 3 else 4 if 5 > 4 else 6", 4),
        ("not 1 < 2 or 3 in (1, 2, 3)", True),
        ("true and not false", True),
        ("1 < 2 and 2 < 1", False),
        ("'auto' in ('auto', \"off\")", True),
        ("'a' != 'b'", True),
    ],
)
def test_value_of_constant_expression(text: str, value: object) -> None:
    result = evaluate(parsed(text), {})
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("text", "start", "message"),
    [
        ("", 0, "empty expression"),
        ("a + ", 4, "expected a name or an integer"),
        ("1 < b < 3", 6, "comparisons cannot be chained"),
        ("a / b", 2, "found '/'"),
        ("ceil(a)", 6, "expected '/'"),
        ("ceil(a + b / c)", 7, "expected '/' inside ceil()"),
        ("f(1)", 0, "unknown function 'f'"),
        ("min(1)", 0, "two operands"),
        ("a, b", 1, "found ','"),
        ("007", 0, "leading zeros"),
        ("1_000", 0, "not a decimal integer"),
        ("2.5", 0, "not a decimal integer"),
        ("9" * 19, 0, "19 digits"),
        ("a = b", 2, "unexpected '='"),
        ("a ** 2", 3, "expected a name"),
        ("a[0]", 1, "unexpected '['"),
        ("__import__('os')", 0, "unknown function"),
        ("lambda: 1", 6, "unexpected ':'"),
        ("a not in (1)", 2, "expected a comparison"),
        ("a if b", 6, "expected 'else'"),
        ("(1", 2, "expected ')'"),
        ("x in 3", 5, "expected '('"),
        ("é", 0, "unexpected 'é'"),
        ("(" * 40 + "1" + ")" * 40, 30, "nested deeper"),
        ("not " * 40 + "true", 120, "nested deeper"),
        ("-" * 40 + "x", 30, "nested deeper"),
        ("1" + "+1" * 130, 200, "261 tokens"),
        ("a" * 501, 0, "501 characters"),
    ],
)
def test_refused_text_says_where(text: str, start: int, message: str) -> None:
    error = refused(text)
    assert message in error.message
    assert (error.span.line, error.span.column) == (3, 10 + start)
    assert error.help


@pytest.mark.parametrize(
    ("text", "help"),
    [
        ("a => b", "write '>='"),
        ("a =< b", "write '<='"),
        ("a = b", "write '==' to compare"),
        ("a ** 2", "multiply"),
        ("a && b", "write 'and'"),
    ],
)
def test_words_of_other_languages_are_translated(text: str, help: str) -> None:
    assert help in refused(text).help


def test_span_of_a_quoted_scalar_starts_behind_its_quote() -> None:
    error = parse("a = b", Span("spec.yaml", 3, 10, 3, 17))
    assert isinstance(error, ExprError)
    assert error.span == Span("spec.yaml", 3, 13, 3, 14)


def test_span_of_a_folded_scalar_is_the_whole() -> None:
    whole = Span("spec.yaml", 3, 10, 5, 4)
    error = parse("a = b", whole)
    assert isinstance(error, ExprError)
    assert error.span == whole


# ---------------------------------------------------------------- printing

_leaves = (
    st.integers(-999, 999).map(Int)
    | st.booleans().map(Bool)
    | st.sampled_from(["on", "a.b", "x-1"]).map(Text)
    | st.sampled_from([("tokens",), ("live", "tokens"), ("orders",), ("in_",)]).map(Name)
)


def _nodes(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(
        st.builds(Negate, inner),
        st.builds(Not, inner),
        st.builds(Arithmetic, st.sampled_from(["+", "-", "*", "//", "%"]), inner, inner),
        st.builds(CeilDiv, inner, inner),
        st.builds(Extreme, st.sampled_from(["min", "max"]), several),
        st.builds(Compare, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), inner, inner),
        st.builds(In, inner, several),
        st.builds(In, inner, st.just((Name(("kinds", "full")),))),
        st.builds(Below, st.just("full"), inner),
        st.builds(Logical, st.sampled_from(["and", "or"]), inner, inner),
        st.builds(IfElse, inner, inner, inner),
    )


@settings(max_examples=150, deadline=None)
@given(st.recursive(_leaves, _nodes, max_leaves=10))
def test_printed_tree_parses_to_itself(expr: Expr) -> None:
    text = to_text(expr)
    back = parse(text, span(text))
    if isinstance(back, ExprError):
        assert "at most" in back.message or "nested" in back.message
    else:
        assert back == expr


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("((a) + (b * c))", "a + b * c"),
        ("(a + b) * c", "(a + b) * c"),
        ("a - (b - c)", "a - (b - c)"),
        ("(a - b) - c", "a - b - c"),
        ("not (a and b)", "not (a and b)"),
        ("(a if b else c) + 1", "(a if b else c) + 1"),
        ("-(5)", "-(5)"),
        ("ceil((a + 1) / (b * 2))", "ceil((a + 1) / (b * 2))"),
    ],
)
def test_brackets_only_where_needed(text: str, printed: str) -> None:
    assert to_text(parsed(text)) == printed


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="ab1(),.+-*/%<>=!'\" not in", max_size=30))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    found = parse(text, span(text))
    if isinstance(found, ExprError):
        assert found.message
    else:
        assert parse(to_text(found), span(text)) == found


# ---------------------------------------------------------------- names


def scope(*symbols: Symbol, bare_axis: Symbol | None = None) -> Scope:
    return Scope(
        place="in a test",
        dims=frozenset({"hidden", "zero"}),
        axes=frozenset({"tokens", "requests"}),
        symbols=frozenset(symbols),
        bare_axis=bare_axis,
    )


def test_names_get_the_meaning_of_their_place() -> None:
    everything = scope(
        Symbol.DIM, Symbol.LIVE, Symbol.ROW, Symbol.AXIS_MAX, bare_axis=Symbol.PADDED
    )
    expr, unknown = name_refs(
        parsed("tokens + hidden + dims.hidden + live.requests + tokens.max + row.tokens"),
        everything,
    )
    assert unknown == ()
    assert to_text(expr) == (
        "padded.tokens + dims.hidden + dims.hidden + live.requests + tokens.max + row.tokens"
    )


@pytest.mark.parametrize(
    ("text", "message", "help"),
    [
        ("hiden", "unknown name 'hiden' in a test", "did you mean 'hidden'?"),
        ("tokens", "axis 'tokens' cannot be named in a test", "write live.tokens"),
        ("padded.tokens", "'padded.tokens' cannot be used in a test", "known here"),
        ("config.hidden_size", "cannot be read in a test", "dims: {hidden_size: config.hi"),
        ("True", "unknown name 'True' in a test", "write 'true'"),
    ],
)
def test_unknown_names_say_what_is_known(text: str, message: str, help: str) -> None:
    _, (unknown,) = name_refs(parsed(text), scope(Symbol.DIM, Symbol.LIVE))
    assert message in unknown.message
    assert help in unknown.help


def test_place_of_a_name_is_its_own_token() -> None:
    text = "hidden2 + hidden"
    assert span_of_name(text, span(text), ("hidden",)).column == 20


# ---------------------------------------------------------------- values, types, forms


def test_failures_name_their_values() -> None:
    expr, _ = name_refs(parsed("8 // (live.tokens - 3)"), scope(Symbol.LIVE))
    with pytest.raises(EvaluationError, match=r"by zero \(with live.tokens = 3\)"):
        evaluate(expr, {Ref(Symbol.LIVE, "tokens"): 3})
    with pytest.raises(MissingValueError, match=r"live\.tokens has no value"):
        evaluate(expr, {})


@pytest.mark.parametrize(
    ("text", "by_zero"),
    [
        ("hidden // 0", "dims.hidden // 0"),
        ("1 + hidden % (3 - 3)", "dims.hidden % (3 - 3)"),
        ("ceil(hidden / zero)", "ceil(dims.hidden / dims.zero)"),
        ("1 if hidden > 3 else 8 // 0", "8 // 0"),
        ("hidden // 2", None),
        ("hidden // (hidden - 4)", None),
        ("8 // zero if zero > 0 else 1", None),  # the condition rules it out
        ("zero > 0 and 8 // zero > 1", None),
    ],
)
def test_a_divisor_that_is_zero_whatever_else_is(text: str, by_zero: str | None) -> None:
    expr, unknown = name_refs(parsed(text), scope(Symbol.DIM))
    assert unknown == ()
    found = zero_divisor(expr, {Ref(Symbol.DIM, "zero"): 0})
    assert (None if found is None else to_text(found)) == by_zero


def test_negative_extent_is_refused() -> None:
    expr = Arithmetic("-", LIVE_A, LIVE_B)
    assert evaluate_extent(expr, {LIVE_A: 3, LIVE_B: 3}) == 0
    with pytest.raises(EvaluationError, match="is -2"):
        evaluate_extent(expr, {LIVE_A: 3, LIVE_B: 5})


def test_the_branch_not_taken_is_not_evaluated() -> None:
    expr = parsed("1 if true else 1 // 0")
    assert evaluate(expr, {}) == 1


@pytest.mark.parametrize(
    ("text", "wanted", "ok"),
    [
        ("a + 1", ExprType.INTEGER, True),
        ("a + (b > 1)", ExprType.INTEGER, False),
        ("a > 1", ExprType.CONDITION, True),
        ("a and b > 1", ExprType.CONDITION, False),
        ("'x' < 'y'", ExprType.CONDITION, False),
        ("'x' == 'y'", ExprType.CONDITION, True),
        ("a in (1, 'x')", ExprType.CONDITION, False),
        ("a if b else 1", ExprType.INTEGER, False),
        ("1 if a > b else true", ExprType.INTEGER, False),
    ],
)
def test_types(text: str, wanted: ExprType, ok: bool) -> None:
    assert (type_problem(parsed(text), wanted) is None) is ok


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("tokens", (1, 0)),
        ("2 * tokens + 3", (2, 3)),
        ("(tokens + 1) * 3 - 2", (3, 1)),
        ("-tokens", (-1, 0)),
        ("7 // 2 + tokens", (1, 3)),
        ("tokens * tokens", None),
        ("tokens // 2", None),
        ("tokens * hidden", None),
        ("max(tokens, 1)", None),
    ],
)
def test_affine_form(text: str, form: tuple[int, int] | None) -> None:
    expr, _ = name_refs(parsed(text), scope(Symbol.DIM, bare_axis=Symbol.PADDED))
    expected = None if form is None else Affine(*form)
    assert affine_in(expr, Ref(Symbol.PADDED, "tokens")) == expected
