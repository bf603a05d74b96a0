"""Every rule from extends to the family: a spec it refuses, a spec it lets pass.

A folder a rule: ``bad.yaml`` with all findings in ``bad.txt``, ``good.yaml`` without a finding
of the rule and without any error. Specs that they extend lie beside them; ``bad.bind.json`` has
the config, and the number of stages, that a spec's code is then generated for.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import pytest

from ppcgc.bind import Binding, bind
from ppcgc.bind import rules as bind_rules
from ppcgc.diagnostics.model import Diagnostic, Rule
from ppcgc.diagnostics.printers import render
from ppcgc.extend import extend
from ppcgc.extend import rules as extend_rules
from ppcgc.ir import Family
from ppcgc.load import load
from ppcgc.resolve import resolve
from ppcgc.resolve import rules as resolve_rules
from ppcgc.validate import form_rules, schema
from ppcgc.validate import rules as family_rules
from ppcgc.validate.rules.checks import checked_rules

HERE = Path(__file__).parent
CASES = sorted(path for path in HERE.iterdir() if path.is_dir() and path.name.startswith("PPC"))


def findings(path: Path) -> list[Diagnostic]:
    """All findings of the passes up to the rules; a pass with errors is the last to run."""
    document, found = load(path.read_text(encoding="utf-8"), path.name)
    if document is None:
        return found
    extended = extend(document, path.parent)
    found = found + list(extended.findings)
    if extended.document is None:
        return found
    document = extended.document
    found += schema.check(document)
    if any(finding.is_error for finding in found):
        return found
    family, later = resolve(document)
    found += later
    if family is None:
        return found
    found += family_rules.check(family)
    return found + bound_findings(family, path.with_suffix(".bind.json"))


def bound_findings(family: Family, path: Path) -> list[Diagnostic]:
    """What is found when the family is bound, where its case says to what."""
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    asked = json.loads(text)
    request = Binding(
        file=path.name, text=text, config=asked["config"], given={}, stages=asked["stages"]
    )
    return bind(family, request)[1]


def rules_with_cases() -> list[Rule]:
    defined = [
        value
        for module in (extend_rules, form_rules, resolve_rules, bind_rules)
        for _, value in inspect.getmembers(module)
        if isinstance(value, Rule)
    ]
    return defined + [checked.rule for checked in checked_rules()]


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_bad_spec_gets_exactly_the_committed_findings(case: Path, update_golden: bool) -> None:
    found = findings(case / "bad.yaml")
    text = (case / "bad.yaml").read_text(encoding="utf-8")
    shown = render("concise", found, {"bad.yaml": text})
    committed = case / "bad.txt"
    if update_golden:
        committed.write_text(shown, encoding="utf-8")
    code = case.name.partition("-")[0]
    assert code in {finding.rule.code for finding in found}
    assert [finding.message for finding in found if not finding.help] == []
    assert shown == committed.read_text(encoding="utf-8")


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_good_spec_passes(case: Path) -> None:
    found = findings(case / "good.yaml")
    code = case.name.partition("-")[0]
    assert [f.message for f in found if f.is_error or f.rule.code == code] == []


def test_every_rule_has_a_case() -> None:
    assert {case.name for case in CASES} == {f"{r.code}-{r.name}" for r in rules_with_cases()}


@pytest.mark.parametrize("rule", rules_with_cases(), ids=lambda rule: str(rule.code))
def test_rule_text_says_what_why_bad_and_good(rule: Rule) -> None:
    assert rule.summary.endswith(".")
    for part in ("**What.**", "**Why it hurts.**", "**Bad**", "**Good**"):
        assert part in rule.doc
    assert not rule.cases or "Seen in:" in rule.doc
