"""The second reading of a load: what each slot must hold, from the spec's facts alone.

Nothing here is shared with the generated load or with the functions that it calls: facts come
from the slot table, rows from the batch, and padding is laid out by plain indexing. Expressions
are the spec's own words, read by a small evaluator.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ppcgc.runtime.slot_info import SlotInfo
from ppcgc.runtime.verification.cases import Case, at_path


class Unread(Exception):
    """The second reading does not know this source or expression."""


class Rows(NamedTuple):
    """What a slot must hold. ``tail`` None: nobody says what the rows past live hold, or
    ``live_part`` has them too."""

    live_part: Tensor
    tail: Tensor | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What an expression can speak of."""

    dims: Any
    live: Any
    padded: Any


def expected_rows(runner: Any, info: SlotInfo, case: Case) -> Rows:
    """Live rows and the rows past them. Raises Unread for what only others write."""
    shape = runner.inputs.shapes(case.padded)[info.name]
    live_shape = runner.inputs.shapes(case.live)[info.name]
    dtype = info.dtype or runner.dtype
    names = Names(dims=runner.dims, live=case.live, padded=case.padded)
    if info.source == "const":
        return Rows(torch.full(shape, value_of(info.rule, names), dtype=dtype), None)
    if info.source == "compute":
        return Rows(_computed(info, shape, dtype, names), None)
    if info.source in ("hook", "caller"):
        raise Unread(f"live rows, its source is {info.source}")
    if info.source != "batch" or info.batch is None:
        raise Unread(f"its source is {info.source}")
    rows = _source(info, at_path(case.batch, info.batch), live_shape, dtype)
    return padded_rows(runner, info, case, rows)


def padded_rows(runner: Any, info: SlotInfo, case: Case, rows: Tensor) -> Rows:
    """Live rows, from wherever they are, with the padding behind them."""
    shape = runner.inputs.shapes(case.padded)[info.name]
    live_shape = runner.inputs.shapes(case.live)[info.name]
    names = Names(dims=runner.dims, live=case.live, padded=case.padded)
    if info.dims is not None:
        return Rows(_of_two_axes(info, rows, shape, names), None)
    return Rows(rows, _tail(info, rows, shape, live_shape, names))


def padding_values(runner: Any, info: SlotInfo, case: Case) -> set[int]:
    """The one value of constant padding; empty for a padding that depends on the rows."""
    names = Names(dims=runner.dims, live=case.live, padded=case.padded)
    match info.padding:
        case "zero":
            return {0}
        case "fill":
            return {int(value_of(info.fill, names))}
        case _:
            return set()


def _source(info: SlotInfo, given: Any, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    if given is None and info.absent is not None:
        return torch.full(shape, info.absent, dtype=dtype)
    if given is None:
        raise Unread("its source is absent")
    rows = torch.as_tensor(given).detach().cpu().to(dtype)
    if info.broadcast and rows.dim() < len(shape):
        rows = rows.expand(shape)
    if tuple(rows.shape) != tuple(shape):
        raise Unread(f"its source has shape {list(rows.shape)}")
    return rows


def _tail(
    info: SlotInfo,
    rows: Tensor,
    shape: tuple[int, ...],
    live_shape: tuple[int, ...],
    names: Names,
) -> Tensor | None:
    if not info.axes or info.padding in ("keep", "none"):
        return None
    dim = info.dim
    tail_shape = list(shape)
    tail_shape[dim] = shape[dim] - live_shape[dim]
    tail = torch.zeros(tail_shape, dtype=rows.dtype)
    if info.padding == "fill":
        tail[...] = value_of(info.fill, names)
    elif info.padding == "repeat_last" and live_shape[dim]:
        last = rows.movedim(dim, 0)[-1]
        tail.movedim(dim, 0)[:] = last
    return tail


def _of_two_axes(info: SlotInfo, rows: Tensor, shape: tuple[int, ...], names: Names) -> Tensor:
    """All cells. Where the first axis is live the second one's padding stands, else the first's."""
    whole = torch.zeros(shape, dtype=rows.dtype)
    cells, live = (x.movedim(info.dims or (0, 1), (0, 1)) for x in (whole, rows))
    first, second = live.shape[:2]
    cells[:first, :second] = live
    of_first, of_second = info.padding.split(",")
    if of_second == "repeat_last" and second:
        cells[:first, second:] = live[:, second - 1 : second]
    elif of_second == "fill":
        cells[:first, second:] = value_of(info.fill_second, names)
    if of_first == "repeat_last" and first:
        cells[first:] = cells[first - 1 : first].clone()
    elif of_first == "fill":
        cells[first:] = value_of(info.fill, names)
    if "keep" in (of_first, of_second):
        raise Unread("an axis keeps its rows")
    return whole


def _computed(info: SlotInfo, shape: tuple[int, ...], dtype: torch.dtype, names: Names) -> Tensor:
    values = torch.zeros(shape, dtype=dtype)
    if not info.axes:
        values[...] = value_of(info.rule, names)
        return values
    dims = info.dims or (info.dim,)
    by_row = values.movedim(dims, tuple(range(len(dims))))
    for numbers in product(*(range(by_row.shape[at]) for at in range(len(dims)))):
        row = dict(zip(info.axes, numbers, strict=True))
        by_row[numbers] = value_of(info.rule, names, row)
    return values


# ---------------------------------------------------------------- expressions

_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda item, choices: item in choices,
}
_WORDS: Mapping[str, bool] = {"true": True, "false": False}


