"""Whether conditions over keyed scalars can hold together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, product

from ppcgc.expr.evaluate import EvaluationError, evaluate
from ppcgc.expr.tree import Expr, Ref, Symbol
from ppcgc.expr.walk import refs
from ppcgc.ir import ConstScalar, KeyScalar, Runner

_MOST_CASES = 4096  # combinations of scalar values that are looked at


def keyed_values(runner: Runner) -> dict[Ref, tuple[int, ...]]:
    """The values of each scalar that a slot's existence may depend on."""
    found: dict[Ref, tuple[int, ...]] = {}
    for scalar in runner.scalars:
        if isinstance(scalar.mode, KeyScalar):
            found[Ref(Symbol.SCALAR, scalar.name)] = scalar.mode.values
        if isinstance(scalar.mode, ConstScalar):
            found[Ref(Symbol.SCALAR, scalar.name)] = (scalar.mode.value,)
    return found


def may_hold(runner: Runner, conditions: Sequence[Expr]) -> bool:
    """Can all conditions be true at once? True where that is not known before the build."""
    used = frozenset[Ref]().union(*(refs(condition) for condition in conditions))
    values = {ref: each for ref, each in keyed_values(runner).items() if ref in used}
    cases = list(islice(product(*values.values()), _MOST_CASES + 1))
    if len(cases) > _MOST_CASES:
        return True
    return any(_holds(conditions, dict(zip(values, case, strict=True))) for case in cases)


def _holds(conditions: Sequence[Expr], env: dict[Ref, int]) -> bool:
    """True unless one of the conditions is known to be false."""
    for condition in conditions:
        try:
            if evaluate(condition, env) is False:
                return False
        except EvaluationError:
            continue
    return True
