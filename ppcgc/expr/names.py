"""What the names of an expression mean, in the place where it is written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import get_close_matches

from ppcgc.diagnostics.model import Span
from ppcgc.expr.tokens import BadText, Kind, span_inside, tokenize
from ppcgc.expr.tree import Below, Expr, Name, Ref, Symbol
from ppcgc.expr.walk import nodes, replace_leaves


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which symbols an expression may use.

    ``bare_axis`` is what an axis name without a prefix stands for (``requests`` in
    ``equals: requests``); None where axes need a prefix. ``parallel`` are dotted names such as
    ``tp.size``. ``place`` completes messages: "in a shape". ``alone`` is what may stand there in an
    expression's stead: ``build``, ``batch.*`` for any path of the batch.
    """

    place: str
    dims: frozenset[str]
    axes: frozenset[str]
    symbols: frozenset[Symbol]
    bare_axis: Symbol | None = None
    options: frozenset[str] = frozenset()
    scalars: frozenset[str] = frozenset()
    parallel: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()
    alone: tuple[str, ...] = ()

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
        for symbol, declared in ((Symbol.OPTION, self.options), (Symbol.SCALAR, self.scalars)):
            if symbol in self.symbols:
                names += [f"{symbol.value}.{name}" for name in declared]
        if Symbol.PARALLEL in self.symbols:
            names += self.parallel
        if Symbol.LAYER in self.symbols:
            names.append("layer")
        if Symbol.CUT in self.symbols:
            names += ["cut.layer", *(f"kinds.{kind}" for kind in self.kinds)]
        return tuple(sorted(names))


@dataclass(frozen=True, slots=True)
class UnknownName:
    """A name that has no meaning in its scope."""

    path: tuple[str, ...]
    message: str
    help: str


def name_refs(expr: Expr, scope: Scope) -> tuple[Expr, tuple[UnknownName, ...]]:
    """The tree with every :class:`Name` that has a meaning turned into a :class:`Ref`.

    ``kinds.k`` stays a :class:`Name`: it stands for a set of layers, not for a value. Names
    without a meaning stay as they are and are reported, each once.
    """
    unknown: dict[tuple[str, ...], UnknownName] = {}
    if not isinstance(expr, Name):  # what stands in an expression's stead is no part of one
        scope = replace(scope, alone=())
    for node in nodes(expr):
        if isinstance(node, Below) and not _knows_kind(node.kind, scope):
            path = ("kinds", node.kind, "below")
            unknown[path] = _unknown(path, scope)
        if isinstance(node, Name) and _meaning(node.path, scope) is None:
            unknown[node.path] = _unknown(node.path, scope)

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


def _knows_kind(kind: str, scope: Scope) -> bool:
    return Symbol.CUT in scope.symbols and kind in scope.kinds


def _meaning(path: tuple[str, ...], scope: Scope) -> Ref | Name | None:
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
        case _:
            return _declared_meaning(path, scope)


def _declared_meaning(path: tuple[str, ...], scope: Scope) -> Ref | Name | None:
    """Options, scalars, parallel groups, layers, cuts and kinds."""
    found: Ref | Name
    match path:
        case ("options", name) if name in scope.options:
            found = Ref(Symbol.OPTION, name)
        case ("scalar", name) if name in scope.scalars:
            found = Ref(Symbol.SCALAR, name)
        case ("layer",):
            found = Ref(Symbol.LAYER, "layer")
        case ("cut", "layer"):
            found = Ref(Symbol.CUT, "layer")
        case ("kinds", kind):
            return Name(path) if _knows_kind(kind, scope) else None
        case _ if ".".join(path) in scope.parallel:
            found = Ref(Symbol.PARALLEL, ".".join(path))
        case _:
            return None
    return found if found.symbol in scope.symbols else None


def _unknown(path: tuple[str, ...], scope: Scope) -> UnknownName:
    written = ".".join(path)
    if len(path) == 1 and path[0] in scope.axes:
        options = [name for name in scope.known() if path[0] in name.split(".")]
        help = f"write {' or '.join(options)}" if options else _allowed(scope)
        return UnknownName(path, f"axis '{written}' cannot be named {scope.place}", help)
    if path[0] == "config":
        help = f"declare a dim with this path and name it here: 'dims: {{{path[-1]}: {written}}}'"
        return UnknownName(path, f"'{written}' cannot be read {scope.place}", help)
    if path in _ELSEWHERE:
        return UnknownName(path, f"'{written}' cannot be used {scope.place}", _ELSEWHERE[path])
    if path[0] in ("tp", "dp") and path[1:] in (("size",), ("rank",)):
        return _unknown_parallel(path, scope)
    if path[-1] in scope.dims | scope.axes or (path[0] in scope.axes and path[-1] == "max"):
        return UnknownName(path, f"'{written}' cannot be used {scope.place}", _allowed(scope))
    if path[0] == "scalar" and path[1:] and path[1] in scope.scalars:
        return UnknownName(path, f"'{written}' cannot be used {scope.place}", _allowed(scope))
    likely = _OF_PYTHON.get(written) or _alone(written, scope) or nearest(written, scope.known())
    message = f"unknown name '{written}' {scope.place}"
    return UnknownName(path, message, likely or _allowed(scope))


def _alone(written: str, scope: Scope) -> str | None:
    """What a bare word may have been meant for, where something else than an expression may stand.

    A word that is all but a known name is a slip of the hand, and no path without its head; nor
    is a word that the language has for something else.
    """
    slipped = get_close_matches(written, scope.known(), 1, 0.85)
    if not scope.alone or "." in written or slipped or written in _NO_PATHS:
        return None
    slip = get_close_matches(written, scope.alone, 1, 0.8)
    if slip:
        return f"did you mean '{slip[0]}'?"
    forms = " or ".join(f"'{form.replace('*', written)}'" for form in scope.alone)
    return f"write {forms}; {_allowed(scope)}"


_ELSEWHERE = {
    ("cut", "layer"): "only 'shape' and 'when' of a boundary key are evaluated at a cut",
    ("layer",): "only 'if' of a layer kind is evaluated for each layer",
}


# what other languages call what this one has
_OF_PYTHON = {
    "True": "write 'true'",
    "False": "write 'false'",
    "AND": "write 'and'",
    "OR": "write 'or'",
    "NOT": "write 'not'",
}


_NO_PATHS = ("None", "null", "none", "build", "rows", "tp", "dp", "live", "padded", "config")


def _unknown_parallel(path: tuple[str, ...], scope: Scope) -> UnknownName:
    group, word = path
    written = f"{group}.{word}"
    if word == "rank" and f"{group}.size" in scope.parallel:
        help = "ranks have a value in 'compute' only"
    elif f"{group}.size" in scope.parallel:
        help = _allowed(scope)
    else:
        help = f"declare it at the top of the spec: 'parallel: {{{group}: build}}'"
    return UnknownName(path, f"'{written}' cannot be used {scope.place}", help)


def _allowed(scope: Scope) -> str:
    known = scope.known()
    shown = ", ".join(known[:12]) + (", …" if len(known) > 12 else "")
    return f"known here: {shown}" if known else "only integers are known here"
