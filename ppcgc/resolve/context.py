"""What the parts of resolve share: the declared names, the findings, and reading of nodes.

The document has passed the JSON Schema, so a node of another kind than the one asked for is a
bug of the compiler (``TypeError``), never a user's mistake.
"""

from __future__ import annotations

from collections.abc import Iterable

from ppcgc.diagnostics.model import Diagnostic, Related, Rule, Span
from ppcgc.expr.evaluate import Value, zero_divisor
from ppcgc.expr.names import Scope, name_refs, nearest, span_of_name
from ppcgc.expr.parse import parse
from ppcgc.expr.printing import to_text
from ppcgc.expr.tokens import ExprError
from ppcgc.expr.tree import Bool, Expr, Int, Ref, Symbol
from ppcgc.expr.typing import ExprType, OptionTypes, type_problem
from ppcgc.nodes import Document, Entry, Mapping, Node, Scalar, Sequence
from ppcgc.resolve import rules


def entries(node: Node | None) -> tuple[Entry, ...]:
    """The entries of a mapping; none when it was left out."""
    if node is None:
        return ()
    if not isinstance(node, Mapping):
        raise TypeError(f"{node.span}: a mapping was promised")
    return node.entries


def items(node: Node | None) -> tuple[Node, ...]:
    """The items of a list; none when it was left out."""
    if node is None:
        return ()
    if not isinstance(node, Sequence):
        raise TypeError(f"{node.span}: a list was promised")
    return node.items


def get(node: Node, key: str) -> Node | None:
    """The value of a key, or None when the key was left out."""
    return next((entry.value for entry in entries(node) if entry.key == key), None)


def need(node: Node, key: str) -> Node:
    """The value of a key that the schema requires."""
    value = get(node, key)
    if value is None:
        raise TypeError(f"{node.span}: key {key} was promised")
    return value


def scalar(node: Node) -> str | int | float | bool | None:
    if not isinstance(node, Scalar):
        raise TypeError(f"{node.span}: a scalar was promised")
    return node.value


def text(node: Node) -> str:
    value = scalar(node)
    if not isinstance(value, str):
        raise TypeError(f"{node.span}: text was promised")
    return value


def integer(node: Node) -> int:
    value = scalar(node)
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{node.span}: an integer was promised")
    return value


def optional_text(node: Node, key: str) -> str | None:
    value = get(node, key)
    return None if value is None else text(value)


def flag(node: Node, key: str) -> bool:
    """A boolean word that is false when left out."""
    value = get(node, key)
    return value is not None and scalar(value) is True


def spans_of(node: Node) -> dict[str, Span]:
    """Where each word of a mapping has its value."""
    return {entry.key: entry.value.span for entry in entries(node)}


PARALLEL_WORDS = ("size", "rank")
# what is known when a runner is built, wherever a size may be an expression
BUILD = (Symbol.DIM, Symbol.AXIS_MAX, Symbol.OPTION, Symbol.PARALLEL)


