"""``python -m ppcgc.docs``: the reference of rules and what answers each public case.

Writes ``docs/rules.md`` and ``docs/cases.md`` of a checkout; tests compare them.
"""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path

from ppcgc.diagnostics.catalogue import all_rules
from ppcgc.diagnostics.model import Rule, Severity
from ppcgc.docs_cases import CASES_PAGE, cases_page

RULES_PAGE = Path(__file__).parent.parent / "docs" / "rules.md"

_TOPICS = {
    "PPC0": "Reading files",
    "PPC1": "Form, names and expressions",
    "PPC2": "Slots",
    "PPC3": "Axes and buckets",
    "PPC4": "Pipeline and boundary",
    "PPC5": "Forward and outputs",
    "PPC6": "State, dispatch and the rest",
}

_HEAD = """\
# Rules

Every finding of `ppcgc validate` has a code. `ppcgc explain CODE` prints the same text. Codes
are never used again for something else. A warning does not stop `ppcgc generate`.

This page is written by `python -m ppcgc.docs` from the rules themselves.
"""


def rules_page() -> str:
    """The Markdown of ``docs/rules.md``: a table of all rules, then each rule's text by topic."""
    rules = all_rules()
    parts = [_HEAD, _table(rules)]
    for prefix, group in groupby(rules, key=lambda rule: rule.code[:4]):
        parts.append(f"## {_TOPICS.get(prefix, prefix)}\n")
        parts += [_section(rule) for rule in group]
    return "\n".join(parts)


def _table(rules: tuple[Rule, ...]) -> str:
    rows = [
        f"| [{rule.code}](#{_anchor(rule)}) | {rule.name} | {rule.severity.value} "
        f"| {rule.summary.replace('|', chr(92) + '|')} |"
        for rule in rules
    ]
    return "\n".join(["| code | name | severity | what |", "| --- | --- | --- | --- |", *rows, ""])


def _anchor(rule: Rule) -> str:
    return f"{rule.code}-{rule.name}".lower()


def _section(rule: Rule) -> str:
    severity = " (warning)" if rule.severity is Severity.WARNING else ""
    return f'<a id="{_anchor(rule)}"></a>\n\n### {rule.code} {rule.name}{severity}\n\n{rule.doc}\n'


def main() -> int:
    RULES_PAGE.parent.mkdir(exist_ok=True)
    RULES_PAGE.write_text(rules_page(), encoding="utf-8")
    CASES_PAGE.write_text(cases_page(all_rules()), encoding="utf-8")
    sys.stdout.write(f"wrote {RULES_PAGE.name}, {CASES_PAGE.name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
