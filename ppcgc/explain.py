"""``ppcgc explain``: a rule's text by its code or name."""

from __future__ import annotations

import json
from collections.abc import Iterable
from difflib import get_close_matches

from ppcgc.diagnostics.catalogue import RETIRED, all_rules
from ppcgc.diagnostics.model import Rule


class UnknownRuleError(Exception):
    """No rule has the code or name. The message names the nearest ones, or why one is retired."""


def find_rule(wanted: str) -> Rule:
    """The rule of a code or a kebab-case name, in any case. Raises :class:`UnknownRuleError`."""
    rules = all_rules()
    names = {rule.code.lower(): rule for rule in rules} | {rule.name: rule for rule in rules}
    rule = names.get(wanted.lower())
    if rule is not None:
        return rule
    if wanted.upper() in RETIRED:
        raise UnknownRuleError(f"{wanted.upper()} is retired: {RETIRED[wanted.upper()]}")
    near = get_close_matches(wanted.lower(), names, n=3)
    listed = ", ".join(f"{names[name].code} {names[name].name}" for name in near)
    raise UnknownRuleError(
        f"no rule `{wanted}`"
        + (f"; did you mean {listed}?" if near else "; `ppcgc explain --all` lists them")
    )


def as_text(rules: Iterable[Rule]) -> str:
    """Markdown, one section a rule."""
    return "\n\n".join(_section(rule) for rule in rules)


def _section(rule: Rule) -> str:
    title = f"# {rule.code} {rule.name} ({rule.severity.value})"
    cases = ", ".join(str(case) for case in rule.cases)
    ending = f"\n\nAnswers the public cases {cases} of docs/cases.md." if rule.cases else ""
    return f"{title}\n\n{rule.doc.strip()}{ending}"


def as_json(rules: Iterable[Rule]) -> str:
    return json.dumps({"version": 1, "rules": [_fields(rule) for rule in rules]}, indent=2)


def _fields(rule: Rule) -> dict[str, object]:
    return {
        "code": rule.code,
        "name": rule.name,
        "severity": rule.severity.value,
        "summary": rule.summary,
        "text": rule.doc,
        "cases": list(rule.cases),
    }
