"""Lays generated text out as the formatter would: lines that are too long are broken up.

Code is made flat, one statement a line, and nothing else here thinks about width. A comment
behind a line that is too long goes in front of it; see ``unfolding`` for expressions.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from ppcgc.emit.unfolding import STEP, WIDTH, Chain, Unfolding, stack

_CODE_AND_COMMENT = re.compile(
    r"""(\s*)(?=[^\s#])((?:[^#"']|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')+?)\s+(#.*)"""
)
_Head = ast.FunctionDef | ast.ClassDef | ast.If


def laid_out(source: str) -> str:
    """The same module with no line longer than it must be."""
    source = _comments_in_front(source)
    lines = source.splitlines()
    if all(len(line) <= WIDTH for line in lines):
        return source
    text = Unfolding(source)
    for node in sorted(_statements(ast.parse(source).body), key=lambda node: -node.lineno):
        first, last = node.lineno - 1, _last_line(node)
        while last > first + 1 and lines[last - 1].lstrip().startswith("#"):
            last -= 1  # a comment between a head and its body is no part of the head
        if any(len(line) > WIDTH for line in lines[first:last]):
            indent = node.col_offset
            lines[first:last] = f"{' ' * indent}{_statement(text, node, indent)}".splitlines()
    return "\n".join(lines) + "\n"


def _comments_in_front(source: str) -> str:
    """Comments behind lines that are too long with them, moved in front of the line.

    Before a method's decorators, where it has some.
    """
    lines: list[str] = []
    for line in source.splitlines():
        found = _CODE_AND_COMMENT.fullmatch(line) if len(line) > WIDTH else None
        if found is None:
            lines.append(line)
            continue
        pad, code, comment = found.groups()
        at = len(lines)
        while at and lines[at - 1].startswith(f"{pad}@"):
            at -= 1
        lines.insert(at, f"{pad}{comment}")
        lines.append(f"{pad}{code}")
    return "\n".join(lines) + "\n"


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Every statement that has a line of its own; of one with a body, the head."""
    for node in body:
        yield node
        yield from _statements(getattr(node, "body", ()))
        yield from _statements(getattr(node, "orelse", ()))


def _last_line(node: ast.stmt) -> int:
    """The last line of a statement, or of its head."""
    if not isinstance(node, _Head):
        return node.end_lineno or node.lineno
    body = node.body[0]
    decorators: list[ast.expr] = getattr(body, "decorator_list", [])
    first = min([body.lineno, *(each.lineno for each in decorators)])
    return max(node.lineno, first - 1)


def _statement(text: Unfolding, node: ast.stmt, indent: int) -> str:
    """A statement, or its head, broken up as far as it must be."""
    match node:
        case ast.Expr(value=ast.Constant()):
            return text.flat(node)
        case ast.Expr(value=value):
            return text.behind("", value, "", indent)
        case ast.Return(value=ast.expr() as value):
            return text.behind("return ", value, "", indent)
        case ast.Raise(exc=ast.expr() as value):
            return text.behind("raise ", value, "", indent)
        case ast.Assign(targets=[ast.Tuple(elts=elts)], value=value):
            return f"{text.items('(', elts, ')', indent)} = {text.flat(value)}"
        case ast.Assign(targets=[target], value=value):
            return text.behind(f"{text.flat(target)} = ", value, "", indent)
        case ast.AnnAssign(target=target, annotation=kind, value=ast.expr() as value):
            head = f"{text.flat(target)}: {text.flat(kind)} = "
            return text.behind(head, value, "", indent)
        case ast.If(test=test):
            return text.behind("if ", test, ":", indent)
        case ast.FunctionDef():
            return _function(text, node, indent)
        case ast.ClassDef(name=name, bases=bases):
            return f"class {name}{text.items('(', bases, ')', indent)}:"
        case ast.ImportFrom(module=str() as module, names=names, level=level):
            inner = stack([f"{alias.name}," for alias in names], STEP)
            return f"from {'.' * level}{module} import ({inner}\n)"
        case _:
            return text.flat(node)


def _function(text: Unfolding, node: ast.FunctionDef, indent: int) -> str:
    """The head of a function, one parameter a line; a body of one ``...`` stays behind it."""
    arguments = node.args
    parts = [text.flat(each) for each in arguments.args]
    if arguments.kwonlyargs:
        parts.append("*")
    for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        given = f" = {text.flat(default)}" if default is not None else ""
        parts.append(f"{text.flat(each)}{given}")
    body, behind = node.body[0], ":"
    if body.lineno == _last_line(node):
        behind += f" {text.flat(body)}"
    inner = stack([f"{part}," for part in parts], indent + STEP)
    head = f"def {node.name}({inner}\n{' ' * indent})"
    if node.returns is None:
        return head + behind
    result = f" -> {text.flat(node.returns)}{behind}"
    if indent + 1 + len(result) > WIDTH and isinstance(node.returns, Chain):
        return head + text.behind(" -> ", node.returns, behind, indent)
    return head + result
