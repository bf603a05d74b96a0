"""Text of an expression to tokens, each with its place in the text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from ppcgc.diagnostics.model import Span

MAX_LENGTH = 500  # characters
MAX_TOKENS = 200  # bounds the height of a tree of left-associative operators
MAX_INTEGER_DIGITS = 18  # every integer fits an int64

KEYWORDS = frozenset({"and", "or", "not", "in", "if", "else", "true", "false"})


class Kind(Enum):
    INTEGER = "integer"
    NAME = "name"
    WORD = "quoted word"
    KEYWORD = "keyword"
    OPERATOR = "operator"
    END = "end of the expression"


@dataclass(frozen=True, slots=True)
class Token:
    """``text`` is as written, without the quotes of a quoted word; offsets include them."""

    kind: Kind
    text: str
    start: int
    end: int

    def shown(self) -> str:
        return self.kind.value if self.kind is Kind.END else f"'{self.text}'"


@dataclass(frozen=True, slots=True)
class ExprError:
    """Why a text is no expression, and where."""

    message: str
    span: Span
    help: str


class BadText(Exception):
    """Raised and caught inside :mod:`ppcgc.expr`: users get an :class:`ExprError`."""

    def __init__(self, message: str, start: int, end: int, help: str) -> None:
        super().__init__(message)
        self.message = message
        self.start = start
        self.end = end
        self.help = help


_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\r\n]+)
  | (?P<integer>[0-9][0-9A-Za-z_.]*)
  | (?P<name>[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*)
  | (?P<word>'[A-Za-z0-9_.-]{1,64}'|"[A-Za-z0-9_.-]{1,64}")
  | (?P<operator>//|==|!=|<=|>=|[-+*%/<>(),])
    """,
    re.VERBOSE,
)

_INSTEAD = {
    "=": "write '==' to compare",
    "=>": "write '>='",
    "=<": "write '<='",
    "&": "write 'and'",
    "|": "write 'or'",
    "!": "write 'not' or '!='",
    "^": "powers are not part of the language: multiply",
    "?": "write 'a if condition else b'",
    "[": "indexing is not part of the language; 'in' takes a list in round brackets",
    '"': "a quoted word holds 1 to 64 letters, digits, '_', '.' or '-'",
    "'": "a quoted word holds 1 to 64 letters, digits, '_', '.' or '-'",
}

_PARTS = "an expression holds integers, names, operators, quoted words and round brackets"
_SPLIT = "make parts of it dims, and name them here"


def tokenize(text: str) -> list[Token]:
    """The tokens of ``text``, closed by one END token. Raises :class:`BadText`."""
    if len(text) > MAX_LENGTH:
        message = f"expression of {len(text)} characters; at most {MAX_LENGTH}"
        raise BadText(message, 0, len(text), _SPLIT)
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            help = _INSTEAD.get(text[at : at + 2]) or _INSTEAD.get(text[at], _PARTS)
            raise BadText(f"unexpected {text[at]!r}", at, at + 1, help)
        if match.lastgroup != "space":
            tokens.append(_token(match))
        at = match.end()
    if len(tokens) > MAX_TOKENS:
        start = tokens[MAX_TOKENS].start
        message = f"expression of {len(tokens)} tokens; at most {MAX_TOKENS}"
        raise BadText(message, start, len(text), _SPLIT)
    tokens.append(Token(Kind.END, "", len(text), len(text)))
    return tokens


def _token(match: re.Match[str]) -> Token:
    text, start, end = match.group(), match.start(), match.end()
    if match.lastgroup == "integer":
        _check_integer(text, start, end)
        return Token(Kind.INTEGER, text, start, end)
    if match.lastgroup == "word":
        return Token(Kind.WORD, text[1:-1], start, end)
    if match.lastgroup == "operator":
        return Token(Kind.OPERATOR, text, start, end)
    return Token(Kind.KEYWORD if text in KEYWORDS else Kind.NAME, text, start, end)


def _check_integer(text: str, start: int, end: int) -> None:
    if not text.isdigit():
        raise BadText(f"'{text}' is not a decimal integer", start, end, "numbers are integers here")
    if len(text) > 1 and text[0] == "0":
        raise BadText(f"'{text}' has leading zeros", start, end, f"write {int(text[:18])}")
    if len(text) > MAX_INTEGER_DIGITS:
        message = f"integer of {len(text)} digits; at most {MAX_INTEGER_DIGITS}"
        raise BadText(message, start, end, "write a smaller one: every integer fits 64 bits")


def span_inside(text: str, span: Span, start: int, end: int) -> Span:
    """Where ``text[start:end]`` stands in a file.

    ``span`` is the scalar's own, quotes included. Where the scalar is spread over lines or
    holds escapes, offsets cannot be mapped and the whole scalar is the answer.
    """
    if span.line != span.end_line:
        return span
    quotes = span.end_column - span.column - len(text)
    if quotes not in (0, 2):
        return span
    first = span.column + quotes // 2
    last = max(end, start + 1)
    return Span(span.file, span.line, first + start, span.line, first + last)
