"""Text of a spec in generated code: always one literal, one comment, one docstring, one name."""

from __future__ import annotations

import ast
import io
import keyword
import tokenize
import warnings

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ppcgc.emit.source import Code, Identifier, comment, docstring, identifier, literal
from ppcgc.emit.unfolding import WIDTH

ATTACKS = [
    '"""',
    "'''",
    '"""\nimport os\n"""',
    "\\",
    'ends with a quote"',
    "ends with backslashes\\\\\\",
    "\\" * 300,
    "x" * 98 + "\\d" * 40,
    "line\nbreak",
    "return\rand form\x0cfeed",
    "# a comment # noqa",
    "fmt: off",
    "type: ignore",
    "{braces} {{more}} {0}",
    "{{ jinja }} {% raw %}",
    "\u2028import os",
    "\u202emirrored",
    "nul\x00",
    "\ud800 alone",
    "naïve 名前 🙂",
    "",
    " \t ",
]
texts = st.text(max_size=300) | st.sampled_from(ATTACKS)
lengthy = st.lists(st.text(alphabet="ab\\\"'# -{}é", min_size=1, max_size=30), max_size=40).map(
    " ".join
)


def parse(source: str) -> ast.Module:
    """The tree, with every warning of the compiler an error: invalid escapes too."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return ast.parse(source)


@given(texts)
@example('it\'s "both"')
def test_a_string_is_one_literal_of_the_same_text(text: str) -> None:
    (statement,) = parse(str(literal(text))).body
    assert isinstance(statement, ast.Expr)
    assert isinstance(statement.value, ast.Constant)
    assert statement.value.value == text


@given(st.integers() | st.floats(allow_nan=False) | st.booleans() | st.none())
def test_a_number_is_one_literal_of_the_same_value(value: int | float | bool | None) -> None:
    read = eval(str(literal(value)), {"float": float})
    assert read == value
    assert type(read) is type(value)


def test_not_a_number_is_a_literal_too() -> None:
    assert str(eval(str(literal(float("nan"))))) == "nan"


@given(texts | lengthy, st.sampled_from([0, 4, 8]))
def test_text_is_one_docstring(text: str, indent: int) -> None:
    code = str(docstring(text, indent))
    pad = " " * indent
    nested = "".join(f"{' ' * 4 * depth}if True:\n" for depth in range(indent // 4))
    (statement,) = parse(f"{nested}{pad}{code}\n").body
    while isinstance(statement, ast.If):
        (statement,) = statement.body
    assert isinstance(statement, ast.Expr)
    assert isinstance(statement.value, ast.Constant)
    words = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    assert " ".join(str(statement.value.value).split()) == (words.replace('"', "'") or "No words.")
    assert not [line for line in code.splitlines() if line != line.rstrip()]


@given(texts | lengthy, st.sampled_from([0, 4, 8]))
def test_text_is_comments_alone(text: str, indent: int) -> None:
    code = str(comment(text, indent))
    parts = list(tokenize.generate_tokens(io.StringIO(f"{' ' * indent}{code}\n").readline))
    kinds = {part.type for part in parts}
    assert kinds <= {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER}
    assert kinds >= {tokenize.COMMENT}
    for part in parts:
        if part.type == tokenize.COMMENT:
            assert part.string.startswith("#")
            assert "#" not in part.string[1:], "what tools read is not behind a second hash"


@given(st.text(alphabet="ab \\", min_size=150, max_size=400), st.sampled_from([0, 8]))
def test_lines_of_words_are_not_too_long(text: str, indent: int) -> None:
    for code in (comment(text, indent), docstring(text, indent)):
        first, *others = str(code).splitlines()
        for line in (" " * indent + first, *others):
            assert len(line) <= WIDTH or " " not in line.strip("# ")


@pytest.mark.parametrize(
    "text", ["fmt: off", "type: ignore[x]", "noqa", "isort: skip_file", "ruff: noqa"]
)
def test_a_comment_gives_no_orders_to_tools(text: str) -> None:
    assert not str(comment(text)).startswith(f"# {text.split(':')[0]}")


@given(st.text(max_size=20) | st.sampled_from([*keyword.kwlist, "été", "a b", "a.b", "1a", "a\n"]))
def test_a_name_is_a_name_or_refused(text: str) -> None:
    good = text.isidentifier() and text.isascii() and not keyword.iskeyword(text)
    if good:
        made = identifier(text)
        assert isinstance(made, Identifier)
        (statement,) = parse(f"{made} = 1").body
        assert isinstance(statement, ast.Assign)
    else:
        with pytest.raises(ValueError, match="is no identifier"):
            identifier(text)


def test_code_is_no_text() -> None:
    """A finished piece of code is a type of its own: nothing takes it for a bare str."""
    assert not isinstance(Code("x"), str)
