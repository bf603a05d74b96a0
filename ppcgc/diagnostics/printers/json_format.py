"""JSON for programs. ``version`` rises when a field changes its meaning or goes away."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ppcgc.diagnostics.model import Diagnostic, Span

FORMAT_VERSION = 1


def render(found: list[Diagnostic], texts: Mapping[str, str], *, colour: bool) -> str:
    return json.dumps(
        {"version": FORMAT_VERSION, "findings": [_one(finding) for finding in found]}, indent=2
    )


def _one(finding: Diagnostic) -> dict[str, object]:
    return {
        "code": finding.rule.code,
        "name": finding.rule.name,
        "severity": finding.severity.value,
        "message": finding.message,
        "help": finding.help,
        **_place(finding.span),
        "related": [{"note": place.note, **_place(place.span)} for place in finding.related],
    }


def _place(span: Span) -> dict[str, object]:
    return {
        "file": span.file,
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
    }
