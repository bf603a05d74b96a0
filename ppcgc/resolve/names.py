"""Names that cannot be used: keywords, and what expressions and generated code use themselves."""

from __future__ import annotations

import keyword
from collections.abc import Iterable

from ppcgc.diagnostics.model import Related, Span
from ppcgc.expr.tokens import KEYWORDS
from ppcgc.resolve import rules
from ppcgc.resolve.context import Context

# first words of dotted names, functions and words of expressions and of short forms
_EXPRESSION_WORDS = KEYWORDS | {
    "batch", "boundary", "build", "caller", "ceil", "config", "cut", "dims", "dp", "graph",
    "hook", "kinds", "layer", "live", "max", "min", "none", "options", "padded", "parallel",
    "row", "rows", "scalar", "slot", "state", "tp", "view",
}  # fmt: skip
# attributes and arguments of generated runners, buffers and views
_GENERATED_WORDS = frozenset({
    "batch", "begin", "boundary", "bucket", "buckets", "capture", "close", "finish", "forward",
    "live", "load", "padded", "report", "replay", "run", "runner", "self", "step", "stream",
    "view", "warm_up",
})  # fmt: skip
# modules of a generated package, and what its modules import
_MODULE_WORDS = frozenset({
    "batch", "boundary", "buffers", "dims", "layout", "outputs", "pipeline", "plan", "ppcgc",
    "runner", "runners", "runtime", "shared", "spec", "stages", "torch", "types", "typing",
})  # fmt: skip
_SOFT_KEYWORDS = frozenset(keyword.softkwlist) - {"_"}

EXPRESSION, GENERATED, MODULE = "expression", "generated", "module"
_TAKEN = {EXPRESSION: _EXPRESSION_WORDS, GENERATED: _GENERATED_WORDS, MODULE: _MODULE_WORDS}
_BECAUSE = {
    EXPRESSION: "expressions use it themselves",
    GENERATED: "generated classes use it themselves",
    MODULE: "generated packages use it themselves",
}


def check_name(context: Context, kind: str, name: str, span: Span, *uses: str) -> bool:
    """May ``name`` be the name of a ``kind``? Reports a hazard when it may not.

    ``uses`` say where the name ends up: ``EXPRESSION``, ``GENERATED``, ``MODULE``.
    """
    reason = _hazard(name, uses)
    if reason is None:
        return True
    help = f"rename it, for example to '{_renamed(kind, name)}'"
    context.report(rules.HAZARDOUS_NAME, span, f"{kind} cannot be called '{name}': {reason}", help)
    return False


def _hazard(name: str, uses: Iterable[str]) -> str | None:
    if keyword.iskeyword(name) or name in _SOFT_KEYWORDS:
        return "it is a keyword of Python"
    if name.startswith("_"):
        return "names that begin with an underscore belong to the generated code"
    if not (name.isascii() and name.isidentifier()):
        return "it is no Python identifier"
    for use in uses:
        if name in _TAKEN[use]:
            return _BECAUSE[use]
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
