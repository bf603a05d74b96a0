"""Places in the text of a spec: the parser's marks as spans, spans as text."""

from __future__ import annotations

from yaml.events import Event

from ppcgc.diagnostics.model import Span


class Places:
    """The lines of one text. Spans are 1-based, the parser's marks are 0-based."""

    def __init__(self, text: str, file: str) -> None:
        self._lines = text.split("\n")
        self._file = file

    def span_of(self, event: Event) -> Span:
        """Where an event stands."""
        start, end = event.start_mark, event.end_mark
        if start is None or end is None:  # events that a parser makes have both
            return Span(self._file, 1, 1, 1, 1)
        line, column = self._inside(start.line, start.column)
        end_line, end_column = self._inside(end.line, end.column)
        return Span(self._file, line, column, end_line, end_column)

    def without_blank_end(self, span: Span) -> Span:
        """The span up to its last line that is not blank: block scalars end on a later one."""
        end = span.end_line if span.end_column > 1 else span.end_line - 1
        while end > span.line and not self._lines[end - 1].strip():
            end -= 1
        return Span(self._file, span.line, span.column, end, len(self._lines[end - 1]) + 1)

    def text_of(self, span: Span) -> str:
        """What is written in a span."""
        lines = self._lines[span.line - 1 : span.end_line]
        if span.line == span.end_line:
            return lines[0][span.column - 1 : span.end_column - 1]
        first, *between, last = lines
        return "\n".join([first[span.column - 1 :], *between, last[: span.end_column - 1]])

    def _inside(self, line: int, column: int) -> tuple[int, int]:
        """A 0-based place as a 1-based one. The parser counts a line end after a last line that
        has none; such a place is the end of the text."""
        if line >= len(self._lines):
            return len(self._lines), len(self._lines[-1]) + 1
        return line + 1, column + 1