def value_of(text: str, names: Names, row: Mapping[str, int] | None = None) -> Any:
    """The value of an expression as the spec writes it. Raises Unread.

    ``row`` numbers the row of each axis.
    """
    try:
        return _Evaluator(names, row).visit(ast.parse(text, mode="eval").body)
    except (SyntaxError, AttributeError, TypeError) as problem:
        raise Unread(f"`{text}` cannot be read: {problem}") from problem


class _Evaluator(ast.NodeVisitor):
    def __init__(self, names: Names, row: Mapping[str, int] | None) -> None:
        self._names = names
        self._row = row

    def generic_visit(self, node: ast.AST) -> Any:
        raise Unread(f"`{ast.unparse(node)}` is not known")

    def visit_Constant(self, node: ast.Constant) -> Any:
        return node.value

    def visit_Name(self, node: ast.Name) -> Any:
        return _WORDS[node.id] if node.id in _WORDS else getattr(self._names.dims, node.id)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        if not isinstance(node.value, ast.Name):
            raise Unread(f"`{ast.unparse(node)}` is not known")
        match node.value.id:
            case "row" if self._row is not None:
                return self._row[node.attr]
            case "dims" | "live" | "padded" as kind:
                return getattr(getattr(self._names, kind), node.attr)
            case "scalar":
                return getattr(self._names.live, node.attr)
            case "options" | "tp" | "dp" as kind:
                return getattr(getattr(self._names.dims, kind), node.attr)
            case _:
                raise Unread(f"`{ast.unparse(node)}` is not known")

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        value = self.visit(node.operand)
        return not value if isinstance(node.op, ast.Not) else -value

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        found = _BINARY.get(type(node.op))
        if found is None:
            raise Unread(f"`{ast.unparse(node)}` is not known")
        return found(self.visit(node.left), self.visit(node.right))

    def visit_Compare(self, node: ast.Compare) -> bool:
        left = self.visit(node.left)
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.visit(right_node)
            if not _COMPARE[type(op)](left, right):
                return False
            left = right
        return True

    def visit_Tuple(self, node: ast.Tuple) -> tuple[Any, ...]:
        return tuple(self.visit(item) for item in node.elts)

    def visit_BoolOp(self, node: ast.BoolOp) -> bool:
        values = [bool(self.visit(value)) for value in node.values]
        return all(values) if isinstance(node.op, ast.And) else any(values)

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        return self.visit(node.body if self.visit(node.test) else node.orelse)

    def visit_Call(self, node: ast.Call) -> Any:
        match node.func, node.args:
            case ast.Name(id="ceil"), [ast.BinOp(op=ast.Div(), left=left, right=right)]:
                return -(-self.visit(left) // self.visit(right))
            case ast.Name(id="min"), args:
                return min(self.visit(arg) for arg in args)
            case ast.Name(id="max"), args:
                return max(self.visit(arg) for arg in args)
            case _:
                raise Unread(f"`{ast.unparse(node)}` is not known")
