"""What a finding is: where, which rule, what is wrong, how to mend it.

Findings are values. A pass returns all of its findings at once; nothing in the compiler
raises for a user's mistake.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class Severity(Enum):
    """``ERROR`` stops the compiler after the pass that found it; ``WARNING`` does not."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A range of text: 1-based lines and columns, ``end_column`` is one past the last character."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind of finding: a stable code, a kebab-case name and the text ``ppcgc explain`` prints.

    ``cases`` are numbers of the public cases of ``docs/cases.md`` that the rule answers.
    """

    code: str
    name: str
    doc: str
    cases: tuple[int, ...] = ()
    severity: Severity = Severity.ERROR

    @property
    def summary(self) -> str:
        """The first line of the rule's text."""
        return self.doc.strip().splitlines()[0]


@dataclass(frozen=True, slots=True)
class Related:
    """A second place that a finding speaks of."""

    span: Span
    note: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding. ``message`` is one clause: the offending value and the limit it broke."""

    rule: Rule
    span: Span
    message: str
    help: str | None = None
    related: tuple[Related, ...] = field(default=())

    @property
    def severity(self) -> Severity:
        return self.rule.severity

    @property
    def is_error(self) -> bool:
        return self.rule.severity is Severity.ERROR


def in_order(diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    """The findings without repeats, by place, then code, then text."""
    unique = dict.fromkeys(diagnostics)
    return sorted(unique, key=lambda d: (d.span, d.rule.code, d.message))
