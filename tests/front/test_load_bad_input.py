"""A corpus of bad files: each gets its finding at its place, never a traceback."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppcgc.load import decode, load

ALIASES = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 9)
)
CHAIN = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 40))

# text, code, (line, column) of the first finding
CORPUS: dict[str, tuple[str, str, tuple[int, int]]] = {
    "NUL": ("a: \x00\n", "PPC002", (1, 4)),
    "escape sequence": ("a: 1\nb: \x1b[31mred\n", "PPC002", (2, 4)),
    "byte order mark": ("\ufeffa: 1\n", "PPC002", (1, 1)),
    "next line": ("a: 1\x85b: 2\n", "PPC002", (1, 5)),
    "line separator": ("a: 'x\u2028y'\n", "PPC002", (1, 6)),
    "direction mark": ("a: 'x\u202ey'\n", "PPC002", (1, 6)),
    "lone carriage return": ("a: 1\rb: 2\n", "PPC002", (1, 5)),
    "lone surrogate": ("a: \udc80\n", "PPC002", (1, 4)),
    "escaped NUL": ('a: "\\0"\n', "PPC002", (1, 4)),
    "tab": ("a:\n\tb: 1\n", "PPC004", (2, 1)),
    "tab after spaces": ("a:\n  \tb: 1\n", "PPC004", (2, 3)),
    "open bracket": ("a: [1, 2\nb: 3\n", "PPC005", (2, 2)),
    "open quote": ("a: 'x\n", "PPC005", (2, 1)),
    "colon in text": ("a: b: c\n", "PPC005", (1, 5)),
    "bad indentation": ("- 1\na: 2\n", "PPC005", (2, 1)),
    "at sign": ("a: @x\n", "PPC005", (1, 4)),
    "bracket in flow text": ("a: [b[0], c]\n", "PPC005", (1, 6)),
    "text after the end": ("a: 1\n...\nb\n", "PPC005", (3, 1)),
    "empty": ("", "PPC006", (1, 1)),
    "blank": ("\n  \n", "PPC006", (1, 1)),
    "comment only": ("# nothing\n", "PPC006", (1, 1)),
    "only null": ("\n null\n", "PPC006", (2, 2)),
    "only a marker": ("---\n", "PPC006", (1, 1)),
    "two documents": ("a: 1\n---\nb: 1\n", "PPC007", (2, 1)),
    "tag": ("a: !!str 1\n", "PPC008", (1, 4)),
    "own tag": ("a: ! 1\n", "PPC008", (1, 4)),
    "object tag": ("!!python/object/apply:os.system [x]\n", "PPC008", (1, 1)),
    "tag directive": ("%TAG ! tag:x,2000:\n---\na: 1\n", "PPC008", (1, 1)),
    "duplicate key": ("a: 1\nb: 1\na: 2\n", "PPC009", (3, 1)),
    "duplicate in flow": ("a: {b: 1, 'b': 2}\n", "PPC009", (1, 11)),
    "list as key": ("? [a]\n: 1\n", "PPC010", (1, 3)),
    "mapping as key": ("{{a}: 1}\n", "PPC010", (1, 2)),
    "no key": ("? \n: 1\n", "PPC010", (1, 2)),
    "alias as key": ("a: &x y\n*x : 1\n", "PPC010", (2, 1)),
    "merge key": ("a: &x {b: 1}\nc: {<<: *x}\n", "PPC011", (2, 5)),
    "unknown alias": ("a: *x\n", "PPC012", (1, 4)),
    "anchor twice": ("a: &x 1\nb: &x 2\n", "PPC012", (2, 4)),
    "alias loop": ("a: &x [1, *x]\n", "PPC012", (1, 11)),
    "too large": ("#" * (1 << 20) + "\n", "PPC013", (1, 1)),
    "brackets": ("[" * 100_000, "PPC014", (1, 1001)),
    "brackets in time": ("[" * 40 + "]" * 40, "PPC014", (1, 33)),
    "braces": ("{a: " * 100_000, "PPC014", (1, 129)),
    "dashes": ("- " * 100_000, "PPC014", (1, 65)),
    "aliases in aliases": (CHAIN, "PPC014", (32, 12)),
    "billion laughs": (ALIASES, "PPC015", (5, 25)),
    "many values": ("[" + "1," * 60_000 + "]", "PPC015", (1, 100_000)),
    "huge integer": ("a: " + "9" * 100_000, "PPC016", (1, 4)),
    "65 bits": (f"a: {2**64}\n", "PPC016", (1, 4)),
    "negative 64 bits": (f"a: {-(2**63) - 1}\n", "PPC016", (1, 4)),
    "huge float": ("a: 1e999\n", "PPC016", (1, 4)),
    "call in a list": ("a: [min(b, c)]\n", "PPC017", (1, 5)),
    "call in a mapping": ("a: {fill: min(b, c)}\n", "PPC017", (1, 11)),
    "comma in a mapping": ("a: {why: hello, world}\n", "PPC017", (1, 10)),
    "open parenthesis": ("a: [(b]\n", "PPC017", (1, 5)),
    "close parenthesis": ("a: {b: c)}\n", "PPC017", (1, 8)),
}


@pytest.mark.parametrize("name", CORPUS)
def test_corpus(name: str) -> None:
    text, code, place = CORPUS[name]
    document, found = load(text, "f.yaml")
    assert document is None
    assert [(f.rule.code, (f.span.line, f.span.column)) for f in found] == [(code, place)]
    assert all(f.message and f.help for f in found)


def test_all_findings_of_a_file_at_once() -> None:
    text = "a: !x 1\na: 2\nb: [f(1, 2)]\n<<: 3\nc: 1e999\n"
    _, found = load(text, "f.yaml")
    assert [(f.rule.code, f.span.line) for f in found] == [
        ("PPC008", 1),
        ("PPC009", 2),
        ("PPC017", 3),
        ("PPC011", 4),
        ("PPC016", 5),
    ]


def test_duplicate_key_shows_both_places() -> None:
    _, found = load("a: 1\nb: 1\na: 2\n", "f.yaml")
    assert [(str(r.span), r.note) for r in found[0].related] == [("f.yaml:1:1", "first given here")]


def test_split_text_says_how_to_quote_the_whole() -> None:
    _, found = load("shape: [min(tokens, 8), hidden]\n", "f.yaml")
    assert found[0].help == 'put it in quotes: "min(tokens, 8)"'
    assert (found[0].span.column, found[0].span.end_column) == (9, 23)


def test_a_text_over_several_commas_is_one_finding() -> None:
    _, found = load("a: [max(1, min(2, 3), 4)]\n", "f.yaml")
    assert [f.message for f in found] == ["YAML cuts `max(1, min(2, 3), 4)` in two at its comma"]


@pytest.mark.parametrize(
    ("data", "place", "words"),
    [
        (b"a: 1\nb: \xff\n", (2, 4), "0xff"),
        ("a: é".encode("latin-1"), (1, 4), "0xe9"),
        (b"\xff\xfea\x00", (1, 1), "UTF-16"),
        ("é: \u00fc".encode() + b"\xc3", (1, 5), "0xc3"),
    ],
)
def test_bytes_that_are_not_utf8(data: bytes, place: tuple[int, int], words: str) -> None:
    _, found = decode(data, "f.yaml")
    assert [f.rule.code for f in found] == ["PPC001"]
    assert (found[0].span.line, found[0].span.column) == place
    assert words in found[0].message


def test_bytes_beyond_the_bound_are_not_decoded() -> None:
    text, found = decode(b"x" * ((1 << 20) + 1), "f.yaml")
    assert (text, [f.rule.code for f in found]) == ("", ["PPC013"])


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="ab:-[]{},&*!|>'\"%@`#?~<0.\n\t \\(é\x00", max_size=60))
def test_no_text_raises(text: str) -> None:
    document, found = load(text, "f.yaml")
    assert (document is None) == any(f.is_error for f in found)
    lines = text.replace("\r\n", "\n").split("\n")
    for finding in found:
        assert 1 <= finding.span.line <= len(lines) + 1
        assert finding.span.column >= 1
