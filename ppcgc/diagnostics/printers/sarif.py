"""SARIF 2.1.0, which code scanning services read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import PurePath
from urllib.parse import quote

from ppcgc import __version__
from ppcgc.diagnostics.model import Diagnostic, Rule, Span

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def render(found: list[Diagnostic], texts: Mapping[str, str], *, colour: bool) -> str:
    rules = sorted({finding.rule for finding in found}, key=lambda rule: rule.code)
    driver = {
        "name": "ppcgc",
        "version": __version__,
        "rules": [_rule(rule) for rule in rules],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, rules.index(finding.rule)) for finding in found],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rule(rule: Rule) -> dict[str, object]:
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "help": {"text": rule.doc, "markdown": rule.doc},
        "defaultConfiguration": {"level": rule.severity.value},
    }


def _result(finding: Diagnostic, rule_index: int) -> dict[str, object]:
    message = f"{finding.message}\nhelp: {finding.help}" if finding.help else finding.message
    result: dict[str, object] = {
        "ruleId": finding.rule.code,
        "ruleIndex": rule_index,
        "level": finding.severity.value,
        "message": {"text": message},
        "locations": [{"physicalLocation": _location(finding.span)}],
    }
    if finding.related:
        result["relatedLocations"] = [
            {"message": {"text": place.note}, "physicalLocation": _location(place.span)}
            for place in finding.related
        ]
    return result


def _location(span: Span) -> dict[str, object]:
    path = PurePath(span.file)
    uri = path.as_uri() if path.is_absolute() else quote(path.as_posix())
    return {
        "artifactLocation": {"uri": uri},
        "region": {
            "startLine": span.line,
            "startColumn": span.column,
            "endLine": span.end_line,
            "endColumn": span.end_column,
        },
    }
