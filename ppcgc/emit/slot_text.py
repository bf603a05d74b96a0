"""A slot in words: for comments, and for the tables that `verify` reads a second time."""

from __future__ import annotations

from collections.abc import Mapping

from ppcgc.expr.printing import to_text
from ppcgc.expr.tree import Expr, Ref
from ppcgc.expr.walk import with_constants
from ppcgc.ir import (
    AbsentFill,
    BatchSource,
    BoundarySource,
    CallerSource,
    ComputeSource,
    ConstSource,
    FillPadding,
    GraphSource,
    HookSource,
    KeepPadding,
    Padding,
    PaddingByAxis,
    RepeatLastPadding,
    Slot,
    ZeroPadding,
)

_THEN = {
    "zero": "then zero",
    "fill": "then its fill",
    "repeat_last": "then the last live row again",
    "keep": "rows past live keep what they hold",
    "none": "no padded rows",
}


def padding_text(padding: Padding | None) -> str:
    """``zero``, ``fill``, ``repeat_last``, ``keep``, ``none``; two joined by a comma."""
    match padding:
        case ZeroPadding():
            return "zero"
        case FillPadding():
            return "fill"
        case RepeatLastPadding():
            return "repeat_last"
        case KeepPadding():
            return "keep"
        case PaddingByAxis(first=first, second=second):
            return f"{padding_text(first)},{padding_text(second)}"
        case None:
            return "none"


def source_text(slot: Slot) -> str:
    """Where rows come from and what the others hold."""
    match slot.source:
        case BatchSource(path=path):
            origin = f"batch.{'.'.join(path)}"
        case ComputeSource():
            return "computed for every padded row"
        case BoundarySource(key=key):
            return f"boundary.{key}"
        case CallerSource():
            origin = "written by the caller before finish()"
        case HookSource(hook=hook):
            origin = f"written by the hook {hook}"
        case GraphSource():
            return "written inside the graph"
        case ConstSource():
            return "fixed when the runner is built"
    if isinstance(slot.padding, PaddingByAxis):
        first, second = padding_text(slot.padding.first), padding_text(slot.padding.second)
        rows, cells = slot.axes
        return f"{origin}; past live {cells}: {second}, past live {rows}: {first}"
    return f"{origin}, {_THEN[padding_text(slot.padding)]}"


def unwritten_text(slot: Slot) -> str:
    """What the load leaves of a slot that the caller or a hook writes after it."""
    author = f"the hook {slot.source.hook}" if isinstance(slot.source, HookSource) else "the caller"
    return f"live rows are zero until {author} writes them"


def declared(slot: Slot, capacities: Mapping[Ref, int]) -> dict[str, str | float]:
    """What the slot declares, in the spec's words, for `verify`'s second reading of a load.

    That knows no axis' largest number of rows: ``capacities`` stand in their places.
    """

    def text(value: Expr | float) -> str:
        return value_text(
            value if isinstance(value, int | float) else with_constants(value, capacities)
        )

    facts: dict[str, str | float] = {}
    match slot.source:
        case ComputeSource(expr=value):
            facts = {"source": "compute", "rule": text(value)}
        case ConstSource(value=value):
            facts = {"source": "const", "rule": text(value)}
        case BatchSource():
            pass
        case other:
            facts = {"source": type(other).__name__.removesuffix("Source").lower()}
    match slot.padding:
        case FillPadding(value=value):
            facts["fill"] = text(value)
        case KeepPadding(initial=initial):
            facts["fill"] = text(initial)
        case PaddingByAxis(first=first, second=second):
            for word, padding in (("fill", first), ("fill_second", second)):
                if isinstance(padding, FillPadding):
                    facts[word] = text(padding.value)
    if isinstance(slot.absent, AbsentFill):
        facts["absent"] = slot.absent.value
    if slot.role.of_kind == "state" and slot.role.of is not None:
        facts["of_state"] = slot.role.of
    return facts


def value_text(value: Expr | float) -> str:
    """A number or an expression as a spec writes it."""
    return str(value).lower() if isinstance(value, int | float) else to_text(value)
