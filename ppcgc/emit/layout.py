"""Lays generated text out as the formatter would: lines that are too long are broken up.

Code is made flat, one statement a line, and nothing else here thinks about width. What does not
fit is opened at its outermost brackets, one item a line with a comma behind the last, and so on
inwards; operators stand in front of their operands. A comment behind a line that is too long
goes in front of it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

WIDTH = 100
STEP = 4

Header = ast.FunctionDef | ast.ClassDef | ast.If
Chain = ast.BinOp | ast.BoolOp | ast.Compare | ast.IfExp


def laid_out(source: str) -> str:
    """The same module with no line longer than it must be."""
    source = _comments_in_front(source)
    lines = source.splitlines()
    if all(len(line) <= WIDTH for line in lines):
        return source
    printer = _Printer(source)
    for node in sorted(_statements(ast.parse(source)), key=lambda node: -node.lineno):
        first, last = node.lineno - 1, printer.last_line(node)
        if any(len(line) > WIDTH for line in lines[first:last]):
            lines[first:last] = printer.statement(node).splitlines()
    return "\n".join(lines) + "\n"


def _comments_in_front(source: str) -> str:
    """Comments behind lines that are too long with them, moved in front of the line.

    Before a method's decorators, where it has some.
    """
    lines: list[str] = []
    for line in source.splitlines():
        found = re.match(
            r"""^(\s*)(?=[^\s#])((?:[^#"']|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')+?)\s+(#.*)$""", line
        )
        if found is None or len(line) <= WIDTH:
            lines.append(line)
            continue
        pad, code, comment = found.groups()
        at = len(lines)
        while at and lines[at - 1].startswith(f"{pad}@"):
            at -= 1
        lines.insert(at, f"{pad}{comment}")
        lines.append(f"{pad}{code}")
    return "\n".join(lines) + "\n"


def _statements(module: ast.Module) -> Iterator[ast.stmt]:
    """Every statement that has a line of its own; of one with a body, the head."""
    for node in ast.walk(module):
        if isinstance(node, ast.stmt):
            yield node


class _Printer:
    """Prints nodes of one module, with the text of their leaves as it stands there."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line.encode()))
        self._bytes = source.encode()

    def last_line(self, node: ast.stmt) -> int:
        """The last line of a statement, or of its head."""
        if isinstance(node, Header):
            body = node.body[0]
            decorated = getattr(body, "decorator_list", [])
            first = min([body.lineno, *(each.lineno for each in decorated)])
            return max(node.lineno, first - 1 if first > node.lineno else node.lineno)
        return node.end_lineno or node.lineno

    def statement(self, node: ast.stmt) -> str:
        """A statement, or its head, broken up as far as it must be."""
        indent = node.col_offset
        match node:
            case ast.Expr(value=ast.Constant()):
                return f"{' ' * indent}{self._flat(node)}"
            case ast.Expr(value=value):
                text = self._after("", value, "", indent)
            case ast.Return(value=ast.expr() as value):
                text = self._after("return ", value, "", indent)
            case ast.Raise(exc=ast.expr() as value):
                text = self._after("raise ", value, "", indent)
            case ast.Assign(targets=[ast.Tuple(elts=elts)], value=value):
                text = f"{self._items('(', elts, ')', indent)} = {self._flat(value)}"
            case ast.Assign(targets=[target], value=value):
                text = self._after(f"{self._flat(target)} = ", value, "", indent)
            case ast.AnnAssign(target=target, annotation=kind, value=ast.expr() as value):
                head = f"{self._flat(target)}: {self._flat(kind)} = "
                text = self._after(head, value, "", indent)
            case ast.If(test=test):
                text = self._after("if ", test, ":", indent)
            case ast.FunctionDef():
                text = self._function(node, indent)
            case ast.ClassDef(name=name, bases=bases):
                text = f"class {name}{self._items('(', bases, ')', indent)}:"
            case ast.ImportFrom(module=str() as module, names=names, level=level):
                inner = self._stack([f"{alias.name}," for alias in names], STEP)
                text = f"from {'.' * level}{module} import ({inner}\n)"
            case _:
                text = self._flat(node)
        return f"{' ' * indent}{text}"

    def _function(self, node: ast.FunctionDef, indent: int) -> str:
        arguments = node.args
        parts = [self._flat(each) for each in arguments.args]
        if arguments.kwonlyargs:
            parts.append("*")
        for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            given = f" = {self._flat(default)}" if default is not None else ""
            parts.append(f"{self._flat(each)}{given}")
        body, behind = node.body[0], ":"
        if isinstance(body, ast.Expr) and body.lineno == self.last_line(node):
            behind += f" {self._flat(body)}"
        inner = self._stack([f"{part}," for part in parts], indent + STEP)
        head = f"def {node.name}({inner}\n{' ' * indent})"
        if node.returns is None:
            return head + behind
        result = f") -> {self._flat(node.returns)}{behind}"
        if indent + len(result) > WIDTH and isinstance(node.returns, Chain):
            return head + self._after(" -> ", node.returns, behind, indent)
        return f"{head} -> {self._flat(node.returns)}{behind}"

    # ------------------------------------------------------------ expressions

    def _after(self, head: str, node: ast.expr, tail: str, indent: int) -> str:
        """An expression behind the head of a statement; one without brackets gets some."""
        opens = not isinstance(node, Chain)
        text = self._item(head, node, tail, indent)
        if opens and len(text.splitlines()[0]) + indent <= WIDTH:
            return text
        inner = self._item("", node, "", indent + STEP)
        return f"{head}(\n{' ' * (indent + STEP)}{inner}\n{' ' * indent}){tail}"

    def _item(self, head: str, node: ast.expr, tail: str, indent: int) -> str:
        """An expression where line breaks are free: flat if it fits, else opened."""
        flat = f"{head}{self._flat(node)}{tail}"
        if indent + len(flat) <= WIDTH:
            return flat
        return f"{head}{self._opened(node, indent)}{tail}"

    def _opened(self, node: ast.expr, indent: int) -> str:
        match node:
            case ast.Call(func=func, args=args, keywords=keywords) if args or keywords:
                return f"{self._flat(func)}{self._items('(', [*args, *keywords], ')', indent)}"
            case ast.Call(func=ast.Attribute(value=value, attr=attr)):
                return f"{self._opened(value, indent)}.{attr}()"
            case ast.Tuple(elts=elts) if elts:
                return self._items("(", elts, ")", indent)
            case ast.List(elts=elts) if elts:
                return self._items("[", elts, "]", indent)
            case ast.Dict(keys=keys, values=values) if values:
                pad = " " * (indent + STEP)
                entries = "".join(
                    f"{pad}{self._item(f'{self._flat(key)}: ', value, ',', indent + STEP)}\n"
                    for key, value in zip(keys, values, strict=True)
                    if key is not None
                )
                return f"{{\n{entries}{' ' * indent}}}"
            case ast.Subscript(value=value, slice=ast.Tuple(elts=elts)):
                return f"{self._flat(value)}{self._items('[', elts, ']', indent)}"
            case ast.Subscript(value=value, slice=key):
                inner = self._item("", key, "", indent + STEP)
                return f"{self._flat(value)}[{self._stack([inner], indent + STEP)}\n{' ' * indent}]"
            case ast.ListComp(elt=elt, generators=[each]):
                loop = f"for {self._flat(each.target)} in "
                parts = [
                    self._item("", elt, "", indent + STEP),
                    self._item(loop, each.iter, "", indent + STEP),
                ]
                return f"[{self._stack(parts, indent + STEP)}\n{' ' * indent}]"
            case ast.UnaryOp(op=ast.Not(), operand=operand) if self._in_brackets(operand):
                inner = self._item("", operand, "", indent + STEP)
                return f"not (\n{' ' * (indent + STEP)}{inner}\n{' ' * indent})"
            case ast.BinOp() | ast.BoolOp() | ast.Compare() | ast.IfExp():
                first, *others = (self._operand(*part, indent) for part in self._chain(node))
                return "".join([first, *(f"\n{' ' * indent}{other}" for other in others)])
            case _:
                return self._flat(node)

    def _items(self, left: str, nodes: Sequence[ast.AST], right: str, indent: int) -> str:
        """Items in brackets, one a line, with a comma behind each."""
        parts = []
        for node in nodes:
            if isinstance(node, ast.keyword):
                parts.append(self._item(f"{node.arg}=", node.value, ",", indent + STEP))
            elif isinstance(node, ast.expr):
                parts.append(self._item("", node, ",", indent + STEP))
        return f"{left}{self._stack(parts, indent + STEP)}\n{' ' * indent}{right}"

    @staticmethod
    def _stack(parts: list[str], indent: int) -> str:
        return "".join(f"\n{' ' * indent}{part}" for part in parts)

    # ------------------------------------------------------------ operators

    def _chain(self, node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
        """The operands of a chain of operators of one strength, each with what stands before it."""
        match node:
            case ast.BoolOp(op=op, values=[first, *others]):
                word = "and " if isinstance(op, ast.And) else "or "
                yield from [("", first), *((word, other) for other in others)]
            case ast.Compare(left=left, ops=[_], comparators=[right]):
                yield from [("", left), (f"{self._between(left, right)} ", right)]
            case ast.IfExp(test=test, body=body, orelse=otherwise):
                yield from [("", body), ("if ", test), ("else ", otherwise)]
            case ast.BinOp(left=left, op=op, right=right):
                if isinstance(left, ast.BinOp) and self._same(left.op, op):
                    yield from self._chain(left)
                else:
                    yield "", left
                yield f"{self._between(left, right)} ", right

    def _same(self, one: ast.operator, two: ast.operator) -> bool:
        sums = (ast.Add, ast.Sub)
        return isinstance(one, sums) == isinstance(two, sums)

    def _operand(self, head: str, node: ast.expr, indent: int) -> str:
        if not self._in_brackets(node):
            return self._item(head, node, "", indent)
        flat = f"{head}({self._flat(node)})"
        if indent + len(flat) <= WIDTH:
            return flat
        inner = self._item("", node, "", indent + STEP)
        return f"{head}(\n{' ' * (indent + STEP)}{inner}\n{' ' * indent})"

    # ------------------------------------------------------------ text

    def _at(self, line: int, column: int) -> int:
        return self._starts[line - 1] + column

    def _ends(self, node: ast.AST) -> tuple[int, int]:
        placed = node if isinstance(node, ast.expr | ast.stmt | ast.arg) else None
        if placed is None or placed.end_lineno is None or placed.end_col_offset is None:
            raise TypeError(f"{type(node).__name__} has no place")
        start = self._at(placed.lineno, placed.col_offset)
        return start, self._at(placed.end_lineno, placed.end_col_offset)

    def _flat(self, node: ast.AST) -> str:
        """The text of a node as it stands in the source."""
        start, end = self._ends(node)
        return self._bytes[start:end].decode()

    def _between(self, left: ast.expr, right: ast.expr) -> str:
        """The operator between two operands."""
        end, start = self._ends(left)[1], self._ends(right)[0]
        return self._bytes[end:start].decode().strip(" \n()")

    def _in_brackets(self, node: ast.expr) -> bool:
        """Does an operand stand in brackets of its own."""
        start, end = self._ends(node)
        before = self._bytes[:start].decode().rstrip()
        after = self._bytes[end:].decode().lstrip()
        return before.endswith("(") and after.startswith(")")
