"""How a rule is written: one function that finds breaches, its docstring the rule's text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from ppcgc.diagnostics.catalogue import rule
from ppcgc.diagnostics.model import Diagnostic, Related, Rule, Severity, Span
from ppcgc.ir import Family


@dataclass(frozen=True, slots=True)
class Finding:
    """A breach of the rule whose check yields it."""

    span: Span
    message: str
    help: str
    related: tuple[Related, ...] = field(default=())


Check: TypeAlias = Callable[[Family], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class CheckedRule:
    """A rule and the function that finds its breaches in a family."""

    rule: Rule
    check: Check

    def diagnostics(self, family: Family) -> Iterator[Diagnostic]:
        for found in self.check(family):
            yield Diagnostic(self.rule, found.span, found.message, found.help, found.related)


_CHECKED: list[CheckedRule] = []


def checked(
    code: str, name: str, *, cases: tuple[int, ...] = (), warning: bool = False
) -> Callable[[Check], Check]:
    """Make a check the check of rule ``code``; its docstring becomes the rule's text."""

    def register(check: Check) -> Check:
        severity = Severity.WARNING if warning else Severity.ERROR
        made = rule(code, name, check.__doc__ or "", cases=cases, severity=severity)
        _CHECKED.append(CheckedRule(made, check))
        return check

    return register


def checked_rules() -> tuple[CheckedRule, ...]:
    """Every rule with a check, in the order of codes."""
    return tuple(sorted(_CHECKED, key=lambda each: each.rule.code))
