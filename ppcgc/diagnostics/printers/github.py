"""Workflow commands of GitHub Actions: findings as annotations on a pull request."""

from __future__ import annotations

from collections.abc import Mapping

from ppcgc.diagnostics.model import Diagnostic


def render(found: list[Diagnostic], texts: Mapping[str, str], *, colour: bool) -> str:
    return "\n".join(_one(finding) for finding in found)


def _one(finding: Diagnostic) -> str:
    span = finding.span
    properties = {
        "file": span.file,
        "line": span.line,
        "endLine": span.end_line,
        "col": span.column,
        "endColumn": span.end_column,
        "title": f"{finding.rule.code} {finding.rule.name}",
    }
    if span.end_line != span.line:
        del properties["col"], properties["endColumn"]  # columns are legal on one line only
    listed = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    return f"::{finding.severity.value} {listed}::{_data(_message(finding))}"


def _message(finding: Diagnostic) -> str:
    notes = [f"{place.span}: {place.note}" for place in finding.related]
    helped = [f"help: {finding.help}"] if finding.help else []
    return "\n".join([finding.message, *notes, *helped])


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
