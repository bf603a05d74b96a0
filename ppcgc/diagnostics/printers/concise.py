"""One line a finding, for grep and for editors that jump to ``file:line:column``."""

from __future__ import annotations

from collections.abc import Mapping

from ppcgc.diagnostics.model import Diagnostic
from ppcgc.diagnostics.printers.visible import visible


def render(found: list[Diagnostic], texts: Mapping[str, str], *, colour: bool) -> str:
    return "\n".join(_one(finding) for finding in found)


def _one(finding: Diagnostic) -> str:
    line = f"{finding.span}: {finding.severity.value}[{finding.rule.code}] {finding.message}"
    return visible(f"{line} (help: {finding.help})" if finding.help else line)