class Context:
    """The names that a spec declares, and what was found so far."""

    def __init__(self, document: Document) -> None:
        root = document.root
        pipeline = need(root, "pipeline")
        self.root = root
        self.findings: list[Diagnostic] = []
        self.dims = frozenset(entry.key for entry in entries(get(root, "dims")))
        self._integer_dims = _integer_dims(get(root, "dims"))
        self.axes = frozenset(entry.key for entry in entries(get(root, "axes")))
        self.states = frozenset(entry.key for entry in entries(get(root, "state")))
        self.boundary_keys = tuple(
            text(need(key, "name")) for key in items(get(pipeline, "boundary"))
        )
        kinds = entries(get(need(pipeline, "layers"), "kinds"))
        self.kinds = frozenset(entry.key for entry in kinds)
        self.parallel = frozenset(entry.key for entry in entries(get(root, "parallel")))
        self.options = _option_types(get(root, "options"))

    def report(
        self,
        rule: Rule,
        span: Span,
        message: str,
        help: str,
        related: tuple[Related, ...] = (),
    ) -> None:
        self.findings.append(Diagnostic(rule, span, message, help, related))

    # ------------------------------------------------------------ references

    def known(self, kind: str, name: str, among: Iterable[str], span: Span) -> bool:
        """Is ``name`` declared? Reports an unknown reference when it is not."""
        names = sorted(among)
        if name in names:
            return True
        listed = f"declared: {', '.join(names)}" if names else f"the spec declares no {kind}"
        help = nearest(name, names) or listed
        self.report(rules.UNKNOWN_REFERENCE, span, f"unknown {kind} '{name}'", help)
        return False

    # ------------------------------------------------------------ expressions

    def scope(
        self,
        place: str,
        *symbols: Symbol,
        bare_axis: Symbol | None = None,
        scalars: frozenset[str] = frozenset(),
        ranks: bool = False,
        alone: tuple[str, ...] = (),
    ) -> Scope:
        """The names of this spec that are legal in a place. ``scalars`` are the runner's own."""
        words = PARALLEL_WORDS if ranks else PARALLEL_WORDS[:1]
        return Scope(
            place=place,
            dims=self.dims,
            axes=self.axes,
            symbols=frozenset(symbols),
            bare_axis=bare_axis,
            options=frozenset(self.options.types),
            scalars=scalars,
            parallel=frozenset(f"{group}.{word}" for group in self.parallel for word in words),
            kinds=self.kinds,
            alone=alone,
        )

    def expression(
        self, node: Node, scope: Scope, wanted: ExprType = ExprType.INTEGER
    ) -> Expr | None:
        """The expression of a scalar with its names resolved; None after a finding."""
        expr = self._parsed(node)
        if expr is None:
            return None
        named, unknown = name_refs(expr, scope)
        for name in unknown:
            span = span_of_name(text(node), node.span, name.path)
            self.report(rules.UNKNOWN_NAME, span, name.message, name.help)
        if unknown:
            return None
        problem = type_problem(expr, wanted, self.options)
        if problem is not None:
            self.report(rules.EXPRESSION_TYPE, node.span, problem, _WANTED_FORM[wanted])
            return None
        by_zero = zero_divisor(named, self._integer_dims)
        if by_zero is not None:
            message = f"'{to_text(by_zero)}' divides by zero"
            self.report(rules.BAD_EXPRESSION, node.span, message, "divide by 1 or more")
            return None
        return named

    def _parsed(self, node: Node) -> Expr | None:
        value = scalar(node)
        if isinstance(value, bool):
            return Bool(value)
        if isinstance(value, int):
            return Int(value)
        parsed = parse(text(node), node.span)
        if isinstance(parsed, ExprError):
            self.report(rules.BAD_EXPRESSION, parsed.span, parsed.message, parsed.help)
            return None
        return parsed

    def value(self, node: Node, scope: Scope, dtype: str) -> Expr | float | None:
        """A literal or an expression that fills a tensor of ``dtype``; None after a finding."""
        literal = scalar(node)
        if isinstance(literal, float):
            return literal
        if isinstance(literal, bool):
            return Bool(literal)
        wanted = ExprType.CONDITION if dtype == "bool" else ExprType.INTEGER
        if dtype == "bool" and isinstance(literal, int):
            return Int(literal)
        return self.expression(node, scope, wanted)


def _integer_dims(node: Node | None) -> dict[Ref, Value]:
    """The dims that are written as integers."""
    found: dict[Ref, Value] = {}
    for entry in entries(node):
        value = scalar(entry.value)
        if isinstance(value, int):
            found[Ref(Symbol.DIM, entry.key)] = value
    return found


def _option_types(node: Node | None) -> OptionTypes:
    """What each option is to expressions, from its long form or from its default alone."""
    types: dict[str, ExprType] = {}
    words: dict[str, tuple[str, ...]] = {}
    for entry in entries(node):
        if isinstance(entry.value, Scalar):
            is_bool = isinstance(scalar(entry.value), bool)
            types[entry.key] = ExprType.CONDITION if is_bool else ExprType.INTEGER
            continue
        types[entry.key] = _OPTION_TYPES[text(need(entry.value, "type"))]
        if types[entry.key] is ExprType.WORD:
            words[entry.key] = tuple(text(word) for word in items(need(entry.value, "choices")))
    return OptionTypes(types, words)


_WANTED_FORM = {
    ExprType.INTEGER: "write integers and names joined by + - * // %, or 'a if condition else b'",
    ExprType.CONDITION: "write a comparison, for example 'tokens >= 1', or true or false",
    ExprType.WORD: "write a word of the option in quotes",
    ExprType.LAYERS: "write a kind of layer: 'kinds.<name>'",
}
_OPTION_TYPES = {"bool": ExprType.CONDITION, "int": ExprType.INTEGER, "enum": ExprType.WORD}
