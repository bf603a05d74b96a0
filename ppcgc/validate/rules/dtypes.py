"""Values that a slot's dtype can hold."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ppcgc.diagnostics.model import Span
from ppcgc.ir import (
    INTEGER_DTYPES,
    AbsentFill,
    BoundaryKey,
    ComputeSource,
    ConstSource,
    Family,
    FillPadding,
    KeepPadding,
    Output,
    Padding,
    PaddingByAxis,
    Slot,
)
from ppcgc.validate.rules.checks import Finding, checked
from ppcgc.validate.rules.facts import Literal, literal, tensors

INTEGER_RANGES = {
    "uint8": (0, 2**8 - 1),
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
}
# the largest finite magnitude of each floating dtype
_FLOAT_LIMITS = {
    "float8_e4m3fn": 448.0,
    "float8_e5m2": 57344.0,
    "float16": 65504.0,
    "bfloat16": 3.3895313892515355e38,
    "float32": 3.4028234663852886e38,
    "float64": 1.7976931348623157e308,
}


@checked("PPC213", "value-not-in-dtype")
def value_not_in_dtype(family: Family) -> Iterator[Finding]:
    """A literal cannot be held by the slot's dtype.

    **What.** `fill`, `initial`, `const` and the values of `absent` and `capture` are exact in
    the dtype: no wrap-around, no rounding of 0.5 to an integer, no infinity by overflow.

    **Why it hurts.** -1 in a uint8 slot is 255, a legal-looking index.

    **Bad**

    ```yaml
    {name: kind, axis: tokens, dtype: uint8, padding: {fill: -1}, source: batch.kind}
    ```

    **Good**

    ```yaml
    {name: kind, axis: tokens, dtype: int8, padding: {fill: -1}, source: batch.kind}
    ```
    """
    for tensor in tensors(family):
        for value, span in _values(tensor.node):
            problem = _problem(value, tensor.node.dtype)
            if problem is not None:
                message = f"{tensor.what} cannot hold {_shown(value)}: {problem}"
                yield Finding(span, message, "write a value that it holds, or use another dtype")


def _values(node: Slot | BoundaryKey | Output) -> Iterator[tuple[Literal, Span]]:
    if isinstance(node, Output):
        return
    yield from _padding_values(node.padding, node.span_of("padding"))
    if not isinstance(node, Slot):
        return
    if isinstance(node.absent, AbsentFill):
        yield node.absent.value, node.span_of("absent")
    written = [(node.capture_fill, "capture")]
    if isinstance(node.source, ConstSource):
        written.append((node.source.value, "source"))
    if isinstance(node.source, ComputeSource):
        written.append((node.source.expr, "source"))
    for expr, word in written:
        value = literal(expr)
        if value is not None:
            yield value, node.span_of(word)


def _padding_values(padding: Padding | None, span: Span) -> Iterator[tuple[Literal, Span]]:
    if isinstance(padding, PaddingByAxis):
        yield from _padding_values(padding.first, span)
        yield from _padding_values(padding.second, span)
    if isinstance(padding, KeepPadding):
        yield padding.initial, span
    if isinstance(padding, FillPadding):
        value = literal(padding.value)
        if value is not None:
            yield value, span


def _problem(value: Literal, dtype: str) -> str | None:
    if dtype == "bool":
        return None if value in (0, 1) and not isinstance(value, float) else "dtype is bool"
    if dtype in INTEGER_DTYPES:
        return _integer_problem(value, dtype)
    if isinstance(value, bool):
        return f"dtype {dtype} holds numbers"
    return _float_problem(float(value), dtype)


def _integer_problem(value: Literal, dtype: str) -> str | None:
    if isinstance(value, bool | float):
        return f"dtype {dtype} holds integers"
    low, high = INTEGER_RANGES[dtype]
    return None if low <= value <= high else f"dtype {dtype} holds {low} to {high}"


def _float_problem(value: float, dtype: str) -> str | None:
    if math.isnan(value):
        return "a row that is not a number spreads to its neighbours"
    limit = _FLOAT_LIMITS.get(dtype)  # None for `model`, which is chosen at build
    if limit is None:
        return None
    if math.isinf(value):
        return f"dtype {dtype} has no infinity" if dtype == "float8_e4m3fn" else None
    return None if abs(value) <= limit else f"dtype {dtype} ends at {limit:g}"


def _shown(value: Literal) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
