"""Finds text between brackets that YAML cut at a comma: ``[min(a, b)]`` is two items."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ppcgc.diagnostics.model import Diagnostic, Span
from ppcgc.load import findings


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A scalar directly inside ``[...]`` or ``{...}``, key or value, in the order written."""

    text: str
    span: Span
    quoted: bool
    is_key: bool = False
    without_colon: bool = False  # a key that has no colon, hence no value


def find_split(pieces: list[Piece], slice_of: Callable[[Span], str]) -> Iterator[Diagnostic]:
    """A finding for each text that was cut. ``slice_of`` gives the source text of a span."""
    opened: Piece | None = None
    before: Piece | None = None
    balance = 0
    for piece in pieces:
        change = 0 if piece.quoted else piece.text.count("(") - piece.text.count(")")
        if opened is not None:
            balance += change
            if balance <= 0:
                yield _finding(opened, piece, slice_of)
                opened = None
        elif change > 0:
            opened, balance = piece, change
        elif change < 0:
            yield _finding(piece, piece, slice_of)
        elif piece.without_colon and before is not None and _is_plain_value(before):
            yield _finding(before, piece, slice_of)
        before = piece
    if opened is not None:
        yield _finding(opened, opened, slice_of)


def _is_plain_value(piece: Piece) -> bool:
    return not piece.quoted and not piece.is_key


def _finding(first: Piece, last: Piece, slice_of: Callable[[Span], str]) -> Diagnostic:
    start, end = first.span, last.span
    span = Span(start.file, start.line, start.column, end.end_line, end.end_column)
    written = " ".join(slice_of(span).split())
    if first is last:
        message = f"`{written}` has a bracket without its partner"
        help_ = f"put the whole text in quotes, if it is one: {json.dumps(written)}"
    else:
        message = f"YAML cuts `{written}` in two at its comma"
        help_ = f"put it in quotes: {json.dumps(written, ensure_ascii=False)}"
    return Diagnostic(rule=findings.SPLIT_TEXT, span=span, message=message, help=help_)
