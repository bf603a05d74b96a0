"""Findings and how they are printed."""

from ppcgc.diagnostics.model import Diagnostic, Related, Rule, Severity, Span, in_order

__all__ = ["Diagnostic", "Related", "Rule", "Severity", "Span", "in_order"]
