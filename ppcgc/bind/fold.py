"""Expressions with the values that are known put in, as short as they become by that.

A part whose values are all known becomes its value. One that has none, such as a division by
zero, stays as it is: generated code then raises where it would have raised without a binding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar, cast, get_args

from ppcgc.diagnostics.model import Span
from ppcgc.expr.evaluate import EvaluationError, Value, evaluate
from ppcgc.expr.tree import (
    Below,
    Bool,
    Compare,
    Expr,
    IfElse,
    In,
    Int,
    Logical,
    Name,
    Ref,
    Symbol,
    Text,
)
from ppcgc.expr.walk import children, rebuild, refs

NodeT = TypeVar("NodeT")

CUT = Ref(Symbol.CUT, "layer")
_EXPRESSIONS = get_args(Expr)


@dataclass(frozen=True, slots=True, kw_only=True)
class Folding:
    """``env`` has the known values, ``kinds`` the layers of each kind, ``cuts`` all cuts."""

    env: Mapping[Ref, Value]
    kinds: Mapping[str, frozenset[int]]
    cuts: tuple[int, ...] = ()

    def node(self, node: NodeT) -> NodeT:
        """A part of the typed spec, or a tuple of them, with every expression in it folded."""
        return cast(NodeT, self._folded(node))

    def _folded(self, value: object) -> object:
        if isinstance(value, _EXPRESSIONS):
            return self.expr(cast(Expr, value))
        if isinstance(value, tuple):
            return tuple(self._folded(item) for item in value)
        if not is_dataclass(value) or isinstance(value, type | Span):
            return value
        changed = {}
        for field in fields(value):
            old = getattr(value, field.name)
            new = self._folded(old)
            if new is not old and new != old:
                changed[field.name] = new
        return replace(cast(Any, value), **changed) if changed else value

    def expr(self, expr: Expr) -> Expr:
        """The expression folded; one of ``cut.layer`` over all cuts, where they are known."""
        folded = rebuild(expr, self._fold)
        if not self.cuts or CUT not in refs(folded):
            return folded
        return self._over_cuts(expr, folded)

    def _over_cuts(self, expr: Expr, folded: Expr) -> Expr:
        """One value, or the choice between the values that the cuts have."""
        values = {cut: self._at(cut)._whole(expr) for cut in self.cuts}
        last = values[self.cuts[-1]]
        if all(value == last for value in values.values()):
            return last
        if not all(isinstance(value, Int | Bool | Text) for value in values.values()):
            return folded
        if isinstance(last, Bool):
            holds = tuple(Int(cut) for cut, value in values.items() if value == Bool(True))
            return In(CUT, holds)
        chosen = last
        for cut in reversed(self.cuts[:-1]):
            chosen = IfElse(values[cut], Compare("==", CUT, Int(cut)), chosen)
        return chosen

    def _at(self, cut: int) -> Folding:
        return replace(self, env={**self.env, CUT: cut}, cuts=())

    def _whole(self, expr: Expr) -> Expr:
        return rebuild(expr, self._fold)

    def _fold(self, node: Expr) -> Expr:
        """A node whose operands are folded already."""
        match node:
            case Ref() if node in self.env:
                return literal_of(self.env[node])
            case In(item, (Name(("kinds", kind)),)) if kind in self.kinds:
                layers = tuple(Int(layer) for layer in sorted(self.kinds[kind]))
                return self._fold(In(item, layers)) if layers else Bool(False)
            case Below(kind, Int(limit)) if kind in self.kinds:
                return Int(sum(layer < limit for layer in self.kinds[kind]))
            case Logical(op, Bool(value), right):
                return right if value == (op == "and") else Bool(value)
            case Logical(op, left, Bool(value)) if value == (op == "and"):
                return left
            case IfElse(then, Bool(value), otherwise):
                return then if value else otherwise
        operands = children(node)
        if not operands or not all(isinstance(each, Int | Bool | Text) for each in operands):
            return node
        try:
            return literal_of(evaluate(node, {}))
        except EvaluationError:
            return node


def literal_of(value: Value) -> Expr:
    """A value as a leaf of a tree."""
    if isinstance(value, bool):
        return Bool(value)
    return Int(value) if isinstance(value, int) else Text(value)
