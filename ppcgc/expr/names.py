"""What the names of an expression mean, in the place where it is written."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

from ppcgc.diagnostics.model import Span
from ppcgc.expr.tokens import BadText, Kind, span_inside, tokenize
from ppcgc.expr.tree import Expr, Name, Ref, Symbol
from ppcgc.expr.walk import nodes, replace_leaves


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which symbols an expression may use.

    ``bare_axis`` is what an axis name without a prefix stands for (``requests`` in
    ``equals: requests``); None where axes need a prefix. ``place`` completes messages:
    "in a shape".
    """

    place: str
    dims: frozenset[str]
    axes: frozenset[str]
    symbols: frozenset[Symbol]
    bare_axis: Symbol | None = None

    def known(self) -> tuple[str, ...]:
        """Every name that may be written here, for suggestions."""
        names: list[str] = []
        if Symbol.DIM in self.symbols:
            names += [*self.dims, *(f"dims.{dim}" for dim in self.dims)]
        if self.bare_axis is not None:
            names += self.axes
        for symbol in (Symbol.LIVE, Symbol.PADDED, Symbol.ROW):
            if symbol in self.symbols:
                names += [f"{symbol.value}.{axis}" for axis in self.axes]
        if Symbol.AXIS_MAX in self.symbols:
            names += [f"{axis}.max" for axis in self.axes]
        return tuple(sorted(names))


@dataclass(frozen=True, slots=True)
class UnknownName:
    """A name that has no meaning in its scope."""

    path: tuple[str, ...]
    message: str
    help: str | None = None


def name_refs(expr: Expr, scope: Scope) -> tuple[Expr, tuple[UnknownName, ...]]:
    """The tree with every :class:`Name` that has a meaning turned into a :class:`Ref`.

    Names without a meaning stay as they are and are reported, each once.
    """
    unknown: dict[Name, UnknownName] = {}
    for node in nodes(expr):
        if isinstance(node, Name) and _meaning(node.path, scope) is None:
            unknown[node] = _unknown(node.path, scope)

    def change(leaf: Expr) -> Expr:
        return (_meaning(leaf.path, scope) or leaf) if isinstance(leaf, Name) else leaf

    return replace_leaves(expr, change), tuple(unknown.values())


def span_of_name(text: str, span: Span, path: tuple[str, ...]) -> Span:
    """Where a name first stands in the expression ``text`` of the scalar at ``span``."""
    wanted = ".".join(path)
    try:
        tokens = tokenize(text)
    except BadText:
        return span
    for token in tokens:
        if token.kind is Kind.NAME and token.text == wanted:
            return span_inside(text, span, token.start, token.end)
    return span


def nearest(name: str, known: tuple[str, ...] | list[str]) -> str | None:
    """``did you mean 'tokens'?`` for the closest known name, if one is close."""
    close = get_close_matches(name, known, 1, 0.6)
    return f"did you mean '{close[0]}'?" if close else None


def _meaning(path: tuple[str, ...], scope: Scope) -> Ref | None:
    match path:
        case (name,) if name in scope.axes and scope.bare_axis is not None:
            return Ref(scope.bare_axis, name)
        case (name,) | ("dims", name) if name in scope.dims and Symbol.DIM in scope.symbols:
            return Ref(Symbol.DIM, name)
        case (("live" | "padded" | "row") as prefix, axis) if axis in scope.axes:
            symbol = Symbol(prefix)
            return Ref(symbol, axis) if symbol in scope.symbols else None
        case (axis, "max") if axis in scope.axes and Symbol.AXIS_MAX in scope.symbols:
            return Ref(Symbol.AXIS_MAX, axis)
    return None


def _unknown(path: tuple[str, ...], scope: Scope) -> UnknownName:
    written = ".".join(path)
    if len(path) == 1 and path[0] in scope.axes:
        options = [name for name in scope.known() if path[0] in name.split(".")]
        help = f"write {' or '.join(options)}" if options else None
        return UnknownName(path, f"axis '{written}' cannot be named {scope.place}", help)
    if path[0] == "config":
        help = f"declare a dim with this path and name it here: 'dims: {{{path[-1]}: {written}}}'"
        return UnknownName(path, f"'{written}' cannot be read {scope.place}", help)
    if path[-1] in scope.dims | scope.axes or (path[0] in scope.axes and path[-1] == "max"):
        return UnknownName(path, f"'{written}' cannot be used {scope.place}", _allowed(scope))
    help = nearest(written, scope.known()) or _allowed(scope)
    return UnknownName(path, f"unknown name '{written}' {scope.place}", help)


def _allowed(scope: Scope) -> str:
    known = scope.known()
    shown = ", ".join(known[:12]) + (", …" if len(known) > 12 else "")
    return f"known here: {shown}" if known else "only integers are known here"
