"""A parser's complaint as a finding."""

from __future__ import annotations

import yaml

from ppcgc.diagnostics.model import Diagnostic, Related, Span
from ppcgc.load import findings

# words of the parser's message, and what usually mends the text
_HELP = (
    ("nesting depth", "close the brackets; the rest of the file was not read"),
    ("<document start>", "remove what follows `...`: a file holds one spec"),
    ("mapping values are not allowed", "put text that holds `: ` in quotes"),
    ("cannot start any token", "put text that starts with this character in quotes"),
    ("expected ',' or", "close the bracket, or put text with commas or brackets in quotes"),
    ("expected key", "check the indentation of this line and of the lines above it"),
    ("expected '-'", "check the indentation of this line and of the lines above it"),
    ("expected <block end>", "check the indentation of this line and of the lines above it"),
    ("unexpected end of stream", "close the quote"),
    ("could not find expected ':'", "write `key: value`, or put text of several lines in quotes"),
)
_OTHER = "check the indentation, brackets and quotes here and on the line above"


def syntax_finding(error: yaml.YAMLError, file: str) -> Diagnostic:
    """The finding for a text that is not YAML, at the place where the parser stopped."""
    problem = str(getattr(error, "problem", None) or getattr(error, "reason", None) or error)
    context = getattr(error, "context", None)
    span = _place(getattr(error, "problem_mark", None), file)
    return Diagnostic(
        # the parser's own bound is passed first where very many brackets open on one line
        rule=findings.TOO_DEEP if "nesting depth" in problem else findings.NOT_YAML,
        span=span,
        message=f"{problem} {context}" if context else problem,
        help=next((text for words, text in _HELP if words in problem), _OTHER),
        related=_started(error, span),
    )


def _started(error: yaml.YAMLError, stopped: Span) -> tuple[Related, ...]:
    mark = getattr(error, "context_mark", None)
    started = _place(mark, stopped.file)
    if mark is None or started == stopped:
        return ()
    return (Related(started, "what was being read starts here"),)


def _place(mark: object, file: str) -> Span:
    line = getattr(mark, "line", 0) + 1
    column = getattr(mark, "column", 0) + 1
    return Span(file, line, column, line, column + 1)
