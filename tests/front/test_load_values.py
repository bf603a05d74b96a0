"""What ``load`` makes of a spec that it accepts: values, places, lookup."""

from __future__ import annotations

import math

import pytest

from ppcgc.diagnostics.model import Span
from ppcgc.load import load
from ppcgc.load.scalars import read_plain
from ppcgc.nodes import Document, Mapping, Scalar, plain

SPEC = """\
# a comment
family: llama
doc: |
  two
  lines

axes:
  tokens: {max: 2048, live: "batch.num_tokens"}
list:
  - 1
  - {a: [x, y]}
none:
"""


def read(text: str) -> Document:
    document, found = load(text, "specs/llama.yaml")
    assert found == []
    assert document is not None
    return document


def place(span: Span) -> tuple[int, int, int, int]:
    return (span.line, span.column, span.end_line, span.end_column)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", "on"),
        ("off", "off"),
        ("yes", "yes"),
        ("no", "no"),
        ("16:32", "16:32"),
        ("012", 12),
        ("0o17", 15),
        ("0x1F", 31),
        ("-7", -7),
        ("+7", 7),
        ("1_000", "1_000"),
        ("2026-01-01", "2026-01-01"),
        ("=", "="),
        ("1e3", 1000.0),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1.", 1.0),
        ("-.inf", -math.inf),
        ("true", True),
        ("FALSE", False),
        ("tRuE", "tRuE"),
        ("null", None),
        ("~", None),
        ("", None),
        ("0b1", "0b1"),
        ("1e", "1e"),
        (str(2**64 - 1), 2**64 - 1),
        (str(-(2**63)), -(2**63)),
    ],
)
def test_plain_scalars_follow_the_core_schema(text: str, value: object) -> None:
    read_value = read_plain(text)
    assert read_value == value
    assert type(read_value) is type(value)


def test_nan_is_a_number() -> None:
    value = read_plain(".nan")
    assert isinstance(value, float)
    assert math.isnan(value)


def test_plain_gives_what_json_schema_needs() -> None:
    assert plain(read(SPEC).root) == {
        "family": "llama",
        "doc": "two\nlines\n",
        "axes": {"tokens": {"max": 2048, "live": "batch.num_tokens"}},
        "list": [1, {"a": ["x", "y"]}],
        "none": None,
    }


@pytest.mark.parametrize(
    ("path", "value_place", "key_place"),
    [
        ((), (2, 1, 12, 6), (2, 1, 12, 6)),
        (("family",), (2, 9, 2, 14), (2, 1, 2, 7)),
        (("doc",), (3, 6, 5, 8), (3, 1, 3, 4)),
        (("axes",), (8, 3, 8, 48), (7, 1, 7, 5)),
        (("axes", "tokens"), (8, 11, 8, 48), (8, 3, 8, 9)),
        (("axes", "tokens", "max"), (8, 17, 8, 21), (8, 12, 8, 15)),
        (("axes", "tokens", "live"), (8, 29, 8, 47), (8, 23, 8, 27)),
        (("list",), (10, 3, 11, 16), (9, 1, 9, 5)),
        (("list", 0), (10, 5, 10, 6), (10, 5, 10, 6)),
        (("list", 1, "a", 1), (11, 13, 11, 14), (11, 13, 11, 14)),
        (("none",), (12, 6, 12, 6), (12, 1, 12, 5)),
    ],
)
def test_every_key_and_value_has_its_exact_place(
    path: tuple[str | int, ...],
    value_place: tuple[int, int, int, int],
    key_place: tuple[int, int, int, int],
) -> None:
    document = read(SPEC)
    assert place(document.span_at(path)) == value_place
    assert place(document.key_span_at(path)) == key_place
    assert document.span_at(path).file == "specs/llama.yaml"


def test_lookup_of_what_was_not_written() -> None:
    document = read(SPEC)
    assert document.at(("axes", "requests")) is None
    assert document.at(("list", 2)) is None
    assert document.at(("family", "x", 0)) is None
    assert document.span_at(("axes", "requests", "max")) == document.span_at(("axes",))
    assert document.key_span_at(("axes", "requests")) == document.span_at(("axes",))


def test_keys_are_text_as_written() -> None:
    root = read("on: 1\n012: 2\ntrue: 3\n'a b': 4\n").root
    assert isinstance(root, Mapping)
    assert root.keys() == ("on", "012", "true", "a b")


def test_nodes_compare_by_content_not_by_place() -> None:
    assert read("a: [1, 2]\n").root == read("# moved\n\na:\n  - 1\n  - 2\n").root
    assert read("a: 1\n").root != read("a: '1'\n").root


def test_columns_count_characters() -> None:
    document = read("doc: {é→🙂: ü, b: 1}\n")
    assert place(document.span_at(("doc", "b"))) == (1, 18, 1, 19)


def test_an_alias_is_the_value_at_its_anchor() -> None:
    document = read("a: &rows [tokens, hidden]\nb: *rows\n")
    assert document.at(("b",)) == document.at(("a",))
    assert place(document.span_at(("b",))) == (1, 4, 1, 26)
    assert plain(document.root) == {"a": ["tokens", "hidden"], "b": ["tokens", "hidden"]}


def test_a_document_ends_where_its_last_value_ends_even_after_an_alias() -> None:
    assert place(read("a: &x 1\nb: *x\n").root.span) == (1, 1, 2, 6)


def test_name_is_the_file_without_folders() -> None:
    assert read("a: 1\n").name == "llama.yaml"


def test_quoted_text_stays_text() -> None:
    node = read("a: '012'\n").at(("a",))
    assert isinstance(node, Scalar)
    assert (node.value, node.quoted) == ("012", True)


def test_line_ends_of_windows_are_read_as_line_feeds_with_a_warning() -> None:
    document, found = load("a: 1\r\nb: |\r\n  x\r\n", "f.yaml")
    assert document is not None
    assert plain(document.root) == {"a": 1, "b": "x\n"}
    assert [(f.rule.code, f.is_error, place(f.span)) for f in found] == [
        ("PPC003", False, (1, 5, 1, 6))
    ]


def test_legal_text_between_brackets_is_left_alone() -> None:
    read('a: {why: rows (all of them) are fine, b: "x, (y", c: d}\n')
    read("a: [f(x), 'min(a', b]\n")
    read("doc: a) first, (b second\n")
    read("{a: , b: 1}\n")
