"""The layout of generated text, against the formatter that will look at it."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_exprs import conditions, integers

from ppcgc.emit.expressions import python
from ppcgc.emit.layout import laid_out
from ppcgc.emit.source import Code
from ppcgc.emit.unfolding import WIDTH
from ppcgc.expr.tree import Expr, Ref, Symbol

HEAD = ("--isolated", "--line-length", str(WIDTH), "--no-cache")


def formatted(source: str) -> str:
    command = [sys.executable, "-m", "ruff", "format", *HEAD, "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True, check=True).stdout


def same_tree(one: str, two: str) -> bool:
    return ast.dump(ast.parse(one)) == ast.dump(ast.parse(two))


LONG = "a_rather_long_name_of_a_slot"
STATEMENTS = [
    f"x = rt.call({LONG}, {LONG}, {LONG}, {LONG})",
    f"return {LONG}.narrow(0, 0, {LONG}.{LONG}.{LONG}.{LONG}).clone()",
    f"x = Slots(a={LONG}, group=Group(b={LONG}, c={LONG}), d={LONG}, e=of[\"{LONG}\"])",
    f"({LONG}, {LONG}, {LONG}, {LONG}) = host.begin()",
    f"{LONG}, {LONG}, {LONG}, counts, more_of_them = host.begin()",
    f"x: dict[str, int] = {{\"{LONG}\": {LONG}, \"{LONG}\": (rows.{LONG}, self.dims.{LONG})}}",
    f"return {{\"{LONG}\": (rows.{LONG} if {LONG} else 1,), \"b\": ({LONG} * 2, {LONG} + 1)}}",
    f"raise rt.broken_limit(\"family.runner\", \"a text that is long\", \"spec.yaml:17\", {LONG})",
    f"rows.set_rows([{LONG} * {LONG} + row for row in range({LONG}.{LONG} * 2 + 1)])",
    f"rt.pad_fill({LONG}, {LONG}, {LONG} if {LONG} > 3 else {LONG} + {LONG}, dim=1)",
    f"x = ({LONG} + {LONG}) * ({LONG} - {LONG}) // {LONG} + {LONG}",
    f"x = not ({LONG} >= {LONG} and {LONG} < {LONG} or {LONG} == {LONG})",
    f"if {LONG} >= {LONG} and {LONG} < {LONG} or not {LONG}:\n    pass",
    f"if not ({LONG} >= {LONG}.{LONG}.{LONG}.{LONG}):\n    pass",
    f"if {LONG} not in ({', '.join(map(str, range(1000, 1020)))}):\n    pass",
    f"def {LONG}(self, {LONG}: {LONG}, *, {LONG}_2: int, third: Options = DEFAULTS) -> {LONG}: ...",
    f"def f(self, {LONG}: {LONG}, other: {LONG}) -> {LONG}:\n    return None",
    f"@property\ndef {LONG}(self) -> {LONG}: ...  # [{LONG}, {LONG}] int64, spec.yaml:4",
    f"class {LONG}({LONG}, rt.Stage[{LONG}, {LONG}, {LONG}, {LONG}]):\n    pass",
    f"class A(B[{LONG}_{LONG}_{LONG}_{LONG}]):\n    pass",
    f"from .{LONG} import {LONG}, {LONG}_2, {LONG}_3, {LONG}_4",
    f"KEYWORDS = (\"{LONG}\", \"{LONG}\", \"{LONG}\", \"{LONG}\")",
    f"x = 1  # {LONG} {LONG} {LONG} {LONG}",
    f"x = \"# no comment\"  # {LONG} {LONG} {LONG} {LONG}",
    f"if {LONG} is not None:  # {LONG} {LONG} {LONG}\n    x = 1",
    f"x = call(*{LONG}, *{LONG}, *{LONG}, *{LONG}, **{LONG})",
]  # fmt: skip


def inside(statement: str) -> str:
    """The statement in a method of a class, as most of generated code stands."""
    body = "".join(f"        {line}\n" for line in statement.splitlines())
    return f"class C:\n    def m(self):\n{body}"


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("place", [lambda text: f"{text}\n", inside], ids=["module", "method"])
def test_a_long_statement_is_laid_out_as_the_formatter_would(statement: str, place: object) -> None:
    assert callable(place)
    source = place(statement)
    if "import" in statement and source.startswith("class"):
        return
    text = laid_out(source)
    assert same_tree(text, source)
    assert formatted(text) == text
    assert laid_out(text) == text


@pytest.mark.parametrize("statement", [text for text in STATEMENTS if "#" not in text])
def test_the_statements_are_too_long(statement: str) -> None:
    assert max(map(len, statement.splitlines())) > WIDTH - 8


REFS = [Ref(Symbol.LIVE, "a"), Ref(Symbol.DIM, "b")]
NAMES = {REFS[0]: Code(f"live.{LONG}"), REFS[1]: Code(f"self.dims.{LONG}_too")}
expressions = integers(REFS) | conditions(REFS)


@settings(max_examples=60, deadline=None)
@given(st.lists(expressions, min_size=1, max_size=12))
def test_any_expression_in_any_place(exprs: list[Expr]) -> None:
    statements = []
    for number, expr in enumerate(exprs):
        code = python(expr, lambda ref: NAMES[ref])  # type: ignore[index]  # no names of kinds
        statements += [
            [f"value = {code}", f"return {code}"],
            [f"rows.set_all({code})", f"rt.pad_fill(slots.x, live.tokens, {code}, dim=1)"],
            [f'x = Slots(a=rows.filled("a", {code}), b=1)', f"if {code}:\n            pass"],
            [f"rows.set_rows([{code} for row in range(padded.tokens)])", f'x = {{"a": {code}}}'],
        ][number % 4]
    body = "".join(f"        {statement}\n" for statement in statements)
    source = f"class C:\n    def m(self):\n{body}"
    text = laid_out(source)
    assert same_tree(text, source)
    assert formatted(text) == text


def test_a_comment_between_a_head_and_its_body_stays() -> None:
    head = f"def m(self, {LONG}: int, other_{LONG}: int, more_{LONG}: int)"
    source = f"class C:\n    {head} -> None:\n        # why\n        # so\n        pass\n"
    text = laid_out(source)
    assert text.endswith("    ) -> None:\n        # why\n        # so\n        pass\n")
    assert same_tree(text, source)
    assert formatted(text) == text
    long_test = f"if {LONG} and other_{LONG} and more_{LONG} and still_more_{LONG}:"
    text = laid_out(f"{long_test}\n    # why\n    pass\n")
    assert text.endswith(":\n    # why\n    pass\n")
    assert formatted(text) == text


def test_what_fits_is_left_alone() -> None:
    source = "x = [\n    1,\n    2,\n]\n# a comment\ny = (1)\n"
    assert laid_out(source) == source


def test_text_beyond_ascii_is_counted_by_characters() -> None:
    source = f'x = rt.call("é – 名", {LONG}, {LONG}, {LONG}, {LONG})\n'
    assert formatted(laid_out(source)) == laid_out(source)
