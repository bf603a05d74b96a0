"""Shapes of slots, boundary keys and outputs: as code, and as text for people."""

from __future__ import annotations

from pathlib import PurePath

from ppcgc.diagnostics.model import Span
from ppcgc.emit.scope import Scope
from ppcgc.emit.source import Code, identifier, tuple_of
from ppcgc.expr.printing import to_text
from ppcgc.ir import Extent


def line_of(span: Span) -> str:
    """``llama.yaml:38``: without the file's folders, so that output is the same anywhere."""
    return f"{PurePath(span.file).name}:{span.line}"


def extent_code(scope: Scope, extent: Extent, rows: str) -> Code:
    """``rows.tokens``, ``2 * rows.tokens + 1`` or an expression of dims."""
    if extent.axis is None:
        return scope.at(rows).python(extent.expr)
    scaled = f"{extent.scale} * " if extent.scale != 1 else ""
    offset = f" + {extent.offset}" if extent.offset else ""
    return Code(f"{scaled}{rows}.{identifier(extent.axis)}{offset}")


def shape_code(scope: Scope, shape: tuple[Extent, ...], rows: str) -> Code:
    """``(rows.tokens, self.dims.hidden)``."""
    return tuple_of(tuple(extent_code(scope, extent, rows) for extent in shape))


def padded_dims(shape: tuple[Extent, ...], axes: tuple[str, ...]) -> tuple[int, ...]:
    """The dimensions that carry the axes, in the axes' order."""
    at = {extent.axis: dim for dim, extent in enumerate(shape) if extent.axis is not None}
    return tuple(at[axis] for axis in axes)


def extent_text(extent: Extent) -> str:
    """One dimension for people: ``tokens``, ``requests + 1``, ``hidden``."""
    if extent.axis is None:
        return to_text(extent.expr).replace("dims.", "")
    scaled = f"{extent.scale} * " if extent.scale != 1 else ""
    return f"{scaled}{extent.axis}{f' + {extent.offset}' if extent.offset else ''}"


def annotation(shape: tuple[Extent, ...], dtype: str, span: Span) -> Code:
    """``# [tokens, hidden] model, llama.yaml:24``."""
    return Code(f"# [{', '.join(map(extent_text, shape))}] {dtype}, {line_of(span)}")
