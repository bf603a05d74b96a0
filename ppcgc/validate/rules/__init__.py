"""What a legal spec must hold beyond its form: one small unit a rule, by topic.

Each topic module defines its rules with :func:`ppcgc.validate.rules.checks.checked`. Rules do
not depend on each other: all of them run over every family, and none assumes that another holds.
"""

from __future__ import annotations

from ppcgc.diagnostics.model import Diagnostic, in_order
from ppcgc.ir import Family
from ppcgc.validate.rules import (  # importing a topic registers its rules
    axes,
    boundary,
    buckets,
    choices,
    coverage,
    cuts,
    derived,
    dispatch,
    dtypes,
    eligibility,
    following,
    forward,
    graphs,
    groups,
    hook_use,
    hooks,
    kinds,
    outputs,
    overlaps,
    padding,
    paths,
    pipeline,
    ranks,
    role_padding,
    roles,
    runner_stages,
    scalars,
    shapes,
    slots,
    sources,
    state,
    transport,
    twins,
    unused,
)
from ppcgc.validate.rules.checks import checked_rules

__all__ = [
    "axes",
    "boundary",
    "buckets",
    "check",
    "check_sizes",
    "choices",
    "coverage",
    "cuts",
    "derived",
    "dispatch",
    "dtypes",
    "eligibility",
    "following",
    "forward",
    "graphs",
    "groups",
    "hook_use",
    "hooks",
    "kinds",
    "outputs",
    "overlaps",
    "padding",
    "paths",
    "pipeline",
    "ranks",
    "role_padding",
    "roles",
    "runner_stages",
    "scalars",
    "shapes",
    "slots",
    "sources",
    "state",
    "transport",
    "twins",
    "unused",
]


def check(family: Family) -> list[Diagnostic]:
    """Every breach of every rule, in order of place."""
    found = [each for checked in checked_rules() for each in checked.diagnostics(family)]
    return in_order(found)


# of sizes that follow from numbers of a build: too large, too small, none, too many, out of range
_OF_SIZES = frozenset(
    {"PPC213", "PPC243", "PPC246", "PPC316", "PPC318", "PPC322", "PPC324", "PPC325"}
)


def check_sizes(family: Family) -> list[Diagnostic]:
    """The same for the rules of sizes alone, for a family whose numbers are known now."""
    rules = (checked for checked in checked_rules() if checked.rule.code in _OF_SIZES)
    return in_order([each for checked in rules for each in checked.diagnostics(family)])
