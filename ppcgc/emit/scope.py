"""Where the values of a spec's references are found at some place of the generated code."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ppcgc.emit.expressions import operand, python
from ppcgc.emit.source import Code, identifier, literal
from ppcgc.expr.tree import Expr, Name, Ref, Symbol
from ppcgc.ir import Family


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Each word is the text under which a kind of value is found.

    An empty word stands for local variables named as what they hold. ``scalars`` is the object
    that has the scalars, ``cut`` the first layer after a cut, ``cells`` says that row
    numbers are of two axes.
    """

    family: Family
    lowered: tuple[tuple[str, int], ...] = ()  # capacities that a runner has lowered
    dims: str = "self.dims"
    live: str = "live"
    padded: str = "padded"
    scalars: str = "live"
    cut: str = "self.cut"
    cells: bool = False  # rows of two axes are numbered

    def at(self, rows: str) -> Scope:
        """The same place, with one object for live rows, padded rows and scalars."""
        return replace(self, live=rows, padded=rows, scalars=rows)

    def python(self, expr: Expr) -> Code:
        return python(expr, self.name)

    def operand(self, expr: Expr) -> Code:
        """As ``python``, in brackets where an operator could come between."""
        return operand(expr, self.name)

    def value(self, value: Expr | float) -> Code:
        """A number, or an expression."""
        return literal(value) if isinstance(value, int | float) else self.python(value)

    def name(self, ref: Ref | Name) -> Code:
        """What a reference, or a kind of layer, is called here."""
        if isinstance(ref, Name):
            return self._of(self._in_dims("kinds"), ref.path[-1])
        match ref.symbol:
            case Symbol.DIM:
                return self._constant(ref.name) or self._of(self.dims, ref.name)
            case Symbol.OPTION:
                return self._of(self._in_dims("options"), ref.name)
            case Symbol.LIVE:
                return self._of(self.live, ref.name)
            case Symbol.PADDED:
                return self._of(self.padded, ref.name)
            case Symbol.SCALAR:
                return self._of(self.scalars, ref.name)
            case Symbol.AXIS_MAX:
                lowered = dict(self.lowered)
                return literal(lowered.get(ref.name, self.family.axis(ref.name).max))
            case Symbol.STATE_ROWS:
                return self.operand(self.family.state(ref.name).rows)
            case Symbol.PARALLEL:
                group, word = ref.name.split(".")
                return self._of(self._in_dims(group), word)
            case Symbol.ROW:
                return Code(f"row_{identifier(ref.name)}" if self.cells else "row")
            case Symbol.CUT:
                return Code(self.cut)
            case Symbol.LAYER:
                return Code("layer")

    def _constant(self, dim: str) -> Code | None:
        """The size that the code is bound to; where sizes are read, they are local variables."""
        sizes = dict(self.family.bound.dims) if self.family.bound and self.dims else {}
        return literal(sizes[dim]) if dim in sizes else None

    def _in_dims(self, name: str) -> str:
        return str(self._of(self.dims, name))

    @staticmethod
    def _of(owner: str, name: str) -> Code:
        return Code(f"{owner}.{identifier(name)}" if owner else str(identifier(name)))
