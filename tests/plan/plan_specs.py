"""Small families for tests of the plan, and changes of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ppcgc.diagnostics.model import Span
from ppcgc.expr.names import Scope, name_refs
from ppcgc.expr.parse import parse
from ppcgc.expr.tokens import ExprError
from ppcgc.expr.tree import Expr, Symbol
from ppcgc.ir import (
    Axis,
    BucketRule,
    EqualsBuckets,
    Family,
    Limit,
    ListedBuckets,
    MaxBucket,
    PaddedBuckets,
    Runner,
)
from ppcgc.load import load
from ppcgc.resolve import resolve
from ppcgc.validate import schema

SPEC = (Path(__file__).parent / "small.yaml").read_text(encoding="utf-8")
NOWHERE = Span("spec.yaml", 1, 1, 1, 2)


def family_of(text: str = SPEC, file: str = "spec.yaml") -> Family:
    """The family of a spec that is sound up to the rules."""
    document, found = load(text, file)
    assert document is not None, found
    found = [*found, *schema.check(document)]
    assert not [finding for finding in found if finding.is_error], found
    family, findings = resolve(document)
    assert family is not None, findings
    return family


def expression(text: str, symbol: Symbol) -> Expr:
    """An expression over bare axes, each of them as ``symbol``."""
    parsed = parse(text, NOWHERE)
    assert not isinstance(parsed, ExprError), parsed
    scope = Scope(
        place="in a test",
        dims=frozenset(),
        axes=frozenset({"tokens", "requests", "images"}),
        symbols=frozenset({symbol}),
        bare_axis=symbol,
    )
    named, unknown = name_refs(parsed, scope)
    assert not unknown, unknown
    return named


def listed(axis: str, *sizes: int) -> BucketRule:
    return ListedBuckets(axis=axis, sizes=sizes, span=NOWHERE)


def at_max(axis: str) -> BucketRule:
    return MaxBucket(axis=axis, span=NOWHERE)


def equals(axis: str, text: str) -> BucketRule:
    return EqualsBuckets(axis=axis, expr=expression(text, Symbol.LIVE), span=NOWHERE)


def padded(axis: str, text: str) -> BucketRule:
    return PaddedBuckets(axis=axis, expr=expression(text, Symbol.PADDED), span=NOWHERE)


def runner_with(*rules: BucketRule, limits: tuple[str, ...] = ()) -> Runner:
    """A runner with these buckets and limits, else as the first of ``SPEC``."""
    made = tuple(
        Limit(expr=expression(text, Symbol.LIVE), text=text, span=NOWHERE) for text in limits
    )
    return replace(family_of().runners[0], buckets=rules, limits=made)


def axes_of(**changes: Axis) -> dict[str, Axis]:
    """The axes of ``SPEC``, some of them replaced."""
    return {axis.name: axis for axis in family_of().axes} | changes
