"""A line of source with a mark under a span."""

from __future__ import annotations

from dataclasses import dataclass

from ppcgc.diagnostics.model import Span
from ppcgc.diagnostics.printers.visible import visible, width

MAX_COLUMNS = 100
_CONTEXT = 20  # characters kept before a span when a line is cut
_CUT = "…"


@dataclass(frozen=True, slots=True)
class Excerpt:
    """``line`` as shown, ``mark`` a line with spaces up to the span and marks under it."""

    number: int
    line: str
    mark: str


def excerpt(text: str, span: Span, sign: str, note: str = "") -> Excerpt:
    """The first line of a span. A long line is cut around the span; a span past the end of the
    text marks the end of its line."""
    lines = text.split("\n")
    line = lines[span.line - 1].rstrip("\r") if span.line <= len(lines) else ""
    start = min(span.column - 1, len(line))
    stop = len(line) if span.end_line > span.line else min(span.end_column - 1, len(line))
    before, marked, after = line[:start], line[start:stop], line[stop:]
    if width(line) > MAX_COLUMNS:
        before, marked, after = _cut(before, marked, after)
    signs = sign * max(1, width(marked))
    if span.end_line > span.line:
        note = f"{note} (to line {span.end_line})".strip()
    mark = f"{' ' * width(before)}{signs} {note}".rstrip()
    return Excerpt(span.line, visible(before + marked + after), mark)


def _cut(before: str, marked: str, after: str) -> tuple[str, str, str]:
    """The three parts of a long line, with what is far from the span left out."""
    room = MAX_COLUMNS - min(width(marked), MAX_COLUMNS)
    keep_before = max(_CONTEXT, room - width(after))
    if len(before) > keep_before:
        before = _CUT + before[-keep_before:].lstrip()
    if len(marked) > MAX_COLUMNS:
        return before, marked[:MAX_COLUMNS] + _CUT, ""
    keep_after = max(0, MAX_COLUMNS - width(before) - width(marked))
    if len(after) > keep_after:
        after = after[:keep_after].rstrip() + _CUT
    return before, marked, after
