"""Integer, condition or word: the type of an expression, found without evaluating it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from ppcgc.expr.printing import to_text
from ppcgc.expr.tree import (
    Arithmetic,
    Below,
    Bool,
    CeilDiv,
    Compare,
    Expr,
    Extreme,
    IfElse,
    In,
    Int,
    Logical,
    Name,
    Negate,
    Not,
    Ref,
    Symbol,
    Text,
)


class ExprType(Enum):
    INTEGER = "an integer"
    CONDITION = "a condition"
    WORD = "a quoted word"
    LAYERS = "a set of layers"


@dataclass(frozen=True, slots=True)
class OptionTypes:
    """The types of the declared options, and the words that an enum option may be."""

    types: Mapping[str, ExprType] = field(default_factory=dict)
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class _Mismatch(Exception):
    """Raised and caught here: the first operand of the wrong type."""


def type_problem(expr: Expr, wanted: ExprType, options: OptionTypes | None = None) -> str | None:
    """Why ``expr`` is not of the wanted type, or None when it is.

    Every reference is an integer, but for options of another type. Words are legal beside
    ``==``, ``!=`` and ``in``; beside an enum option only its own words are.
    """
    try:
        _Typing(options or OptionTypes()).need(expr, wanted)
    except _Mismatch as mismatch:
        return str(mismatch)
    return None


@dataclass(frozen=True, slots=True)
class _Typing:
    options: OptionTypes

    def need(self, expr: Expr, wanted: ExprType) -> None:
        found = self.type_of(expr)
        if found is not wanted:
            raise _Mismatch(f"'{to_text(expr)}' is {found.value} where {wanted.value} is needed")

    def type_of(self, expr: Expr) -> ExprType:
        match expr:
            case Name(("kinds", _)):
                return ExprType.LAYERS
            case Name(("options", name)) | Ref(Symbol.OPTION, name):
                return self.options.types.get(name, ExprType.INTEGER)
            case Int() | Name() | Ref():
                return ExprType.INTEGER
            case Bool():
                return ExprType.CONDITION
            case Text():
                return ExprType.WORD
            case Negate(operand) | Below(_, operand):
                return self._all(ExprType.INTEGER, operand, gives=ExprType.INTEGER)
            case Arithmetic(_, left, right) | CeilDiv(left, right):
                return self._all(ExprType.INTEGER, left, right, gives=ExprType.INTEGER)
            case Extreme(_, operands):
                return self._all(ExprType.INTEGER, *operands, gives=ExprType.INTEGER)
            case Not(operand):
                return self._all(ExprType.CONDITION, operand, gives=ExprType.CONDITION)
            case Logical(_, left, right):
                return self._all(ExprType.CONDITION, left, right, gives=ExprType.CONDITION)
            case Compare(op, left, right):
                return self._comparison(op, left, right)
            case In(item, (Name(("kinds", _)),)):
                return self._all(ExprType.INTEGER, item, gives=ExprType.CONDITION)
            case In(item, choices):
                return self._same(item, choices)
            case IfElse(then, condition, otherwise):
                self.need(condition, ExprType.CONDITION)
                return self._all(self.type_of(then), otherwise, gives=self.type_of(then))

    def _comparison(self, op: str, left: Expr, right: Expr) -> ExprType:
        if op in ("==", "!="):
            return self._same(left, (right,))
        return self._all(ExprType.INTEGER, left, right, gives=ExprType.CONDITION)

    def _same(self, item: Expr, choices: tuple[Expr, ...]) -> ExprType:
        wanted = self.type_of(item)
        if wanted is ExprType.LAYERS:
            raise _Mismatch(
                f"'{to_text(item)}' is a set of layers: write 'layer in {to_text(item)}'"
            )
        self._all(wanted, *choices, gives=ExprType.CONDITION)
        self._check_words((item, *choices))
        return ExprType.CONDITION

    def _check_words(self, compared: tuple[Expr, ...]) -> None:
        names = [each.path[1] for each in compared if _is_option(each) and isinstance(each, Name)]
        for name in names:
            words = self.options.words.get(name)
            for word in compared:
                if words is not None and isinstance(word, Text) and word.value not in words:
                    listed = ", ".join(words)
                    raise _Mismatch(f"'{word.value}' is no value of options.{name}: {listed}")

    def _all(self, wanted: ExprType, *operands: Expr, gives: ExprType) -> ExprType:
        for operand in operands:
            self.need(operand, wanted)
        return gives


def _is_option(expr: Expr) -> bool:
    return isinstance(expr, Name) and len(expr.path) == 2 and expr.path[0] == "options"
