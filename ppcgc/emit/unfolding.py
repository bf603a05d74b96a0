"""Expressions that do not fit into a line, broken up as the formatter breaks them.

Brackets open one item a line with a comma behind each; where line breaks are free, operators
stand in front of their operands; behind the head of a statement an expression gets brackets of
its own, unless the ones that it ends or begins with are enough.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

WIDTH = 100
STEP = 4

Chain = ast.BinOp | ast.BoolOp | ast.Compare | ast.IfExp
_LEVELS: tuple[tuple[type[ast.AST], ...], ...] = (
    (ast.Mult, ast.FloorDiv, ast.Mod, ast.Div),
    (ast.Add, ast.Sub),
    (ast.Compare,),
    (ast.And, ast.Or),
    (ast.IfExp,),
)


@dataclass(frozen=True, slots=True)
class _Bracketed:
    """Nodes in brackets; ``commas`` says that each has a comma behind it when opened."""

    left: str
    nodes: Sequence[ast.AST]
    right: str
    flat: str
    commas: bool


class Unfolding:
    """Breaks up expressions of one module, with the text of their leaves as it stands there."""

    def __init__(self, source: str) -> None:
        self._bytes = source.encode()
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line.encode()))

    # ------------------------------------------------------------ where a node stands

    def behind(self, head: str, node: ast.expr, tail: str, indent: int) -> str:
        """``head node tail`` of a statement at ``indent``."""
        flat = f"{head}{self.flat(node)}{tail}"
        if indent + len(flat) <= WIDTH:
            return flat
        if not isinstance(node, Chain):
            text = self.item(head, node, tail, indent)
            if len(text.splitlines()[0]) + indent <= WIDTH:
                return text
        elif self._brackets_suffice(node):
            text = self._along(head, node, tail, indent)
            if all(len(line) <= WIDTH for line in f"{' ' * indent}{text}".splitlines()):
                return text
        inner = self.item("", node, "", indent + STEP)
        return f"{head}({stack([inner], indent + STEP)}\n{' ' * indent}){tail}"

    def item(self, head: str, node: ast.AST, tail: str, indent: int) -> str:
        """``head node tail`` where line breaks are free: flat if it fits, else opened."""
        if isinstance(node, ast.keyword):
            head = f"{head}{node.arg}=" if node.arg else f"{head}**"
            return self.item(head, node.value, tail, indent)
        if isinstance(node, ast.Starred):
            return self.item(f"{head}*", node.value, tail, indent)
        flat = f"{head}{self.flat(node)}{tail}"
        if indent + len(flat) <= WIDTH:
            return flat
        if isinstance(node, ast.UnaryOp):
            return self._operand(f"{head}{_word(node.op)}", node.operand, tail, indent)
        if isinstance(node, Chain):
            return self._unfolded(head, node, tail, indent)
        return f"{head}{self._opened(node, indent)}{tail}"

    def items(self, left: str, nodes: Sequence[ast.AST], right: str, indent: int) -> str:
        """Nodes in brackets, one a line, with a comma behind each."""
        parts = [self.item("", node, ",", indent + STEP) for node in nodes]
        return f"{left}{stack(parts, indent + STEP)}\n{' ' * indent}{right}"

    def _opened(self, node: ast.AST, indent: int) -> str:
        match node:
            case ast.Call(func=func, args=args, keywords=keywords) if args or keywords:
                return f"{self.flat(func)}{self.items('(', [*args, *keywords], ')', indent)}"
            case ast.Call(func=ast.Attribute(value=value, attr=attr)):
                return f"{self._opened(value, indent)}.{attr}()"
            case ast.Tuple(elts=elts) if elts:
                return self.items("(", elts, ")", indent)
            case ast.List(elts=elts) if elts:
                return self.items("[", elts, "]", indent)
            case ast.Dict(keys=keys, values=values) if values:
                entries = [
                    self.item(f"{self.flat(key)}: ", value, ",", indent + STEP)
                    for key, value in zip(keys, values, strict=True)
                    if key is not None
                ]
                return f"{{{stack(entries, indent + STEP)}\n{' ' * indent}}}"
            case ast.Subscript(value=value, slice=ast.Tuple(elts=elts)):
                return f"{self.flat(value)}{self.items('[', elts, ']', indent)}"
            case ast.Subscript(value=value, slice=key):
                inner = self.item("", key, "", indent + STEP)
                return f"{self.flat(value)}[{stack([inner], indent + STEP)}\n{' ' * indent}]"
            case ast.ListComp(elt=elt, generators=[each]):
                loop = f"for {self.flat(each.target)} in "
                parts = [
                    self.item("", elt, "", indent + STEP),
                    self.item(loop, each.iter, "", indent + STEP),
                ]
                return f"[{stack(parts, indent + STEP)}\n{' ' * indent}]"
            case _:
                return self.flat(node)

    # ------------------------------------------------------------ operators

    def _chain(self, node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
        """The operands of a chain of operators of one strength, each with what stands before it."""
        match node:
            case ast.BoolOp(op=op, values=values):
                word = "and " if isinstance(op, ast.And) else "or "
                for number, value in enumerate(values):
                    alike = isinstance(value, ast.BoolOp) and not self._in_brackets(value)
                    parts = self._chain(value) if alike else [("", value)]
                    yield from ((own or (word if number else ""), each) for own, each in parts)
            case ast.Compare(left=left, comparators=[right]):
                yield from [("", left), (f"{self._between(left, right)} ", right)]
            case ast.IfExp(test=test, body=body, orelse=otherwise):
                yield from [("", body), ("if ", test)]
                alike = isinstance(otherwise, ast.IfExp) and not self._in_brackets(otherwise)
                rest = self._chain(otherwise) if alike else [("", otherwise)]
                yield from ((word or "else ", operand) for word, operand in rest)
            case ast.BinOp(left=left, op=op, right=right):
                alike = isinstance(left, ast.BinOp) and _level(left.op) == _level(op)
                if alike and not self._in_brackets(left):
                    yield from self._chain(left)
                else:
                    yield "", left
                yield f"{self._between(left, right)} ", right

    def _unfolded(self, head: str, node: ast.expr, tail: str, indent: int) -> str:
        """The operands of a chain, one a line."""
        parts = list(self._chain(node))
        lines = []
        for number, (operator, operand) in enumerate(parts):
            before = operator if number else head
            behind = tail if number == len(parts) - 1 else ""
            lines.append(self._operand(before, operand, behind, indent))
        return f"{lines[0]}{stack(lines[1:], indent)}"

    def _operand(self, head: str, node: ast.expr, tail: str, indent: int) -> str:
        if not self._in_brackets(node):
            return self.item(head, node, tail, indent)
        flat = f"{head}({self.flat(node)}){tail}"
        if indent + len(flat) <= WIDTH:
            return flat
        inner = self.item("", node, "", indent + STEP)
        return f"{head}({stack([inner], indent + STEP)}\n{' ' * indent}){tail}"

    # ------------------------------------------------------------ brackets that suffice

    def _brackets_suffice(self, node: ast.expr) -> bool:
        """May a chain stay without brackets of its own, and open those at one of its ends.

        It may when its weakest operator stands there once, and a bracket begins or ends it.
        """
        levels = list(self._levels(node))
        pieces = list(self._pieces(node))
        ends = isinstance(pieces[0], _Bracketed) or isinstance(pieces[-1], _Bracketed)
        return ends and levels.count(max(levels)) == 1

    def _levels(self, node: ast.AST) -> Iterator[int]:
        """The strength of every operator outside of brackets, weaker ones higher."""
        match node:
            case ast.BinOp(op=op, left=left, right=right):
                found, operands = [_level(op)], [left, right]
            case ast.BoolOp(op=op, values=operands):
                found = [_level(op)] * (len(operands) - 1)
            case ast.Compare(left=left, comparators=[right]):
                found, operands = [_level(node)], [left, right]
            case ast.IfExp(body=body, test=test, orelse=orelse):
                found, operands = [_level(node)] * 2, [body, test, orelse]  # `if` and `else`
            case _:
                return
        yield from found
        for operand in operands:
            if not self._in_brackets(operand):
                yield from self._levels(operand)

    def _along(self, head: str, node: ast.expr, tail: str, indent: int) -> str:
        """From left to right: a bracket opens where the line up to the next one is too long."""
        pieces = [*self._pieces(node), tail]
        text = f"{' ' * indent}{head}"
        for at, piece in enumerate(pieces):
            if isinstance(piece, str):
                text += piece
                continue
            ahead = _up_to_bracket(pieces[at + 1 :])
            if len(f"{text}{piece.flat}{ahead}".splitlines()[-1]) <= WIDTH:
                text += piece.flat
            elif piece.commas:
                text += self.items(piece.left, piece.nodes, piece.right, indent)
            else:
                inner = self.item("", piece.nodes[0], "", indent + STEP)
                opened = stack([inner], indent + STEP)
                text += f"{piece.left}{opened}\n{' ' * indent}{piece.right}"
        return text.removeprefix(" " * indent)

    def _pieces(self, node: ast.expr) -> Iterator[str | _Bracketed]:
        """The text of an expression, with its outermost brackets as pieces of their own."""
        match node:
            case ast.BinOp() | ast.BoolOp() | ast.Compare() | ast.IfExp():
                for number, (head, operand) in enumerate(self._chain(node)):
                    if number:
                        yield f" {head}"
                    if self._in_brackets(operand):
                        yield _Bracketed("(", [operand], ")", f"({self.flat(operand)})", False)
                    else:
                        yield from self._pieces(operand)
            case ast.UnaryOp(op=op, operand=operand):
                yield _word(op)
                if self._in_brackets(operand):
                    yield _Bracketed("(", [operand], ")", f"({self.flat(operand)})", False)
                else:
                    yield from self._pieces(operand)
            case ast.Call(func=func, args=args, keywords=keywords) if args or keywords:
                yield self.flat(func)
                flat = self.flat(node).removeprefix(self.flat(func))
                yield _Bracketed("(", [*args, *keywords], ")", flat, True)
            case ast.Tuple(elts=elts) if elts:
                yield _Bracketed("(", elts, ")", self.flat(node), True)
            case _:
                yield self.flat(node)

    # ------------------------------------------------------------ text

    def flat(self, node: ast.AST) -> str:
        """The text of a node as it stands in the source."""
        if isinstance(node, ast.keyword):
            return (
                f"{node.arg}={self.flat(node.value)}" if node.arg else f"**{self.flat(node.value)}"
            )
        start, end = self._ends(node)
        return self._bytes[start:end].decode()

    def _ends(self, node: ast.AST) -> tuple[int, int]:
        if not isinstance(node, ast.expr | ast.stmt | ast.arg):
            raise TypeError(f"{type(node).__name__} has no place")
        start = self._starts[node.lineno - 1] + node.col_offset
        end = self._starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        return start, end

    def _between(self, left: ast.expr, right: ast.expr) -> str:
        """The operator between two operands."""
        end, start = self._ends(left)[1], self._ends(right)[0]
        return self._bytes[end:start].decode().strip(" \n()")

    def _in_brackets(self, node: ast.expr) -> bool:
        """Does an operand stand in brackets of its own."""
        start, end = self._ends(node)
        before, after = self._bytes[:start].rstrip(), self._bytes[end:].lstrip()
        return before.endswith(b"(") and after.startswith(b")")


def stack(parts: Sequence[str], indent: int) -> str:
    """Each part on a new line."""
    return "".join(f"\n{' ' * indent}{part}" for part in parts)


def _word(op: ast.unaryop) -> str:
    return "not " if isinstance(op, ast.Not) else "-"


def _level(operator: ast.AST) -> int:
    """How weakly an operator binds."""
    return next((at for at, kinds in enumerate(_LEVELS) if isinstance(operator, kinds)), 0)


def _up_to_bracket(pieces: Sequence[str | _Bracketed]) -> str:
    """The text up to where the next bracket has opened."""
    text = ""
    for piece in pieces:
        if isinstance(piece, _Bracketed):
            return text + piece.left
        text += piece
    return text
