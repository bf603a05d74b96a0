"""The registry of rules: every code that ppcgc can print, with its text.

A pass defines its rules where it checks them, through :func:`rule`; :func:`all_rules` imports
the passes and lists what they defined.
"""

from __future__ import annotations

from importlib import import_module
from inspect import cleandoc

from ppcgc.diagnostics.model import Rule, Severity

# modules that define rules, themselves or through what they import, in the order of the passes
_PASSES = (
    "ppcgc.load",
    "ppcgc.extend",
    "ppcgc.validate.schema",
    "ppcgc.resolve",
    "ppcgc.validate.rules",
    "ppcgc.bind",
    "ppcgc.driver",
    "ppcgc.publish",
)

_RULES: dict[str, Rule] = {}

#: Codes that ppcgc printed once, and why it does not any more. They stay taken.
RETIRED = {
    "PPC204": "late rows may repeat the last one: they are padded when the step is finished",
}


def rule(
    code: str,
    name: str,
    doc: str,
    *,
    cases: tuple[int, ...] = (),
    severity: Severity = Severity.ERROR,
) -> Rule:
    """Define a rule. Raises ``ValueError`` when the code or the name is taken."""
    if code in RETIRED:
        raise ValueError(f"rule {code} {name}: the code is retired and may not come back")
    made = Rule(code=code, name=name, doc=cleandoc(doc), cases=cases, severity=severity)
    for other in _RULES.values():
        if other.code == code or other.name == name:
            raise ValueError(f"rule {code} {name}: taken by {other.code} {other.name}")
    _RULES[code] = made
    return made


def registered() -> tuple[Rule, ...]:
    """The rules defined so far, by code."""
    return tuple(_RULES[code] for code in sorted(_RULES))


def all_rules() -> tuple[Rule, ...]:
    """Every rule of the compiler, by code."""
    for name in _PASSES:
        import_module(name)
    return registered()
