"""Names that cannot be used: keywords, and what expressions and generated code use themselves."""

from __future__ import annotations

import keyword
from collections.abc import Iterable

from ppcgc.diagnostics.model import Related, Span
from ppcgc.expr.tokens import KEYWORDS
from ppcgc.plan.buckets import group_column
from ppcgc.plan.naming import is_generated
from ppcgc.resolve import rules
from ppcgc.resolve.context import Context, entries, get, need

# first words of dotted names, functions and words of expressions and of short forms
_IN_EXPRESSIONS = KEYWORDS | {
    "batch", "boundary", "build", "caller", "ceil", "config", "cut", "dims", "dp", "graph",
    "hook", "kinds", "layer", "live", "max", "min", "none", "options", "padded", "parallel",
    "row", "rows", "scalar", "slot", "state", "tp", "view",
}  # fmt: skip
# what generated modules use by its bare name: a field of that name would hide it
_IN_MODULES = frozenset({
    "DEFAULTS", "KINDS", "Mapping", "Protocol", "Sequence", "Tensor", "bool", "classmethod", "cls",
    "float", "int", "object", "property", "rt", "self", "str", "super", "torch", "tuple", "type",
})  # fmt: skip
# methods and arguments beside the fields of generated tensors' classes
_BESIDE_TENSORS = frozenset({
    "arena", "batch", "begin", "buckets", "buffers", "capture", "close", "declared", "dims",
    "dtype", "device", "full", "get", "items", "keys", "live", "load", "padded", "report", "replay",
    "result", "rows", "run", "state", "step", "store", "trim", "values",
})  # fmt: skip
# modules of a generated package, and packages that it imports
_MODULES = frozenset({
    "boundary", "collections", "dataclasses", "family", "ppcgc", "runtime", "torch", "typing",
})  # fmt: skip
# the reasons for an eager step that the runtime gives itself
_REASONS = frozenset({
    "absent", "fits", "max_padding", "over_capacity", "requested", "uneven", "unreachable",
})  # fmt: skip
_SOFT_KEYWORDS = frozenset(keyword.softkwlist) - {"_"}
_LIKE_DIGITS = frozenset({"l", "O", "I"})  # pycodestyle's E741

# what may not be the name of a kind of thing, and who uses it there
_TAKEN: dict[str, tuple[tuple[frozenset[str], str], ...]] = {
    "dim": (
        (_IN_EXPRESSIONS, "expressions"),
        (frozenset({"from_config", "layer_count"}), "the generated Dims"),
    ),
    "axis": (
        (_IN_EXPRESSIONS, "expressions"),
        (frozenset({"count", "index"}), "the named tuple of extents"),
    ),
    "state": (
        (_IN_EXPRESSIONS, "expressions"),
        (frozenset({"check", "device"}), "the generated State"),
    ),
    "option": ((frozenset({"from_config", "layer_count"}), "the generated options"),),
    "scalar": (
        (frozenset({"count", "index"}), "the named tuple of the graph key"),
        (frozenset({"batch", "live", "max", "min"}), "the generated choice"),
    ),
    "hook": ((_BESIDE_TENSORS, "generated classes"),),
    "slot": ((_BESIDE_TENSORS, "generated classes"),),
    "boundary key": ((_BESIDE_TENSORS, "generated classes"),),
    "output": ((_BESIDE_TENSORS, "generated classes"),),
    "reason": ((_REASONS, "the runtime's own reasons"),),
    "runner": ((_MODULES, "generated packages"),),
    "family": ((_MODULES, "generated packages"),),
}


def check_name(context: Context, kind: str, name: str, span: Span) -> bool:
    """May ``name`` be the name of a ``kind`` ("slot", "axis")? Reports a hazard if it may not."""
    reason = _hazard(kind, name)
    if reason is None and kind != "config attribute" and is_generated(name, _runners(context)):
        reason = "generated modules have that name for their own"
    if reason is None and kind in ("axis", "scalar") and name in _group_columns(context):
        reason = "the largest live count of a group has that name"
    if reason is None:
        return True
    help = f"rename it, for example to '{_renamed(kind, name)}'"
    context.report(rules.HAZARDOUS_NAME, span, f"{kind} cannot be called '{name}': {reason}", help)
    return False


def _runners(context: Context) -> frozenset[str]:
    return frozenset(entry.key for entry in entries(need(context.root, "runners")))


def _group_columns(context: Context) -> frozenset[str]:
    axes = entries(get(context.root, "axes"))
    return frozenset(
        group_column(axis.key) for axis in axes if get(axis.value, "group") is not None
    )


def _hazard(kind: str, name: str) -> str | None:
    if keyword.iskeyword(name) or name in _SOFT_KEYWORDS:
        return "it is a keyword of Python"
    if name.startswith("_"):
        return "names that begin with an underscore belong to the generated code"
    if name in _LIKE_DIGITS and kind != "config attribute":
        return "it reads like a digit"
    if not (name.isascii() and name.isidentifier()):
        return "it is no Python identifier"
    for words, user in ((_IN_MODULES, "generated modules"), *_TAKEN.get(kind, ())):
        if name in words:
            return f"it means something else in {user}"
    return None


def _renamed(kind: str, name: str) -> str:
    bare = name.strip("_") or kind.split()[-1]
    return f"{bare}_{kind.split()[-1]}" if name == bare else bare


def check_unique(context: Context, kind: str, names: Iterable[tuple[str, Span]]) -> None:
    """Reports each name that was used before among ``names``."""
    first: dict[str, Span] = {}
    for name, span in names:
        if name in first:
            related = (Related(first[name], "first used here"),)
            message = f"{kind} '{name}' is declared twice"
            context.report(rules.DUPLICATE_NAME, span, message, "rename or remove one", related)
        first.setdefault(name, span)


def check_distinct_identifiers(
    context: Context, kind: str, names: Iterable[tuple[str, Span]]
) -> None:
    """Reports names that become the same class or file: they differ in case or underscores only."""
    first: dict[str, tuple[str, Span]] = {}
    for name, span in names:
        folded = name.replace("_", "").casefold()
        if folded in first and first[folded][0] != name:
            other, other_span = first[folded]
            message = f"{kind} '{name}' differs from '{other}' only in case or underscores"
            related = (Related(other_span, "the other one"),)
            context.report(rules.DUPLICATE_NAME, span, message, "rename one", related)
        first.setdefault(folded, (name, span))
