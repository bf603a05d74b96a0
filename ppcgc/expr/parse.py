"""Text to tree, by precedence climbing over the tokens.

From loosest to tightest: ``a if c else b`` · ``or`` · ``and`` · ``not`` · comparisons and ``in``
· ``+ -`` · ``* // %`` · unary ``-`` · names, integers, quoted words, calls, brackets.
"""

from __future__ import annotations

from ppcgc.diagnostics.model import Span
from ppcgc.expr.tokens import BadText, ExprError, Kind, Token, span_inside, tokenize
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
    Text,
)

__all__ = ["ExprError", "parse"]

MAX_NESTING = 30
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_SUMS = ("+", "-")
_PRODUCTS = ("*", "//", "%")


def parse(text: str, span: Span) -> Expr | ExprError:
    """The tree of ``text``, names as :class:`Name`; or the first thing wrong with it.

    ``span`` is where the scalar stands in its file, quotes included.
    """
    try:
        return _Parser(tokenize(text)).whole()
    except BadText as bad:
        return ExprError(bad.message, span_inside(text, span, bad.start, bad.end), bad.help)


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._nesting = 0

    # ------------------------------------------------------------ tokens

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _take(self) -> Token:
        token = self._next
        self._at += 1
        return token

    def _sees(self, *texts: str) -> bool:
        return self._next.kind in (Kind.OPERATOR, Kind.KEYWORD) and self._next.text in texts

    def _expect(self, text: str, what: str) -> None:
        if not self._sees(text):
            raise self._unexpected(f"expected '{text}' {what}", f"write '{text}' here")
        self._take()

    def _unexpected(self, wanted: str, help: str) -> BadText:
        token = self._next
        return BadText(f"{wanted}, found {token.shown()}", token.start, token.end, help)

    def _deeper(self) -> None:
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            token = self._next
            message = f"nested deeper than {MAX_NESTING} levels"
            help = "make parts of it dims, and name them here"
            raise BadText(message, token.start, token.end, help)

    # ------------------------------------------------------------ the levels of precedence

    def whole(self) -> Expr:
        if len(self._tokens) == 1:
            raise BadText("empty expression", 0, 0, "write an integer, a name or an expression")
        expr = self._conditional()
        if self._next.kind is not Kind.END:
            raise self._unexpected("expected an operator or the end", self._trailing_help())
        return expr

    def _trailing_help(self) -> str:
        if self._sees("/"):
            return "write '//' to divide rounding down, 'ceil(a / b)' to divide rounding up"
        if self._sees(","):
            return "a scalar with a comma must be quoted as a whole"
        return "join the two parts with an operator, or remove what follows"

    def _conditional(self) -> Expr:
        self._deeper()
        then = self._disjunction()
        if self._sees("if"):
            self._take()
            condition = self._disjunction()
            self._expect("else", "after the condition")
            then = IfElse(then, condition, self._conditional())
        self._nesting -= 1
        return then

    def _disjunction(self) -> Expr:
        left = self._conjunction()
        while self._sees("or"):
            left = Logical(self._take().text, left, self._conjunction())
        return left

    def _conjunction(self) -> Expr:
        left = self._negation()
        while self._sees("and"):
            left = Logical(self._take().text, left, self._negation())
        return left

    def _negation(self) -> Expr:
        if not self._sees("not"):
            return self._comparison()
        self._take()
        self._deeper()
        operand = Not(self._negation())
        self._nesting -= 1
        return operand

    def _comparison(self) -> Expr:
        left = self._sum()
        if self._sees("not"):
            raise self._unexpected("expected a comparison", "write 'not (a in b)'")
        if self._sees("in"):
            self._take()
            left = In(left, self._choices())
        elif self._sees(*_COMPARISONS):
            left = Compare(self._take().text, left, self._sum())
        else:
            return left
        if self._sees("in", *_COMPARISONS):
            token = self._next
            help = "join two comparisons with 'and'"
            raise BadText("comparisons cannot be chained", token.start, token.end, help)
        return left

    def _choices(self) -> tuple[Expr, ...]:
        if self._next.kind is Kind.NAME and self._next.text.startswith("kinds."):
            return (Name(tuple(self._take().text.split("."))),)
        self._expect("(", "or 'kinds.<name>' after 'in'")
        return self._operands("after the choices")

    def _operands(self, where: str) -> tuple[Expr, ...]:
        operands = [self._conditional()]
        while self._sees(","):
            self._take()
            operands.append(self._conditional())
        self._expect(")", where)
        return tuple(operands)

    def _sum(self) -> Expr:
        left = self._product()
        while self._sees(*_SUMS):
            left = Arithmetic(self._take().text, left, self._product())
        return left

    def _product(self) -> Expr:
        left = self._unary()
        while self._sees(*_PRODUCTS):
            left = Arithmetic(self._take().text, left, self._unary())
        return left

    def _unary(self) -> Expr:
        if not self._sees("-"):
            return self._primary()
        self._take()
        if self._next.kind is Kind.INTEGER:
            return Int(-int(self._take().text))
        self._deeper()
        operand = Negate(self._unary())
        self._nesting -= 1
        return operand

    def _primary(self) -> Expr:
        token = self._next
        if token.kind is Kind.INTEGER:
            return Int(int(self._take().text))
        if token.kind is Kind.WORD:
            return Text(self._take().text)
        if self._sees("true", "false"):
            return Bool(self._take().text == "true")
        if self._sees("("):
            self._take()
            inner = self._conditional()
            self._expect(")", "to close the bracket")
            return inner
        if token.kind is Kind.NAME:
            return self._name_or_call()
        help = "an operator has an operand on each side"
        if self._sees("*"):
            help = "powers are not part of the language: multiply"
        raise self._unexpected("expected a name or an integer", help)

    def _name_or_call(self) -> Expr:
        token = self._take()
        if not self._sees("("):
            return Name(tuple(token.text.split(".")))
        match token.text.split("."):
            case ["kinds", kind, "below"]:
                return self._below(kind)
        if token.text not in ("ceil", "min", "max"):
            help = "the functions are ceil(a / b), min(...), max(...) and kinds.<name>.below(e)"
            if token.text == "len":
                help = "declare a dim that is the length: 'dims: {entries: len(config.<path>)}'"
            raise BadText(f"unknown function '{token.text}'", token.start, token.end, help)
        self._take()
        if token.text == "ceil":
            return self._ceil()
        operands = self._operands(f"to close {token.text}()")
        if len(operands) < 2:
            message = f"{token.text}() needs two operands or more"
            raise BadText(message, token.start, token.end, f"write {token.text}(a, b)")
        return Extreme(token.text, operands)

    def _below(self, kind: str) -> Expr:
        self._take()
        limit = self._conditional()
        self._expect(")", "to close below(), which takes one layer")
        return Below(kind, limit)

    def _ceil(self) -> Expr:
        """``ceil(`` is taken: the two sides of its ``/`` are products of their own.

        ``ceil(a + b / c)`` would read as Python's ``a + (b / c)``: a sum needs brackets here.
        """
        left = self._product()
        if self._sees(*_SUMS):
            raise self._unexpected("expected '/' inside ceil()", "write ceil((a + b) / c)")
        self._expect("/", "inside ceil(), which divides rounding up")
        right = self._unary()
        self._expect(")", "to close ceil()")
        return CeilDiv(left, right)
